"""Law 6 on many interviews: is a certificate ever exceeded?

    python benchmarks/certificates.py                      10,000 interviews (about half an hour on two cores)
    python benchmarks/certificates.py --interviews 500     fewer

Random catalogues of every awkward kind (ties, duplicates, low rank, dead objectives, ill-conditioned) and random MDPs,
k = 2..8, precisions from 0 to half of the best worth, people with zero weights, with and without lotteries, `certified`
and `careful` by turns. After every answer the true relative regret of the recommendation is compared with its bound
and so is that of 200 other respondents who would have given the
same answers, without those that are not trusted. The exit code is 1 if any bound was exceeded by more than rounding (1e-9).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the tests' random problems

import numpy as np
from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import Progress

ROUNDING = 1e-9
SHARD = 50


def interview(seed: int) -> tuple[int, int, float]:
    """Return (certificates checked, exceeded, largest excess) of one interview."""
    from tests.strategies.people import KINDS, person, random_catalogue, random_mdp, regret

    from tradeoff import Interview

    rng = np.random.default_rng([seed, 6])
    k = int(rng.integers(2, 9))
    mdp = seed % 5 == 0
    kind = KINDS[int(rng.integers(len(KINDS)))]
    problem = random_mdp(rng, min(k, 5)) if mdp else random_catalogue(rng, k, items=40, kind=kind)
    precision = float(rng.choice([0.0, 0.001, 0.01, 0.1, 0.5]))
    user = person(rng, problem, precision, sparse=bool(rng.random() < 0.4))
    strategy = "careful" if seed % 2 else "certified"
    running = Interview(problem, strategy, target=0.01, lotteries=bool(rng.random() < 0.3), seed=seed, max_questions=10)
    others = rng.dirichlet(np.ones(len(problem.objectives)), size=200)
    precisions = 10 ** rng.uniform(-4, 0, size=200)
    agree: list[np.ndarray] = []  # per answer, which of the others would have given it
    best = np.array([w @ a.value for w, a in zip(others, problem.best(others), strict=True)])
    checked = exceeded = 0
    worst = -np.inf
    while True:
        found = running.recommendation
        if found.regret_bound is not None:
            not_trusted = (*found.doubtful, *found.unexplained)
            trusted = [fit for number, fit in enumerate(agree, start=1) if number not in not_trusted]
            fits = np.all([np.ones(200, dtype=bool), *trusted], axis=0)
            losses = [regret(problem, user, found)]  # their answers are all right, and so are the trusted ones
            if fits.any():
                losses += (1 - others[fits] @ found.option.value / best[fits]).tolist()
            excess = max(losses) - found.regret_bound
            checked, exceeded, worst = checked + 1, exceeded + (excess > ROUNDING), max(worst, excess)
        question = running.ask()
        if question is None:
            return checked, exceeded, worst
        reply = user(question)
        gains = others @ question.difference
        theirs = np.select([gains > precisions, gains < -precisions], [0, 1], 2)  # as in question.replies
        agree.append(theirs == question.replies.index(reply))
        running.tell(reply)


def shard(begin: int, count: int) -> tuple[int, int, float]:
    """Return the sums over some interviews."""
    rows = [interview(seed) for seed in range(begin, begin + count)]
    return sum(r[0] for r in rows), sum(r[1] for r in rows), max(r[2] for r in rows)


def main() -> None:
    """Run the interviews and print the verdict."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--interviews", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=-1)
    given = parser.parse_args()
    shards = [(b, min(SHARD, given.interviews - b)) for b in range(0, given.interviews, SHARD)]
    begin = time.perf_counter()
    checked = exceeded = done = 0
    worst = -np.inf
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("interviews", total=given.interviews)
        work = Parallel(n_jobs=given.jobs, return_as="generator_unordered")
        for part in work(delayed(shard)(*one) for one in shards):
            checked, exceeded, worst, done = checked + part[0], exceeded + part[1], max(worst, part[2]), done + SHARD
            progress.update(task, completed=done)
    print(f"{given.interviews:,} interviews, {checked:,} certificates: {exceeded} exceeded; the closest came to within "
          f"{-worst:.2e} of its bound ({time.perf_counter() - begin:.0f} s)")  # fmt: skip
    sys.exit(1 if exceeded else 0)


if __name__ == "__main__":
    main()
