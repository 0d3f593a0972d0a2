"""How many questions a prior learned from earlier respondents saves, as a table in Markdown.

    python benchmarks/earlier.py                       on all cores
    python benchmarks/earlier.py --next 8 --populations 1

A population is a mixture of three types: weights are Dirichlet around the centre of a type, with concentration 40 or 10.
Some earlier people are asked with the usual prior; ``learn_prior`` makes one of their answers; then the next ones of the
same population, and outsiders (weights drawn evenly), are asked with the usual prior and with the learned one. All answer
exactly, up to 1% of the best. Regrets are relative.
"""

from __future__ import annotations

import os

if __name__ == "__main__":  # one thread a process, set before the libraries are imported
    for _name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(_name, "1")

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import tradeoff
from tradeoff.evidence import Answer
from tradeoff.problem import Problem
from tradeoff.simulation.respondents import KINDS, Respondent
from tradeoff.strategies import start
from tradeoff.strategies.prior import Prior, learn_prior

sys.path.insert(0, str(Path(__file__).parent))
from people import random_catalogue

TYPES = 3
PROBLEMS = ("commute", "coffee", "sphere 4", "uniform 6")


class Figures(NamedTuple):
    """Means over some people."""

    usual: float
    learned: float
    usual_regret: float
    learned_regret: float
    outside_usual: float
    outside_learned: float


def problem_of(name: str, population: int) -> Problem:
    """Return a bundled problem, or a random catalogue of this population's own."""
    if " " not in name:
        return tradeoff.load(name)
    kind, k = name.split()
    return random_catalogue(kind, int(k), 1000 + population)


def asked(problem: Problem, weights: NDArray[np.float64], prior: Prior | None) -> tuple[list[Answer], float]:
    """Return the answers of one person, and the regret of what is recommended."""
    who = Respondent(problem, weights, KINDS["exact"], seed=0)
    running = start("careful", problem, prior=prior)
    answers: list[Answer] = []
    try:
        step = next(running)
        while True:
            answers.append(Answer(step.question, who(step.question), len(answers) + 1))
            step = running.send(answers[-1].reply)
    except StopIteration as end:
        return answers, who.regret(end.value.option)


def population(name: str, concentration: float, number: int, before: int, after: int) -> Figures:
    """Return the figures of one population."""
    problem = problem_of(name, number)
    k = len(problem.objectives)
    rng = np.random.default_rng([number, int(concentration), k])
    centres = rng.dirichlet(np.ones(k), TYPES)

    def somebody() -> NDArray[np.float64]:
        return rng.dirichlet(concentration * centres[rng.integers(TYPES)] + 1e-3)

    earlier = [asked(problem, somebody(), None)[0] for _ in range(before)]
    prior = learn_prior(problem, earlier)
    found = []
    for outside in (False, True):
        for _ in range(after):
            weights = rng.dirichlet(np.ones(k)) if outside else somebody()
            pair = [asked(problem, weights, given) for given in (None, prior)]
            found.append([outside, *(len(answers) for answers, _ in pair), *(regret for _, regret in pair)])
    rows = np.array(found, dtype=float)
    inside, outsiders = rows[rows[:, 0] == 0, 1:].mean(axis=0), rows[rows[:, 0] == 1, 1:3].mean(axis=0)
    return Figures(*inside.tolist(), *outsiders.tolist())


def main() -> None:
    """Print the table."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--earlier", type=int, default=30, help="people who were asked before")
    reader.add_argument("--next", type=int, default=15, help="people of the population, and as many outsiders")
    reader.add_argument("--populations", type=int, default=4)
    reader.add_argument("--jobs", type=int, help="processes; by default one per core")
    given = reader.parse_args()
    begin = time.perf_counter()
    rows = [(name, concentration) for name in PROBLEMS for concentration in (40.0, 10.0)]
    tasks = [(*row, number, given.earlier, given.next) for row in rows for number in range(given.populations)]
    with ProcessPoolExecutor(given.jobs) as pool:
        figures = list(pool.map(population, *zip(*tasks, strict=True)))
    print("| problem, concentration | usual prior | learned | fewer | regret, usual | learned |", end="")
    print(" outsiders, usual | learned |\n|---" + "|---:" * 7 + "|")
    everything = []
    for row in rows:
        mean = np.mean([one for task, one in zip(tasks, figures, strict=True) if task[:2] == row], axis=0)
        everything.append(mean)
        print(line(f"{row[0]}, {row[1]:g}", mean))
    print(line("all", np.mean(everything, axis=0)))
    print(f"\nQuestions; regrets in percent; {given.earlier} earlier people; {time.perf_counter() - begin:.0f} s.")


def line(label: str, mean: NDArray[np.float64]) -> str:
    """Return a row of the table."""
    usual, learned, usual_regret, learned_regret, outside_usual, outside_learned = mean
    return (
        f"| {label} | {usual:.1f} | {learned:.1f} | {100 * (1 - learned / usual):.0f}% | {100 * usual_regret:.2f} | "
        f"{100 * learned_regret:.2f} | {outside_usual:.1f} | {outside_learned:.1f} |"
    )


if __name__ == "__main__":
    main()
