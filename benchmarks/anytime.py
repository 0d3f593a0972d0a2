"""How good is the recommendation after n answers? Curves for n = 0..10 beside other ways to learn, as tables in Markdown.

    python benchmarks/anytime.py                       96 people per table, on all cores
    python benchmarks/anytime.py --people 8 --k 3

People stop early, so every answer counts. On random catalogues (points on a sphere and in a cube, by turns) of 3, 4 and 6
objectives, the same people meet ``careful``, equal weights, and Bayesian learners of a linear preference that are written down
here: samples of the posterior with 8% slips, the recommendation of least expected regret among all items that anybody may
want, and the question of largest

- EUBO: expected worth of the better of the two;
- EVOI: expected worth of what is recommended after the answer;
- MI: mutual information between the answer and the person.

The area is the mean over n = 0..10. Regrets are relative, in percent. Differences are between what the same people lose with
one and with the other, with their standard error. Whoever ``careful`` has finished with keeps what was recommended; how those
compare whom it still asks is said as well. Where the best of the others is taken at every n, chance alone makes it
look better than any one of them.
"""

from __future__ import annotations

import os

if __name__ == "__main__":  # one thread a process, set before the libraries are imported
    for _name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(_name, "1")

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from tradeoff.evidence import Answer, Evidence
from tradeoff.model import Question
from tradeoff.problems.catalogue import Catalogue
from tradeoff.simulation.respondents import Habits, Kind, Respondent
from tradeoff.strategies import start
from tradeoff.strategies.posterior import DirichletMixture, ResponseModel, pair_chances, sample_prior, update_samples
from tradeoff.strategies.tuning import CAREFUL

sys.path.insert(0, str(Path(__file__).parent))
from cores import on_all_cores
from people import random_catalogue

ANSWERS = 10
SAMPLES = 500
FAVOURITES = 16  # items best for the most samples, whose pairs are questions,
PAIRS = 300  # beside random pairs of everything that is best for somebody
SUPPOSED = ResponseModel(lapse=(0.08, 0.08))
BATCH = 2

Matrix = NDArray[np.float64]
Score = Callable[[Matrix, Matrix, NDArray[np.intp]], NDArray[np.float64]]


def eubo(shares: Matrix, answers: Matrix, pairs: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the expected worth of the better of each two; ``shares[M, K]`` are of each sample's best."""
    found: NDArray[np.float64] = np.maximum(shares[:, pairs[:, 0]], shares[:, pairs[:, 1]]).mean(axis=0)
    return found


def evoi(shares: Matrix, answers: Matrix, pairs: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the expected worth of the recommendation after each answer; ``answers[3, M, Q]``."""
    found: NDArray[np.float64] = np.sum([(shares.T @ answer).max(axis=0) for answer in answers], axis=0) / len(shares)
    return found


def mutual_information(shares: Matrix, answers: Matrix, pairs: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return what each answer tells about the person."""
    mean = answers.mean(axis=1)
    found: NDArray[np.float64] = (answers * np.log(answers)).sum(axis=0).mean(axis=0) - (mean * np.log(mean)).sum(
        axis=0
    )
    return found


LEARNERS: dict[str, Score] = {"EUBO": eubo, "EVOI": evoi, "mutual information": mutual_information}
NAMES = ("careful", *LEARNERS, "equal weights")


class Curve(TypedDict):
    """The regrets of one person's recommendations after 0, 1, ... answers."""

    k: int
    wrong: float
    person: int
    name: str
    regrets: list[float]
    answers: int  # given before it ended by itself, if it did


def learner(score: Score, problem: Catalogue, who: Respondent, rng: np.random.Generator) -> list[float]:
    """Return the regrets after each answer to a Bayesian learner."""
    gains, d = problem.gains, len(problem.objectives)
    evidence, prior = Evidence.none(np.arange(d)), DirichletMixture.default(d)
    samples = sample_prior(SAMPLES, SUPPOSED, prior, rng)
    asked: set[tuple[int, int]] = set()
    found: list[float] = []
    for n in range(ANSWERS + 1):
        worth = samples.weights @ gains.T
        shares = worth / worth.max(axis=1, keepdims=True)
        found.append(who.regret(problem.option(int(shares.mean(axis=0).argmax()))))
        if n == ANSWERS:
            return found
        counts = np.bincount(worth.argmax(axis=1), minlength=len(gains))
        wanted = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
        pool = {(int(a), int(b)) for i, a in enumerate(wanted[:FAVOURITES]) for b in wanted[:i] if a != b}
        pool |= {(int(a), int(b)) for a, b in rng.choice(wanted, (PAIRS, 2)) if a != b}
        pairs = np.array(sorted({(max(p), min(p)) for p in pool} - asked) or sorted(pool) or [(0, 1)])
        answers = pair_chances(samples, gains[pairs[:, 0]] - gains[pairs[:, 1]])
        first, second = pairs[score(shares, answers, pairs).argmax()].tolist()
        asked.add((first, second))
        question = Question((problem.option(first), problem.option(second)))
        evidence = evidence.update(Answer(question, who(question)))
        samples = update_samples(samples, evidence, n, SAMPLES, SUPPOSED, prior, rng, CAREFUL.steps)
    return found


def careful(problem: Catalogue, who: Respondent) -> tuple[list[float], int]:
    """Return the regrets after each answer to ``careful``, and after how many it ends; what it recommends then stays."""
    running = start("careful", problem)
    found: list[float] = []
    try:
        step = next(running)
        while len(found) <= ANSWERS:
            found.append(who.regret(step.recommend().option))
            step = running.send(who(step.question))
    except StopIteration as end:
        answers = len(found)
        return found + [who.regret(end.value.option)] * (ANSWERS + 1 - answers), answers
    return found, ANSWERS


def equal_weights(problem: Catalogue, who: Respondent) -> list[float]:
    """Return the regrets of asking nothing."""
    (equal,) = problem.best(np.ones((1, len(problem.objectives))))
    return [who.regret(equal)] * (ANSWERS + 1)


def curves(k: int, wrong: float, person: int) -> list[Curve]:
    """Return the curves of one person."""
    problem = random_catalogue("sphere" if person % 2 else "uniform", k, person // BATCH)
    weights = np.random.default_rng([k, person]).dirichlet(np.ones(k))

    def somebody() -> Respondent:
        return Respondent(problem, weights, Kind(Habits(slips=wrong)), seed=person)

    mine, answers = careful(problem, somebody())
    made = {"careful": mine, "equal weights": equal_weights(problem, somebody())}
    for name, score in LEARNERS.items():
        made[name] = learner(score, problem, somebody(), np.random.default_rng([k, person, 1]))
    return [Curve(k=k, wrong=wrong, person=person, name=name, regrets=made[name], answers=answers) for name in NAMES]


def table(found: list[Curve]) -> None:
    """Print the curves of one number of objectives and one share of wrong answers."""
    by_name = {name: 100 * np.array([one["regrets"] for one in found if one["name"] == name]) for name in NAMES}
    print("| | " + " | ".join(f"n = {n}" for n in range(ANSWERS + 1)) + " | area | more than careful |")
    print("|---" + "|---:" * (ANSWERS + 3) + "|")
    mine = by_name["careful"]
    for name, regrets in by_name.items():
        gap = regrets.mean(axis=1) - mine.mean(axis=1)
        cells = [f"{x:.2f}" for x in (*regrets.mean(axis=0), regrets.mean())]
        print(f"| {name} | {' | '.join(cells)} | {gap.mean():+.2f} ± {gap.std() / len(gap) ** 0.5:.2f} |")
    asked = np.array([one["answers"] for one in found if one["name"] == "careful"])
    everybody = np.zeros((len(mine), ANSWERS + 1), dtype=bool)
    for whom, left_out in (
        ("", everybody),
        ("Among those whom it still asks, ", np.arange(ANSWERS + 1) > asked[:, None]),
    ):
        print(f"\n{whom or 'In all, '}careful is above the best of the others at {above(by_name, ~left_out)}.")
    print()


def above(by_name: dict[str, Matrix], counted: NDArray[np.bool_]) -> str:
    """Return after which answers ``careful`` is above the best of the others, by how much, and among how many people."""
    told = []
    for n in range(ANSWERS + 1):
        now = {name: regrets[counted[:, n], n] for name, regrets in by_name.items()}
        mine = now.pop("careful")
        if len(mine) < 2:
            continue
        best = min(now, key=lambda name: float(now[name].mean()))
        gap = mine - now[best]
        if gap.mean() > 1e-9:
            told.append(f"n = {n} by {gap.mean():.2f} ± {gap.std() / len(gap) ** 0.5:.2f} ({best}, {len(gap)} people)")
    return ", ".join(told) or "no n"


def main() -> None:
    """Print the tables."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--people", type=int, default=96, help="simulated people per table")
    reader.add_argument("--k", default="3,4,6", help="numbers of objectives")
    reader.add_argument("--wrong", default="0,0.1", help="shares of wrong answers")
    reader.add_argument(
        "--first", type=int, default=0, help="the number of the first person: others than those tuned on"
    )
    reader.add_argument("--jobs", type=int, help="processes; by default one per core")
    reader.add_argument("--json", type=Path)
    given = reader.parse_args()
    begin = time.perf_counter()
    rows = [(int(k), float(wrong)) for k in given.k.split(",") for wrong in given.wrong.split(",")]
    tasks = [(k, wrong, person) for k, wrong in rows for person in range(given.first, given.first + given.people)]
    found = [one for made in on_all_cores(curves, tasks, given.jobs, batch=BATCH) for one in made]
    for k, wrong in rows:
        print(f"### k = {k}, {'exact answers' if not wrong else f'{100 * wrong:g}% wrong answers'}\n")
        table([one for one in found if (one["k"], one["wrong"]) == (k, wrong)])
    print(f"Mean regret in percent, {given.people} people each; {time.perf_counter() - begin:.0f} s.")
    if given.json:
        given.json.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
