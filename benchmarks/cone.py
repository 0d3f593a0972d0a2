"""The cone's extreme rays, updated after every answer, beside Qhull from scratch (scipy's HalfspaceIntersection).

    python benchmarks/cone.py [--quick] [--interviews N]

Simulated interviews: a random catalogue of 500, hidden weights, questions between optima of respondents who
are still possible. After every answer both compute the rays, one after the other; the time to find Qhull's interior point
is not counted. CPU time on one thread, means over the cuts of all interviews: trust the ratio.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

import argparse
import sys
import time
from collections.abc import Iterator

import numpy as np
from scipy.spatial import HalfspaceIntersection

from tradeoff.evidence import Answer, half_spaces
from tradeoff.model import Matrix, Option, Question
from tradeoff.simulation.respondents import LinearRespondent
from tradeoff.strategies.cone import Cone

CATALOGUE = 500
PRECISION = 0.01  # relative to the best value


def by_qhull(cone: Cone) -> Matrix:
    inside = cone.interior
    assert inside is not None
    basis = np.linalg.svd(np.r_[np.ones(cone.d), 0.0][None])[2][1:]
    system = np.hstack([-cone.half_spaces @ basis.T, -(cone.half_spaces @ inside)[:, None]])
    options = "Qx" if cone.d >= 5 else None
    points = HalfspaceIntersection(system, np.zeros(cone.d), qhull_options=options).intersections
    found: Matrix = points[np.isfinite(points).all(axis=1)] @ basis + inside
    return found


def interview(d: int, seed: int, most: int) -> Iterator[tuple[Cone, Matrix]]:
    """Yield every cone with the half-spaces that the next answer adds to it."""
    rng = np.random.default_rng([d, seed])
    values = rng.random((CATALOGUE, d))
    w = rng.dirichlet(np.ones(d))
    respondent = LinearRespondent(w, PRECISION * float((values @ w).max()))
    cone = Cone.orthant(d)
    for label in range(most):
        rays = cone.rays
        people = np.vstack([rays[rng.integers(len(rays))], rng.dirichlet(np.full(len(rays), 0.3)) @ rays])
        first, second = np.argmax(people[:, :d] @ values.T, axis=1)
        if first == second:
            continue
        question = Question((Option(values[first]), Option(values[second])))
        rows = half_spaces(*Answer(question, respondent(question)).certain_terms())
        yield cone, rows
        cone = cone.add(rows, label)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="up to m = 8 only")
    parser.add_argument("--interviews", type=int, default=4)
    options = parser.parse_args()
    print("  m  cuts    rays    most   ms/cut     most  Qhull ms     most   ratio")
    for m in range(4, 9 if options.quick else 12):
        ours, theirs, counts = list[float](), list[float](), list[int]()
        for seed in range(options.interviews):
            print(f"m = {m}, interview {seed + 1} of {options.interviews}", end="\r", file=sys.stderr, flush=True)
            for cone, rows in interview(m - 1, seed, most=4 * m):
                begin = time.process_time()
                cut = cone.add(rows, len(ours))
                rays = cut.rays
                ours.append(time.process_time() - begin)
                begin = time.process_time()
                expected = by_qhull(cut)
                theirs.append(time.process_time() - begin)
                counts.append(len(rays))
                direction = np.random.default_rng(len(ours)).normal(size=m)
                if abs((rays @ direction).max() - (expected @ direction).max()) > 1e-6:
                    print(f"m = {m}, interview {seed}: the two differ", file=sys.stderr)
        mine, other = 1e3 * np.array(ours), 1e3 * np.array(theirs)
        print(
            f"{m:3} {len(mine):5} {np.mean(counts):7.0f} {max(counts):7} {mine.mean():8.2f} {mine.max():8.2f} "
            f"{other.mean():9.2f} {other.max():8.2f} {other.mean() / mine.mean():6.1f}x",
            flush=True,
        )


if __name__ == "__main__":
    main()
