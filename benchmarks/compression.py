"""C4 side by side with everything else that reduces a weighted set of points to k+1 with the same mean.

    python benchmarks/compression.py [--quick] [--rounds N] [--json FILE]

CPU time on one thread, contenders interleaved within each round, median of the rounds: trust the ratios. "best peer" is
the fastest that pip can install, whether or not it is exact. Errors are those of the mean, relative to each coordinate's
largest absolute value, in extended precision. Peers that are not installed are left out and named.
"""

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
os.environ.setdefault("KMP_BLOCKTIME", "0")  # Intel's OpenMP would count its idle waiting against pyrecombine
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import argparse
import importlib.util
import json
import logging
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog, nnls

from tradeoff.mdp.stories.compress import compress

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Result = tuple[NDArray[np.int64], Vector]
Contender = Callable[[Matrix, Vector], Result]

TARGET_RATIO = 1.0  # over the best peer, for n >= 200
TARGET_ERROR = 1e-14  # of scale
SIZES = [
    (10, 2),
    (10, 8),
    (40, 2),
    (40, 4),
    (40, 8),
    (40, 32),
    (200, 2),
    (200, 8),
    (200, 32),
    (1000, 2),
    (1000, 8),
    (1000, 32),
]
SIZES += [(10_000, 2), (10_000, 8), (10_000, 32), (100_000, 2), (100_000, 8), (100_000, 32)]
QUICK = [(10, 2), (40, 4), (200, 8), (1000, 8), (1000, 32), (10_000, 8)]
PATIENCE = 4.0  # seconds: a contender that needs longer for one call at a smaller size is left out at larger ones


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# ---------------------------------------------------------------------------------------------------- the contenders


def by_compress(points: Matrix, weights: Vector) -> Result:
    return compress(points, weights)


def by_nnls(points: Matrix, weights: Vector) -> Result:
    lifted = np.vstack([points.T, np.ones(len(points))])
    solution, _ = nnls(lifted, np.append(weights @ points, 1.0), maxiter=30 * len(points))
    rows = np.flatnonzero(solution > 0)
    return rows, solution[rows]


def by_highs(points: Matrix, weights: Vector) -> Result:
    lifted = np.vstack([points.T, np.ones(len(points))])
    answer = linprog(-weights, A_eq=lifted, b_eq=np.append(weights @ points, 1.0), method="highs-ds")
    if answer.x is None:
        raise RuntimeError(str(answer.message))
    rows = np.flatnonzero(answer.x > 0)
    return rows, answer.x[rows]


def the_papers() -> Contender:
    """Return Algorithm 3 as printed, which lives with the tests."""
    path = Path(__file__).resolve().parent.parent / "tests" / "representation" / "naive_c4.py"
    spec = importlib.util.spec_from_file_location("naive_c4", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Contender = module.naive_c4
    return found


def pyrecombine() -> Contender:
    """Return Lyons' recombine (C++), from PyPI."""
    recombine = import_module("pyrecombine").recombine

    def run(points: Matrix, weights: Vector) -> Result:
        rows, shares = recombine(points, np.arange(len(points)), weights)
        return np.asarray(rows), np.asarray(shares)

    return run


def coreax() -> Contender:
    """Return Coreax's tree recombination (JAX), from PyPI, compiled for each shape before it is timed."""
    logging.getLogger("jax").setLevel(logging.ERROR)
    jax, equinox, data = import_module("jax"), import_module("equinox"), import_module("coreax").Data
    jax.config.update("jax_enable_x64", True)
    solver = import_module("coreax.solvers").TreeRecombination()
    reduce = equinox.filter_jit(lambda given: solver.reduce(given)[0])

    def run(points: Matrix, weights: Vector) -> Result:
        answer = reduce(data(jax.numpy.asarray(points), jax.numpy.asarray(weights)))
        shares = np.asarray(answer.points.weights)
        rows = np.asarray(answer.indices.data).ravel()
        return rows[shares > 0], shares[shares > 0]

    return run


def contenders() -> tuple[dict[str, Contender], dict[str, str]]:
    """Return the contenders that are here, the product first, and what is known of each peer."""
    found: dict[str, Contender] = {"compress": by_compress, "paper": the_papers()}
    found |= {"nnls": by_nnls, "highs": by_highs}
    notes = {"nnls": f"scipy {version('scipy')}", "highs": f"scipy {version('scipy')}"}
    for name, load in (("pyrecombine", pyrecombine), ("coreax", coreax)):
        try:
            found[name] = load()
            notes[name] = version(name)
        except (ImportError, OSError, PackageNotFoundError) as reason:
            notes[name] = f"not installed ({type(reason).__name__})"
    return found, notes


PEERS = ("nnls", "highs", "pyrecombine", "coreax")

# ------------------------------------------------------------------------------------------------------- measurements


def error_of_scale(points: Matrix, weights: Vector, result: Result) -> float:
    """Return the largest error of the mean relative to each coordinate's largest value, and of the sum of weights."""
    rows, shares = result
    wide = np.longdouble
    mean = weights.astype(wide) @ points.astype(wide) / weights.astype(wide).sum()
    ours = shares.astype(wide) @ points[rows].astype(wide)
    scale = np.abs(points[weights > 0]).max(axis=0)
    relative = np.abs(ours - mean)[scale > 0] / scale[scale > 0]
    return float(max(relative.max(initial=0.0), abs(shares.astype(wide).sum() - 1)))


def seconds(run: Contender, points: Matrix, weights: Vector, repeats: int) -> float:
    begin = time.process_time()
    for _ in range(repeats):
        run(points, weights)
    return (time.process_time() - begin) / repeats


def gaussian(n: int, k: int, seed: int) -> tuple[Matrix, Vector]:
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(n, 0.5)) + 1e-300
    return rng.normal(size=(n, k)), weights / weights.sum()


def race(sizes: list[tuple[int, int]], rounds: int, field: dict[str, Contender]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    slow: set[tuple[str, int]] = set()
    for n, k in sizes:
        points, weights = gaussian(n, k, seed=n + k)
        row: dict[str, Any] = {"n": n, "k": k, "seconds": {}, "error": {}, "kept": {}, "failed": {}}
        repeats: dict[str, int] = {}
        for name, run in field.items():
            if any(name == other and k >= its for other, its in slow):
                row["failed"][name] = "left out: too slow at a smaller size"
                continue
            try:
                result = run(points, weights)
                first = seconds(run, points, weights, 1)
            except Exception as reason:
                row["failed"][name] = f"{type(reason).__name__}: {reason}".splitlines()[0][:80]
                continue
            row["error"][name] = error_of_scale(points, weights, result)
            row["kept"][name] = len(result[0])
            repeats[name] = max(1, min(2000, int(0.005 / max(first, 1e-7))))
            row["seconds"][name] = [first] if first > 1.0 else []
            if first > PATIENCE / 10:  # ten times as many points would exhaust it
                slow.add((name, k))
        for done in range(rounds):
            for name, count in repeats.items():
                if len(row["seconds"][name]) <= done:
                    row["seconds"][name].append(seconds(field[name], points, weights, count))
        row["seconds"] = {name: median(times) for name, times in row["seconds"].items()}
        present = [name for name in PEERS if name in row["seconds"]]
        best = min(present, key=lambda name: float(row["seconds"][name]))
        row["best"] = best
        row["ratio"] = row["seconds"][best] / row["seconds"]["compress"]
        rows.append(row)
        say(f"  n={n} k={k}: compress {1e6 * row['seconds']['compress']:.1f} us, {row['ratio']:.1f} x {best}")
    return rows


def in_a_row(rounds: int, field: dict[str, Contender]) -> list[dict[str, Any]]:
    """Return the time of 100 calls, as in expand-and-compress (Algorithm 4): one per time step."""
    rows = []
    for n, k in ((90, 8), (450, 8)):
        instances = [gaussian(n, k, seed=step) for step in range(100)]
        times: dict[str, list[float]] = {name: [] for name in field if name != "coreax"}
        for done in range(max(1, rounds // 2)):
            for name in times:
                if name in ("paper", "highs", "pyrecombine") and done:
                    continue
                begin = time.process_time()
                for points, weights in instances:
                    field[name](points, weights)
                times[name].append(time.process_time() - begin)
        rows.append({"n": n, "k": k, "seconds": {name: median(found) for name, found in times.items()}})
        say(f"  100 calls at n={n}, k={k} done")
    return rows


def degenerate_cases() -> dict[str, tuple[Matrix, Vector, int]]:
    """Return inputs on which something is known to fail, each with its affine rank."""
    rng = np.random.default_rng(11)
    n, k = 60, 4
    uniform = np.full(n, 1 / n)
    points = rng.normal(size=(n, k))
    random = rng.dirichlet(np.ones(n))
    rare = np.where(np.arange(n) == 0, 1e-9, 1.0)
    rarest = np.where(np.arange(n) < 6, 1e-12, 1.0)
    line = np.outer(rng.normal(size=n), rng.normal(size=k)) + rng.normal(size=k)
    near = points.copy()
    near[:, 3] = near[:, 0] + 1e-9 * rng.normal(size=n)
    return {
        "scales 1e6 beside 1e-6": (points * [1e6, 1e-6, 1.0, 1e-3], random, k),
        "mean 1e6, spread 1": (points + 1e6, random, k),
        "one event of 1e-9": (points * np.where(np.arange(n) == 0, 50.0, 1.0)[:, None], rare / rare.sum(), k),
        "six events of 1e-12": (points, rarest / rarest.sum(), k),
        "duplicated points": (points[rng.integers(0, 12, size=n)], random, k),
        "collinear points": (line, random, 1),
        "points in a plane": (rng.normal(size=(n, 2)) @ rng.normal(size=(2, k)), random, 2),
        "identical points": (np.tile(points[0], (n, 1)), random, 0),
        "nearly dependent, 1e-9": (near, random, k),
        "equal weights": (points, uniform, k),
        "equal weights on a grid": (rng.integers(0, 3, size=(n, k)).astype(float), uniform, k),
        "weights of zero": (points, np.where(np.arange(n) % 2, 2 / n, 0.0), k),
        "n = k + 1": (points[: k + 1], random[: k + 1] / random[: k + 1].sum(), k),
        "n = 1": (points[:1], np.ones(1), 0),
        "values near 1e300": (points * 1e300, random, k),
    }


def stress(field: dict[str, Contender]) -> list[dict[str, Any]]:
    rows = []
    for case, (points, weights, rank) in degenerate_cases().items():
        row: dict[str, Any] = {"case": case, "rank": rank, "outcome": {}}
        for name, run in field.items():
            try:
                rows_kept, shares = run(points, weights)
                with np.errstate(all="ignore"):
                    error = error_of_scale(points, weights, (rows_kept, shares))
                row["outcome"][name] = {"error": error, "kept": len(rows_kept), "positive": bool(np.all(shares > 0))}
            except Exception as reason:
                row["outcome"][name] = {"failed": type(reason).__name__}
        rows.append(row)
    return rows


# -------------------------------------------------------------------------------------------------------- the report


def table(head: list[str], body: list[list[str]]) -> str:
    widths = [max(len(line[column]) for line in [head, *body]) for column in range(len(head))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in [head, *body]]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def microseconds(value: float | None) -> str:
    return "-" if value is None else f"{1e6 * value:,.1f}" if value < 1e-3 else f"{1e6 * value:,.0f}"


def report(results: dict[str, Any], names: list[str]) -> bool:
    """Print the tables and what was missed; return whether nothing was."""
    missed: list[str] = []
    print("peers: " + ", ".join(f"{name} {note}" for name, note in results["peers"].items()), "\n")
    print("CPU microseconds per call; - is left out: it failed, or took too long with fewer points")
    body = []
    for row in results["race"]:
        cells = [microseconds(row["seconds"].get(name)) for name in names]
        body.append([f"{row['n']:,}", str(row["k"]), *cells, row["best"], f"{row['ratio']:.1f}"])
        if row["n"] >= 200 and row["ratio"] < TARGET_RATIO:
            missed.append(f"n={row['n']}, k={row['k']}: {row['ratio']:.1f} times {row['best']}, not {TARGET_RATIO:g}")
        if row["error"]["compress"] > TARGET_ERROR:
            missed.append(f"n={row['n']}, k={row['k']}: error {row['error']['compress']:.1e} of scale")
    print(table(["n", "k", *names, "best peer", "ratio"], body), "\n")
    print("error of scale (points kept)")
    body = []
    for row in results["race"]:
        cells = [f"{row['error'][name]:.0e} ({row['kept'][name]})" if name in row["error"] else "-" for name in names]
        body.append([f"{row['n']:,}", str(row["k"]), *cells])
    print(table(["n", "k", *names], body), "\n")
    print("100 calls in a row, CPU milliseconds (Algorithm 4 calls C4 once per time step)")
    present = list(results["in_a_row"][0]["seconds"])
    body = [
        [str(r["n"]), str(r["k"]), *(f"{1e3 * r['seconds'][name]:,.1f}" for name in present)]
        for r in results["in_a_row"]
    ]
    print(table(["n", "k", *present], body), "\n")
    print("degenerate inputs: error of scale (points kept); ! marks an error above 1e-14 or more points than rank + 1")
    body = []
    for row in results["degenerate"]:
        cells = []
        for name in names:
            outcome = row["outcome"].get(name, {"failed": "-"})
            if "failed" in outcome:
                cells.append(outcome["failed"])
                bad = True
            else:
                bad = (
                    not outcome["error"] <= TARGET_ERROR or outcome["kept"] > row["rank"] + 1 or not outcome["positive"]
                )
                cells.append(f"{outcome['error']:.0e} ({outcome['kept']}){'!' if bad else ' '}")
            if bad and name == "compress":
                missed.append(f"{row['case']}: {cells[-1]}")
        body.append([row["case"], str(row["rank"]), *cells])
    print(table(["case", "rank", *names], body), "\n")
    print("missed: " + ("nothing" if not missed else ""))
    for miss in missed:
        print(f"  {miss}")
    return not missed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="six sizes and three rounds")
    parser.add_argument("--rounds", type=int, help="rounds per size (7, or 3 when quick)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure to FILE")
    options = parser.parse_args()
    rounds = options.rounds or (3 if options.quick else 7)
    field, notes = contenders()
    say(f"contenders: {', '.join(field)}; {rounds} rounds")
    results: dict[str, Any] = {"peers": notes, "rounds": rounds}
    results["race"] = race(QUICK if options.quick else SIZES, rounds, field)
    results["in_a_row"] = in_a_row(rounds, field)
    say("  degenerate inputs")
    results["degenerate"] = stress(field)
    report(results, list(field))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
