"""How many questions each strategy asks, what its advice costs, and whether its certificates hold.

    python benchmarks/questions.py                     everything, 40 instances a row
    python benchmarks/questions.py --quick             a few small rows
    python benchmarks/questions.py --most 6            only rows of at most 6 objectives
    python benchmarks/questions.py --only mdp          only rows whose name contains this
    python benchmarks/questions.py --kinds             pairs beside menus: rounds for every kind of question
    python benchmarks/questions.py --json out.json     the figures and every interview as well

Random catalogues are points in a cube and in a shell, by turns, reduced to those that are optimal for some weights; frontier
catalogues lie on a sphere; correlated ones have a Gaussian copula. Gains are scaled to at most 1 and the hidden weights
(Dirichlet) to a best worth of 1, so that eps is relative to it. All strategies meet the same people in the same run.
The certified strategies' certificates are checked after every answer, those of all strategies that ask menus too, and the
others' at the end. A question is a round: one screen, of two options or of four.

The floor is the base-2 logarithm of how many options must be told apart: the size of a greedy cover of 2,000 random
people such that everybody is within half the target of their best. It is an estimate, no strict bound: half the target
asks for a little more than is needed, and "about equal" is an answer too, so that a question can tell more than one bit.
The exit code is 0 whether or not the targets are met: the verdicts say which are not.
"""

from __future__ import annotations

import os

if __name__ == "__main__":  # one thread a process, set before the libraries are imported
    for _name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(_name, "1")

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypedDict

import joblib
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from scipy import special

from tradeoff import MDP, Catalogue, Interview, LinearRespondent, Reference, examples, load
from tradeoff.evidence import QUESTIONS as QUESTION_KINDS
from tradeoff.model import Matrix, Vector
from tradeoff.problem import Problem
from tradeoff.strategies.acquisition import set_cover

TARGET = 0.01
TOLERANCE = 1e-9  # a certificate exceeded by less than this is the rounding of a sum
ITEMS = 200
PEOPLE = 2000  # random weights that the floor is estimated from

STRATEGIES: dict[str, tuple[str, dict[str, Any]]] = {
    "certified": ("certified", {}),
    "certified, lotteries": ("certified", {"lotteries": True}),
    "careful": ("careful", {}),
    "paper": ("paper", {}),
    "paper, spanner": ("paper", {"basis": "spanner"}),
}
USUAL = tuple(STRATEGIES)
# The same strategies with every kind of question.
KINDS = tuple(f"{name}, {kind}" for name in ("careful", "certified") for kind in QUESTION_KINDS)
STRATEGIES |= {one: (one.partition(", ")[0], {"questions": one.partition(", ")[2]}) for one in KINDS}
# Mean rounds of `careful` with best-worst-4 and right answers, by row: not more than a prototype needed.
ROUNDS = {"frontier k=3": 2.5, "frontier k=4": 3.4, "frontier k=6": 4.6, "coffee": 3.5}
NOTHING_ASKED = "nothing asked"
SEEDED = ("certified", "careful")

# Mean questions of `certified` on random catalogues at eps = 0.01, by number of objectives: not more than this.
QUESTIONS = {2: 2.1, 3: 4.6, 4: 7.5, 6: 11.9, 8: 17.4, 10: 21.1}
# `careful` at 6 objectives, by error rate: mean questions and mean true regret, not more than this.
WITH_ERRORS = {0.05: (13.0, 0.001), 0.1: (15.0, 0.005)}

# What the reasons for stopping are called in the table, by words that occur in them.
REASONS = {
    "proved to be": "proved",
    "very likely within": "very likely",
    "probably within": "probably",
    "notice": "unnoticeable",
    "contradict": "contradiction",
    "nothing new left": "no question left",
    "no answer could prove": "slack",
    "preferred it": "confirmed",
    "not sure": "not sure",
    "no one set of weights": "no fit",
    "not enough": "too many",
    "everything this strategy": "all asked",
    "about equal to you": "all equal",
}


@dataclass(frozen=True)
class Row:
    """One line of instances: how they are made, and who is asked."""

    name: str
    kind: str  # of instance, or the name of a bundled problem
    k: int
    eps: float = 0.01
    error_rate: float = 0.0
    strategies: tuple[str, ...] = USUAL


class Outcome(TypedDict):
    """What one interview came to; regrets are relative."""

    row: str
    instance: int
    strategy: str
    questions: int
    regret: float
    bound: float | None
    checked: int  # certificates
    exceeded: int
    reason: str
    floor: float
    wrong: int  # answers
    flagged: int
    caught: int  # flagged answers that were wrong
    seconds: float


# --- instances --------------------------------------------------------------------------------------------------------


def points(kind: str, k: int, rng: np.random.Generator) -> Matrix:
    """Return random gains [n, k] of one kind, before scaling."""
    if kind == "cube":
        return rng.random((ITEMS, k))
    if kind in ("shell", "frontier"):
        away = np.abs(rng.normal(size=(ITEMS, k)))
        away /= np.linalg.norm(away, axis=1, keepdims=True)
        shell: Matrix = away if kind == "frontier" else away * (0.85 + 0.15 * rng.random((ITEMS, 1)))
        return shell
    correlation = {"positive": 0.5, "negative": -0.9 / (k - 1)}[kind]
    covariance = np.full((k, k), correlation) + (1 - correlation) * np.eye(k)
    copula: Matrix = special.ndtr(rng.multivariate_normal(np.zeros(k), covariance, ITEMS))
    return copula


def catalogue(kind: str, k: int, number: int) -> tuple[Catalogue, Vector]:
    """Return a catalogue of items that are optimal for some weights, and hidden weights whose best item is worth 1."""
    rng = np.random.default_rng([k, number, 77])
    if kind == "random":
        kind = "shell" if number % 2 else "cube"
    table = points(kind, k, rng)
    people = np.vstack([rng.dirichlet(np.ones(k), 20_000), rng.dirichlet(np.full(k, 0.3), 10_000), np.eye(k)])
    table = table[np.unique(np.argmax(people @ table.T, axis=1))]
    table = table / table.max(axis=0)
    weights = rng.dirichlet(np.ones(k))
    zero = Reference("nothing", {f"objective {j + 1}": 0.0 for j in range(k)})
    return Catalogue(table, reference=zero, name=f"{kind} {k}/{number}"), weights / (table @ weights).max()


def decision_process(k: int, number: int) -> tuple[MDP, Vector]:
    """Return a random MDP of 15 states, 4 actions and 8 steps where nothing need be done, and hidden weights."""
    rng = np.random.default_rng([number, k, 44])
    moves = rng.dirichlet(np.full(15, 0.3), (15, 4))
    rewards = rng.random((15, 4, k)) ** 3
    zero = Reference("nothing", {f"objective {j + 1}": 0.0 for j in range(k)})
    mdp = MDP.from_arrays(moves, rewards, horizon=8, reference=zero, prune=False).with_nothing()
    mdp.threads = 1
    return mdp, person(mdp, number)


def person(problem: Problem, number: int) -> Vector:
    """Return random weights to which the best option of the problem is worth 1."""
    weights = np.random.default_rng([number, 9]).dirichlet(np.ones(len(problem.objectives)))
    (best,) = problem.best(weights[None, :])
    result: Vector = weights / float(weights @ best.value)
    return result


def instance(row: Row, number: int) -> tuple[Problem, Vector]:
    """Return a problem and a person's weights: the same for the same row and number."""
    if row.kind == "mdp":
        return decision_process(row.k, number)
    if row.kind in examples():
        problem = load(row.kind)
        if isinstance(problem, MDP):
            problem.threads = 1
        return problem, person(problem, number)
    return catalogue(row.kind, row.k, number)


def floor(problem: Problem, target: float = TARGET) -> float:
    """Return the bits that it takes to say which option is good enough for a person."""
    rng = np.random.default_rng(0)
    people = rng.dirichlet(np.ones(len(problem.objectives)), PEOPLE)
    values = np.unique(np.array([a.value for a in problem.best(people)]), axis=0)
    worth = people @ values.T
    labels = set_cover(worth >= (1 - target / 2) * worth.max(axis=1, keepdims=True) - 1e-12)
    return float(np.log2(labels.max() + 1))


# --- interviews -------------------------------------------------------------------------------------------------------


def ask(row: Row, number: int, strategy: str, problem: Problem, weights: Vector, bits: float) -> Outcome:
    """Return what one interview comes to."""
    (best,) = problem.best(weights[None, :])
    most = float(weights @ best.value)

    def regret(value: Vector) -> float:
        return 1.0 - float(weights @ value) / most

    user = LinearRespondent(weights, row.eps * most, row.error_rate, seed=1000 * number + row.k)
    name, options = STRATEGIES[strategy]
    if name in SEEDED:
        options = {"target": TARGET, "seed": number, **options}
    begin = time.process_time()
    interview = Interview(problem, name, **options)
    checked = exceeded = 0
    while question := interview.ask():
        if name == "certified" or (options.get("questions") and not row.error_rate):
            bound = (now := interview.recommendation).regret_bound
            checked += bound is not None
            exceeded += bound is not None and regret(now.option.value) > bound + TOLERANCE
        interview.tell(user(question))
    found = interview.recommendation
    true = regret(found.option.value)
    bound = found.regret_bound
    honest = LinearRespondent(weights, row.eps * most)
    wrong = {
        answer.number
        for answer in interview.answers
        if answer.asked is not None and answer.reply != honest(answer.asked)
    }
    return {
        "row": row.name,
        "instance": number,
        "strategy": strategy,
        "questions": len(interview.answers),
        "regret": max(true, 0.0),
        "bound": bound,
        "checked": checked + (bound is not None),
        "exceeded": exceeded + (bound is not None and true > bound + TOLERANCE),
        "reason": reason(found.reason),
        "floor": bits,
        "wrong": len(wrong),
        "flagged": len(found.doubtful),
        "caught": len(wrong & set(found.doubtful)),
        "seconds": time.process_time() - begin,
    }


def reason(text: str) -> str:
    """Return what a reason for stopping is called in the table."""
    return next((short for words, short in REASONS.items() if words in text), text)


def nothing_asked(row: Row, number: int, problem: Problem, weights: Vector, bits: float) -> Outcome:
    """Return what asking nothing and counting all objectives alike comes to."""
    equal, best = problem.best(np.array([np.ones(len(weights)), weights]))
    loss = 1.0 - float(weights @ equal.value) / float(weights @ best.value)
    return {
        "row": row.name, "instance": number, "strategy": NOTHING_ASKED, "questions": 0, "regret": max(loss, 0.0),
        "bound": None, "checked": 0, "exceeded": 0, "reason": "not begun", "floor": bits, "wrong": 0, "flagged": 0,
        "caught": 0, "seconds": 0.0,
    }  # fmt: skip


def outcomes(row: Row, number: int) -> list[Outcome]:
    """Return what every strategy comes to with one person."""
    problem, weights = instance(row, number)
    bits = floor(problem)
    result = []
    for strategy in row.strategies:
        try:
            result.append(ask(row, number, strategy, problem, weights, bits))
        except Exception as error:
            error.add_note(f"in row {row.name!r}, instance {number}, strategy {strategy!r}")
            raise
    if not row.error_rate:
        result.append(nothing_asked(row, number, problem, weights, bits))
    return result


# --- summing up -------------------------------------------------------------------------------------------------------


def share(count: float, total: float) -> float | None:
    """Return count / total, or None for none of none."""
    return count / total if total else None


def summarise(row: Row, strategy: str, found: Sequence[Outcome]) -> dict[str, Any]:
    """Return one line of the tables."""
    asked = np.array([o["questions"] for o in found], dtype=float)
    regrets = np.array([o["regret"] for o in found])
    bounds = [o["bound"] for o in found if o["bound"] is not None]
    stopped = Counter(o["reason"] for o in found)
    wrong, flagged, caught = (sum(o[key] for o in found) for key in ("wrong", "flagged", "caught"))
    final = [o for o in found if o["bound"] is not None]
    mean, bits = float(asked.mean()), float(np.mean([o["floor"] for o in found]))
    return {
        **asdict(row),
        "strategies": None,
        "strategy": strategy,
        "instances": len(found),
        "questions": mean,
        "standard_error": float(asked.std(ddof=1) / np.sqrt(len(asked))) if len(asked) > 1 else 0.0,
        "most": int(asked.max()),
        "regret": float(regrets.mean()),
        "worst_regret": float(regrets.max()),
        "over_target": float((regrets > TARGET).mean()),
        "certificate": float(np.mean(bounds)) if bounds else None,
        "checked": sum(o["checked"] for o in found),
        "exceeded": sum(o["exceeded"] for o in found),
        "false_certificates": share(sum(o["regret"] > (o["bound"] or 0) + TOLERANCE for o in final), len(final)),
        "stopped": {name: count / len(found) for name, count in stopped.most_common()},
        "floor": bits,
        "above_floor": mean - bits,
        "wrong": wrong,
        "flagged": flagged,
        "flagged_that_were_wrong": share(caught, flagged),
        "wrong_that_were_flagged": share(caught, wrong),
        "seconds": float(np.mean([o["seconds"] for o in found])),
    }


def verdict(what: str, mean: float, error: float, most: float, *, percent: bool = False) -> str:
    """Return whether a mean is at most what it should be, and by how many of its standard errors."""
    met = mean <= most
    side = "below" if met else "above"
    distance = f"{abs(mean - most) / error:.1f} standard errors {side}" if error > 0 else "no spread"
    text = f"{100 * mean:.3g}%, at most {100 * most:g}%" if percent else f"{mean:.2f} ± {error:.2f}, at most {most:g}"
    return f"{what}: {text}: {'met' if met else 'MISSED'} ({distance})"


def verdicts(lines: Sequence[dict[str, Any]], interviews: Sequence[Outcome]) -> list[str]:
    """Return what became of the targets that these lines say anything about."""
    result = []
    for line in lines:
        clean = line["kind"] == "random" and line["eps"] == 0.01 and not line["error_rate"]
        if clean and line["strategy"] == "certified" and line["k"] in QUESTIONS:
            what, most = f"questions, k = {line['k']}", QUESTIONS[line["k"]]
            told = verdict(what, line["questions"], line["standard_error"], most)
            aim = 2 / 3 * most
            result.append(f"{told}; a third fewer, {aim:.1f}: {'reached' if line['questions'] <= aim else 'not yet'}")
        if line["strategy"] == "careful, best-worst-4" and line["name"] in ROUNDS:
            what = f"rounds of four at a time, {line['name']}"
            result.append(verdict(what, line["questions"], line["standard_error"], ROUNDS[line["name"]]))
        if line["strategy"] == "careful" and line["k"] == 6 and line["error_rate"] in WITH_ERRORS:
            most, loss = WITH_ERRORS[line["error_rate"]]
            what = f"{100 * line['error_rate']:g}% wrong answers, k = 6"
            regrets = [
                o["regret"] for o in interviews if o["row"] == line["name"] and o["strategy"] == line["strategy"]
            ]
            error = float(np.std(regrets, ddof=1) / np.sqrt(len(regrets))) if len(regrets) > 1 else 0.0
            result.append(verdict(f"{what}, questions", line["questions"], line["standard_error"], most))
            result.append(verdict(f"{what}, true regret", line["regret"], error, loss, percent=True))
    clean_lines = [line for line in lines if not line["error_rate"]]
    exceeded, checked = (sum(line[key] for line in clean_lines) for key in ("exceeded", "checked"))
    told = "none exceeded: met" if not exceeded else f"{exceeded} exceeded: MISSED"
    result.append(f"certificates with right answers: {checked:,} checked, {told}")
    return result


# --- the tables -------------------------------------------------------------------------------------------------------

EXACT_HEADER = (
    f"{'instances':<26} {'strategy':<23} {'questions':>13} {'most':>4} {'regret %':>8} {'worst':>6} {'cert. %':>7} "
    f"{'exceeded':>8} {'floor':>5} {'above':>6}  stopped (%)"
)
ERRORS_HEADER = (
    f"{'instances':<26} {'strategy':<23} {'questions':>13} {'most':>4} {'regret %':>8} {'worst':>6} {'over 1%':>7} "
    f"{'false cert.':>11} {'wrong':>5} {'flagged':>7} {'flags right':>11} {'caught':>6}  stopped (%)"
)


def percent(amount: float | None, digits: int = 0) -> str:
    """Return a share as a percentage, or a dash."""
    return "-" if amount is None else f"{100 * amount:.{digits}f}"


def text(line: dict[str, Any]) -> str:
    """Return one line of its table."""
    stopped = ", ".join(f"{name} {100 * part:.0f}" for name, part in line["stopped"].items())
    begin = (
        f"{line['name']:<26} {line['strategy']:<23} {line['questions']:>6.2f} ± {line['standard_error']:<4.2f} "
        f"{line['most']:>4} {percent(line['regret'], 3):>8} {percent(line['worst_regret'], 2):>6} "
    )
    if line["error_rate"]:
        return begin + (
            f"{percent(line['over_target']):>7} {percent(line['false_certificates']):>11} {line['wrong']:>5} "
            f"{line['flagged']:>7} {percent(line['flagged_that_were_wrong']):>11} "
            f"{percent(line['wrong_that_were_flagged']):>6}  {stopped}"
        )
    told = line["exceeded"] if line["checked"] else "-"
    above = "-" if line["strategy"] == NOTHING_ASKED else f"{line['above_floor']:+.1f}"
    return begin + f"{percent(line['certificate'], 2):>7} {told:>8} {line['floor']:>5.1f} {above:>6}  {stopped}"


def all_rows() -> list[Row]:
    """Return everything that is measured."""
    objectives = {name: len(load(name).objectives) for name in examples()}
    return [
        *(Row(f"random k={k}", "random", k) for k in QUESTIONS),
        *(Row(f"random k=4 eps={eps:g}", "random", 4, eps) for eps in (0.1, 0.001)),
        *(Row(f"frontier k={k}", "frontier", k) for k in (3, 4, 6)),
        *(Row(f"{kind}ly correlated k={k}", kind, k) for kind in ("positive", "negative") for k in (4, 6)),
        *(Row(f"mdp k={k}", "mdp", k) for k in (3, 4, 6)),
        *(Row(name, name, k) for name, k in objectives.items()),
        *with_errors(6, 3),
    ]


def with_errors(*objectives: int) -> list[Row]:
    """Return the rows of people who answer wrongly now and then."""
    asked = ("careful", "certified", "paper")
    return [
        Row(f"random k={k}, {100 * rate:g}% wrong", "random", k, 0.01, rate, asked)
        for k in objectives
        for rate in WITH_ERRORS
    ]


def kinds_rows() -> list[Row]:
    """Return the rows in which every kind of question is asked: right answers, a coarser precision, and some wrong ones."""
    careful = tuple(one for one in KINDS if one.startswith("careful"))
    bundled = [(name, len(load(name).objectives)) for name in ("coffee", "portfolio") if name in examples()]
    return [
        *(Row(f"frontier k={k}", "frontier", k, strategies=KINDS) for k in range(2, 11)),
        *(Row(f"random k={k}", "random", k, strategies=KINDS) for k in (3, 4, 6)),
        *(Row(name, name, k, strategies=KINDS) for name, k in bundled),
        Row("frontier k=4 eps=0.05", "frontier", 4, 0.05, strategies=KINDS),
        *(Row(f"frontier k=4, {rate:.0%} wrong", "frontier", 4, 0.01, rate, careful) for rate in WITH_ERRORS),
    ]


def quick_rows() -> list[Row]:
    """Return a few small rows of every kind."""
    return [
        Row("random k=2", "random", 2),
        Row("frontier k=3", "frontier", 3),
        Row("negatively correlated k=3", "negative", 3),
        Row("mdp k=3", "mdp", 3),
        Row("dependent", "dependent", 3),
        *with_errors(3),
    ]


def run(rows: Sequence[Row], instances: int, jobs: int) -> Iterator[tuple[list[dict[str, Any]], list[Outcome]]]:
    """Yield the lines of one row after the other, with the interviews behind them."""
    tasks = [joblib.delayed(numbered)(at, row, number) for at, row in enumerate(rows) for number in range(instances)]
    parallel = joblib.Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")
    waiting: dict[int, list[list[Outcome]]] = {at: [] for at in range(len(rows))}
    following = 0
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True)) as progress:
        task = progress.add_task("people", total=len(tasks))
        for at, found in parallel(tasks):
            waiting[at].append(found)
            progress.advance(task)
            while following < len(rows) and len(waiting[following]) == instances:
                flat = sorted((o for part in waiting.pop(following) for o in part), key=lambda o: o["instance"])
                names = list(dict.fromkeys(o["strategy"] for o in flat))
                lines = [summarise(rows[following], name, [o for o in flat if o["strategy"] == name]) for name in names]
                yield lines, flat
                following += 1


def numbered(at: int, row: Row, number: int) -> tuple[int, list[Outcome]]:
    """Return what one person comes to, with the row they belong to; called in the worker processes."""
    return at, outcomes(row, number)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few small rows, 3 instances, one process")
    parser.add_argument("--kinds", action="store_true", help="pairs beside menus, with 2 to 10 objectives")
    parser.add_argument("--instances", type=int, help="a row (default 40)")
    parser.add_argument("--jobs", type=int, help="processes (default: one per core)")
    parser.add_argument("--most", type=int, default=10, metavar="K", help="leave out rows of more objectives")
    parser.add_argument("--only", metavar="TEXT", help="only rows whose name contains this")
    parser.add_argument("--strategies", metavar="NAMES", help="only these, with semicolons between: certified;careful")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything to this file")
    given = parser.parse_args(arguments)
    rows = kinds_rows() if given.kinds else quick_rows() if given.quick else all_rows()
    chosen = [row for row in rows if row.k <= given.most]
    chosen = [row for row in chosen if given.only is None or given.only in row.name]
    if given.strategies is not None:
        wanted = [name.strip() for name in given.strategies.split(";")]
        unknown = [name for name in wanted if name not in STRATEGIES]
        if unknown:
            parser.error(f"there is no strategy {unknown[0]!r}; there are {'; '.join(STRATEGIES)}")
        kept = [(row, tuple(name for name in row.strategies if name in wanted)) for row in chosen]
        chosen = [Row(**{**asdict(row), "strategies": names}) for row, names in kept if names]
    if not chosen:
        parser.error("no row is left; see --most and --only")
    instances = given.instances or (3 if given.quick else 40)
    jobs = given.jobs or (1 if given.quick else -1)
    print(f"{instances} instances a row, target {100 * TARGET:g}%, regrets and certificates in %")
    lines: list[dict[str, Any]] = []
    interviews: list[Outcome] = []
    header = ""
    for found, behind in run(chosen, instances, jobs):
        needed = ERRORS_HEADER if found[0]["error_rate"] else EXACT_HEADER
        if needed != header:
            header = needed
            print(f"\n{header}")
        for line in found:
            print(text(line), flush=True)
        lines += found
        interviews += behind
        if given.json:
            given.json.write_text(json.dumps({"lines": lines, "interviews": interviews}, indent=1), encoding="utf-8")
    print()
    for told in verdicts(lines, interviews):
        print(told)


if __name__ == "__main__":
    main()
