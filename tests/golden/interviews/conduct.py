"""Conduct the golden interviews: 300 combinations of a strategy, a problem, a respondent and a script of actions.

    python -m tests.golden.interviews.conduct FILE.jsonl.gz

Everything is derived from the number of the interview, so that a later version can conduct the same ones again.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.strategies.people import random_catalogue, random_mdp
from tradeoff import MDP, Interview, Objective, PointSet, Reply, cover, learn_prior, load
from tradeoff.mdp.compiled import CompiledSolver

COUNT = 300
TOWN = Path(__file__).parents[3] / "docs" / "how-to" / "data" / "town.graphml"

STRATEGIES: tuple[dict[str, Any], ...] = (
    {"strategy": "careful", "questions": "best-worst-4"},
    {"strategy": "certified", "questions": "pairs"},
    {"strategy": "careful", "questions": "pairs"},
    {"strategy": "certified", "questions": "best-worst-4"},
    {"strategy": "paper"},
    {"strategy": "careful", "questions": "best-worst-4", "prior": "learned"},
    {"strategy": "paper", "basis": "spanner"},
    {"strategy": "certified", "lotteries": True},
    {"strategy": "careful", "questions": "pairs", "max_questions": 5, "order_seed": 7},
)
PROBLEMS = (
    "table-3", "table-5", "mdp", "points", "coffee", "concave", "commute", "limited table", "routes", "compiled mdp",
    "monotone", "limited mdp", "compiled table",
)  # fmt: skip
RESPONDENTS = ("exact", "coarse", "noisy", "random")
SCRIPTS = ("answer", "skip", "undo", "state", "everything")


@dataclass(frozen=True)
class Spec:
    """One interview: what is asked about what, and who answers how."""

    number: int
    options: dict[str, Any]
    problem: str
    respondent: str
    script: str


def specs() -> Iterator[Spec]:
    """Yield the combinations; the four cycles have no common period below a thousand."""
    for n in range(COUNT):
        script = SCRIPTS[(n + n // 60) % len(SCRIPTS)]
        options = STRATEGIES[n % len(STRATEGIES)]
        if options["strategy"] == "paper" and script in ("state", "everything"):
            script = "undo"  # it learns only from what it asks
        yield Spec(n, options, PROBLEMS[n % len(PROBLEMS)], RESPONDENTS[(n // 2) % len(RESPONDENTS)], script)


@lru_cache(None)
def problem_of(name: str) -> Any:
    """Return a problem of the golden interviews."""
    rng = np.random.default_rng([4, sorted(PROBLEMS).index(name)])
    match name:
        case "table-3" | "table-5":
            return random_catalogue(rng, int(name[-1]), items=40)
        case "mdp":
            return random_mdp(rng, 3)
        case "limited mdp":
            free = _compiled(random_mdp(rng, 3))
            middle = (free.ideal + free.nadir) / 2
            objective = free.objectives[1]
            return free.limited(f"{objective.name} {'>=' if objective.goal == 'max' else '<='} {middle[1]}")
        case "points":
            points = rng.random((25, 4))
            return PointSet(lambda w: points[int((points @ w).argmax())], [Objective(x) for x in "abcd"], gap=0)
        case "concave" | "monotone":
            return random_catalogue(rng, 3, items=12).curved(name)
        case "limited table":
            return random_catalogue(rng, 4, items=40).limited("objective 1 >= 0.3")
        case "routes":
            return load(TOWN, objectives="length:min,travel_time:min,climb:min", origin="A1", destination="E5")
        case "compiled mdp":
            return cover(_compiled(random_mdp(rng, 3)), 0.01)
        case "compiled table":
            return cover(random_catalogue(rng, 4, items=40), 0.01)
    return load(name)


def _compiled(model: MDP) -> MDP:
    """Return a model with the solver of version 0.3: limits and coverages that are computed here depend on its last digits."""
    return model.replace(solver=CompiledSolver(threads=1))


class Clock:
    """A clock that says the same whenever the interviews are conducted."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=3.5)
        return self.now


class Respondent:
    """Answers by weights, exactly or not, or at random; written apart from the product's own simulated people."""

    def __init__(self, problem: Any, kind: str, rng: np.random.Generator) -> None:
        matters = np.asarray(problem.matters, dtype=float)
        self.kind, self.rng = kind, rng
        self.weights = rng.dirichlet(np.ones(len(matters))) * matters
        self.best = float(problem.best([self.weights])[0].value @ self.weights) or 1.0
        self.precision = {"exact": 1e-3, "coarse": 0.08, "noisy": 0.01, "random": 0.0}[kind] * self.best

    def worth(self, values: np.ndarray) -> np.ndarray:
        """Return what options seem to be worth this time."""
        if self.kind == "random":
            return self.rng.random(len(values))
        noise = self.rng.logistic(0, 0.05 * self.best, len(values)) if self.kind == "noisy" else 0.0
        return values @ self.weights + noise

    def reply(self, values: np.ndarray, asks: str) -> tuple[int, ...]:
        """Return the place of the best, or of the best and the worst; () for "about equal"."""
        worth = self.worth(values)
        if np.ptp(worth) <= self.precision:
            return ()
        best, worst = int(worth.argmax()), int(worth.argmin())
        return (best, worst) if asks == "best-worst" else (best,)


def as_reply(chosen: tuple[int, ...]) -> Reply:
    """Return a reply as the product takes it."""
    return Reply(*chosen) if chosen else Reply(word="equal")


def learned_prior(problem: Any) -> Any:
    """Return a prior learned from three respondents."""
    answers = []
    for seed in range(3):
        interview, rng = Interview(problem, "careful"), np.random.default_rng([6, seed])
        someone = Respondent(problem, "noisy", rng)
        for _ in range(5):
            question = interview.ask()
            if question is None:
                break
            interview.tell(as_reply(someone.reply(question.values, question.asks)))
        answers.append(interview.answers)
    return learn_prior(problem, answers)


def statements_for(problem: Any) -> list[str]:
    """Return what a respondent can state about this problem."""
    names = [
        o.name for o, matters in zip(problem.original.objectives, problem.original.matters, strict=True) if matters
    ]
    return [f"{names[0]} <= 80%", f"{names[-1]} > {names[0]}"]


def conduct(spec: Spec) -> Interview:
    """Return the interview of a specification, conducted to its end."""
    problem, rng = problem_of(spec.problem), np.random.default_rng([5, spec.number])
    options = dict(spec.options)
    if options.get("prior") == "learned":
        options["prior"] = learned_prior(problem)
    someone = Respondent(problem, spec.respondent, rng)
    interview = Interview(problem, clock=Clock(), **options)
    skips, undoes, states = (spec.script in (action, "everything") for action in ("skip", "undo", "state"))
    first, second = statements_for(problem)
    if states:
        interview.know(first)
    step = 0
    while (question := interview.ask()) is not None and step < 200:
        step += 1
        if skips and step in (2, 5):
            interview.skip()
            continue
        interview.tell(as_reply(someone.reply(question.values, question.asks)))
        if undoes and step in (3, 6):
            interview.undo()
        if undoes and step == 4 and interview.answers:
            interview.undo(interview.answers[0].number)
        if states and step == 3:
            interview.know(second)
    return interview


def summary(interview: Interview) -> dict[str, Any]:
    """Return what came of an interview, as plain data."""
    found = interview.recommendation
    return {
        "value": found.option.value.tolist(),
        "questions": found.questions,
        "complete": found.complete,
        "reason": str(found.reason),
        "regret_bound": found.regret_bound,
        "robust_bound": found.robust_bound,
        "set_aside": sorted({*found.doubtful, *found.unexplained}),
    }


def record(spec: Spec) -> dict[str, Any]:
    """Conduct an interview and return it as data."""
    interview = conduct(spec)
    return {"number": spec.number, "log": list(interview.log), "came to": summary(interview)}


def read(path: Path) -> list[dict[str, Any]]:
    """Return recorded interviews."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]


if __name__ == "__main__":
    lines = []
    for spec in specs():
        lines.append(json.dumps(record(spec)))
        if spec.number % 30 == 29:
            print(f"{spec.number + 1} of {COUNT}", flush=True)
    Path(sys.argv[1]).write_bytes(gzip.compress("\n".join(lines).encode(), 9, mtime=0))
