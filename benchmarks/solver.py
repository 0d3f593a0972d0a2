"""Side by side: this package's finite-horizon solver and its peers, as ratios of CPU time on one thread.

    python benchmarks/solver.py                    everything (about ten minutes)
    python benchmarks/solver.py --quick            small sizes, few rounds (about a minute)
    python benchmarks/solver.py --sizes 1e3,1e5    only these numbers of states
    python benchmarks/solver.py --json out.json    the figures as well, for programs

All candidates run in one process, one after the other within each round, so that a slow minute of the machine hits
them alike; a figure is the median over rounds. What a peer prepares once per model is not counted. The memory ceiling
is the time of a step's memory accesses without its arithmetic: streams at the speed of a triad as large as the layer,
plus the random reads of values. The exit code is 0 whether or not the targets are met: the table says which are not.
"""

from __future__ import annotations

# The number of threads must be set before the libraries are imported.
import os

for _name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from solver_peers import (
    Array,
    Layer,
    Run,
    hiive_peer,
    quantecon_peer,
    scipy_major_peer,
    scipy_naive_peer,
    storm_peer,
)

from tradeoff.mdp.kernels import bellman
from tradeoff.mdp.kernels.vector import at, broadcast, fma, gather_fma, prefetch, store

OBJECTIVES = 4
BATCH = 16
HORIZON = 50


def solve(layer: Layer, weights: Array, steps: int, threads: int = 1) -> tuple[Array, Array]:
    """Return the optimal values [S, B] at the first step and the policy [steps, S, B]: the product under test."""
    shape = (layer.states, len(weights))
    values, policy = np.zeros(shape), np.empty((steps, *shape), np.uint8)
    bellman.backward(*layer, weights, values, policy, threads=threads)
    return values, policy


# ---------------------------------------------------------------------------------------------------------- models


def random_layer(states: int, ragged: bool, seed: int = 0) -> Layer:
    """Return a layer with random successors: 4 actions of 4, or 1-6 actions of 1-8."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 7, states) if ragged else np.full(states, 4)
    state_ptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    choices = int(state_ptr[-1])
    widths = rng.integers(1, 9, choices) if ragged else np.full(choices, 4)
    choice_ptr = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    size = int(choice_ptr[-1])
    prob = rng.random(size)
    prob /= np.repeat(np.add.reduceat(prob, choice_ptr[:-1]), widths)
    target = rng.integers(0, states, size, dtype=np.int32)
    return Layer(state_ptr, choice_ptr, target, prob, rng.random((choices, OBJECTIVES)))


# --------------------------------------------------------------------------------------------------------- ceilings


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator, unused-ignore]
def _triad(out: Array, x: Array, y: Array) -> None:
    for i in range(out.shape[0]):
        out[i] = x[i] + 2.0 * y[i]


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator, unused-ignore]
def _gather_rows(values: Array, target: Array, ahead: int, out: Array) -> None:
    totals = broadcast(0.0, 16)
    final = target.shape[0] - 1
    for i in range(target.shape[0]):
        if ahead > 0:
            soon = np.int64(at(target, min(i + ahead, final))) * 16
            prefetch(values, soon)
            prefetch(values, soon + 8)
        totals = gather_fma(1.0, values, np.int64(at(target, i)) * 16, totals)
    store(out, 0, totals)


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator, unused-ignore]
def _gather_numbers(values: Array, target: Array, out: Array) -> None:
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for i in range(0, target.shape[0] - 3, 4):
        a = fma(1.0, at(values, np.int64(at(target, i))), a)
        b = fma(1.0, at(values, np.int64(at(target, i + 1))), b)
        c = fma(1.0, at(values, np.int64(at(target, i + 2))), c)
        d = fma(1.0, at(values, np.int64(at(target, i + 3))), d)
    out[0] = a + b + c + d


def streamed_bytes(layer: Layer, batch: int) -> int:
    """Return the bytes one step must read and write in order, apart from the targets (the gathers read those)."""
    choices, entries = layer.choice_ptr.size - 1, layer.target.size
    read = entries * 8 + choices * 8 * (OBJECTIVES if batch > 1 else 1)
    return read + layer.states * batch * 9  # values and policy out


def ceiling_probes(layer: Layer) -> dict[str, Run]:
    """Return the memory accesses of a step without its arithmetic: a triad as large as the layer, random gathers."""
    n = max(1000, streamed_bytes(layer, BATCH) // 24)
    x, y, z = np.ones((3, n))
    memory = np.ones(layer.states * 16 + 8)
    start = (-memory.ctypes.data % 64) // 8
    rows = memory[start : start + layer.states * 16]
    numbers, out = np.ones(layer.states), np.zeros(16)

    def triad() -> Array:
        _triad(x, y, z)
        return x

    def gather(ahead: int) -> Run:
        def run() -> Array:
            _gather_rows(rows, layer.target, ahead, out)
            return out

        return run

    def gather_one() -> Array:
        _gather_numbers(numbers, layer.target, out)
        return out

    return {"triad": triad, "rows": gather(0), "rows ahead": gather(32), "numbers": gather_one}


# ------------------------------------------------------------------------------------------------------ measurement


class Figure(NamedTuple):
    """The measurements of one model: seconds of CPU (wall-clock where said), and the steps they cover."""

    states: int
    ragged: bool
    steps: int
    seconds: dict[str, float]
    wall: dict[str, float]
    ceiling: dict[str, float]  # seconds a solve would take at the memory ceiling
    bandwidth: float  # triad, bytes a second
    row: float  # seconds a random 128-byte row
    missing: list[str]


def median_times(runs: dict[str, Run], rounds: int, clock: Callable[[], float], tick: Callable[[str], None]) -> Any:
    """Return the median time of each run over interleaved rounds, short ones repeated to be measurable."""
    repeats = {}
    for name, run in runs.items():
        tick(name)
        elapsed = 0.0
        for _ in range(2):  # the first may compile
            begin = time.perf_counter()
            run()
            elapsed = time.perf_counter() - begin
            if elapsed > 2:
                break
        repeats[name] = max(1, int(0.01 / max(elapsed, 1e-6)))
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            tick(name)
            begin = clock()
            for _ in range(repeats[name]):
                run()
            taken[name].append((clock() - begin) / repeats[name])
    return {name: statistics.median(times) for name, times in taken.items()}


def measure(states: int, ragged: bool, rounds: int, tick: Callable[[str], None]) -> Figure:
    """Return the figures of one random model, having checked that everyone finds the same values."""
    tick("build")
    layer = random_layer(states, ragged)
    steps = HORIZON if states <= 20_000 else 20 if states <= 200_000 else 8
    weights = np.random.default_rng(1).random((2 * BATCH, OBJECTIVES))
    batch, first = weights[:BATCH], weights[0]

    def ours(count: int, threads: int = 1) -> Run:
        return lambda: solve(layer, weights[:count], steps, threads)[0]

    runs: dict[str, Run] = {"tradeoff": ours(1), f"tradeoff x{BATCH}": ours(BATCH)}
    missing = []
    peers: dict[str, Callable[[Layer, Array, int], Run]] = {
        "QuantEcon": quantecon_peer,
        "SciPy action-major": scipy_major_peer,
        "SciPy naive": scipy_naive_peer,
    }
    if not ragged and states <= 10_000:
        peers["mdptoolbox-hiive"] = hiive_peer
    if states <= 10_000:
        peers["Storm (values only)"] = storm_peer
    for name, peer in peers.items():
        try:
            runs[name] = peer(layer, first, steps)
        except ImportError:
            missing.append(name)
    runs[f"SciPy x{BATCH}"] = scipy_major_peer(layer, batch, steps)

    tick("check")
    expected = runs["tradeoff"]()[:, 0]
    for name, run in runs.items():
        found = run()
        if found.ndim == 2:
            found = found[:, 0]
        error = float(np.abs(found - expected).max() / max(1.0, np.abs(expected).max()))
        if not error <= 1e-9:
            raise SystemExit(f"{name} disagrees by {error:.2g} on {states} states: nothing here can be compared")

    few = rounds if states < 500_000 else min(rounds, 3)
    probes = ceiling_probes(layer)
    seconds = median_times(runs | probes, few, time.process_time, tick)
    probe = {name: seconds.pop(name) for name in probes}
    bandwidth = 24 * max(1000, streamed_bytes(layer, BATCH) // 24) / probe["triad"]
    rows = min(probe["rows"], probe["rows ahead"])
    ceiling = {
        "tradeoff": steps * (streamed_bytes(layer, 1) / bandwidth + probe["numbers"]),
        f"tradeoff x{BATCH}": steps * (streamed_bytes(layer, BATCH) / bandwidth + rows),
    }
    wall = {}
    if states >= 10_000:
        threaded = {f"x{count}, {threads}": ours(count, threads) for count in (16, 32) for threads in (1, 2)}
        wall = median_times(threaded, few, time.perf_counter, tick)
    row = rows / layer.target.size
    return Figure(states, ragged, steps, seconds, wall, ceiling, bandwidth, row, missing)


def memory_of(batch: int) -> dict[str, float]:
    """Return peak resident bytes and seconds of a solve of a million states over the whole horizon, in a process."""
    command = [sys.executable, __file__, "--memory", str(batch)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def peak_memory() -> int:
    """Return the most bytes this process has held; Linux's getrusage would count what the parent held at the fork."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def measure_memory(batch: int) -> None:
    """Print what the solve takes, for `memory_of` to read."""
    layer = random_layer(1_000_000, ragged=False)
    begin = time.perf_counter()
    solve(layer, np.random.default_rng(1).random((batch, OBJECTIVES)), HORIZON)
    elapsed = time.perf_counter() - begin
    print(json.dumps({"seconds": elapsed, "bytes": peak_memory()}))


# ----------------------------------------------------------------------------------------------------------- report


class Verdict(NamedTuple):
    """A target, what was measured, and whether it is met (None: a figure without a target)."""

    where: str
    target: str
    measured: str
    met: bool | None


def label(figure: Figure) -> str:
    """Return how a model is named in the tables."""
    return f"{figure.states:.0e} {'ragged' if figure.ragged else 'regular'}".replace("e+0", "e")


def verdicts(figures: list[Figure], memory: dict[int, dict[str, float]]) -> list[Verdict]:
    """Return every target with what was measured."""
    rows = []
    single, many = "tradeoff", f"tradeoff x{BATCH}"
    for figure in figures:
        where, seconds = label(figure), figure.seconds
        others = (single, many, f"SciPy x{BATCH}", "Storm (values only)")
        rivals = {name: taken for name, taken in seconds.items() if name not in others}
        best = min(rivals, key=lambda name: rivals[name])
        ratio = rivals[best] / seconds[single]
        rows.append(Verdict(where, "one vector: 1.5x the best peer", f"{ratio:.2f}x {best}", ratio >= 1.5))
        each = seconds[many] / BATCH
        if "QuantEcon" in seconds:
            ratio = seconds["QuantEcon"] / each
            rows.append(Verdict(where, f"{BATCH} vectors: 5x QuantEcon each", f"{ratio:.1f}x", ratio >= 5))
        scipy_best = min(seconds[f"SciPy x{BATCH}"] / BATCH, seconds["SciPy action-major"], seconds["SciPy naive"])
        ratio = scipy_best / each
        rows.append(Verdict(where, f"{BATCH} vectors: 4x SciPy each", f"{ratio:.1f}x", ratio >= 4))
        ratio = seconds[many] / seconds[single]
        rows.append(Verdict(where, f"{BATCH} vectors cost at most 5 solves", f"{ratio:.2f} solves", ratio <= 5))
        for name, what in ((single, "one vector"), (many, f"{BATCH} vectors")):
            share = figure.ceiling[name] / seconds[name]
            grade = "excellent" if share >= 0.8 else "good" if share >= 0.6 else "below"
            rows.append(Verdict(where, f"{what}: 60% of the memory ceiling", f"{share:.0%} ({grade})", share >= 0.6))
        for count in (16, 32):
            if figure.wall:
                gain = figure.wall[f"x{count}, 1"] / figure.wall[f"x{count}, 2"]
                rows.append(Verdict(where, f"{count} vectors: gain of two threads", f"{gain:.2f}x wall-clock", None))
    for batch, taken in memory.items():
        size = taken["bytes"] / 2**30
        where = f"1e6 regular, H={HORIZON}, B={batch}"
        rows.append(Verdict(where, "within 4 GiB", f"{size:.2f} GiB, {taken['seconds']:.1f} s", size <= 4))
    return rows


def report(figures: list[Figure], memory: dict[int, dict[str, float]], console: Console) -> list[Verdict]:
    """Print the tables and return the verdicts."""
    table = Table(title="CPU time on one thread; a peer's ratio is its time over ours for the same weights", box=None)
    for heading in ("model", "steps", "solver", "time", "ns a state and step", "ratio"):
        table.add_column(heading, justify="left" if heading in ("model", "solver") else "right")
    for figure in figures:
        for name, taken in figure.seconds.items():
            mine = figure.seconds[f"tradeoff x{BATCH}" if name.endswith(f"x{BATCH}") else "tradeoff"]
            unit = taken / figure.steps / figure.states * 1e9
            cells = (
                label(figure),
                str(figure.steps),
                name,
                f"{taken * 1e3:.2f} ms",
                f"{unit:.1f}",
                f"{taken / mine:.2f}",
            )
            table.add_row(*cells)
        for name, taken in figure.ceiling.items():
            unit = taken / figure.steps / figure.states * 1e9
            table.add_row(label(figure), "", f"memory ceiling, {name}", f"{taken * 1e3:.2f} ms", f"{unit:.1f}", "")
        speed = f"triad {figure.bandwidth / 1e9:.1f} GB/s, random 128-byte rows {figure.row * 1e9:.2f} ns"
        table.add_row(label(figure), "", speed, "", "", "", end_section=True)
    console.print(table)
    shorter = [label(figure) for figure in figures if figure.steps != HORIZON]
    if shorter:
        console.print(f"Measured over fewer than {HORIZON} steps, to save time: {', '.join(shorter)}.")
    missing = sorted({name for figure in figures for name in figure.missing})
    if missing:
        console.print(f"Not installed, so not compared: {', '.join(missing)}.")
    rows = verdicts(figures, memory)
    table = Table(title="Targets", box=None)
    for heading in ("model", "target", "measured", ""):
        table.add_column(heading)
    for row in rows:
        verdict = "" if row.met is None else "met" if row.met else "[bold red]MISSED[/]"
        table.add_row(row.where, row.target, row.measured, verdict)
    console.print(table)
    met, missed = (sum(row.met is wanted for row in rows) for wanted in (True, False))
    console.print(f"{met} of {met + missed} targets met, {missed} missed.")
    if missed:
        console.print(
            "While values fit the cache (up to about 1e4 states) arithmetic and mispredicted branches bound a step, "
            "not memory; beyond it a batch waits for main memory to deliver its rows, while one vector's values still fit "
            "the cache."
        )
    return rows


def main() -> None:
    """Measure, print, and write the figures if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1e3,1e4,1e5,1e6", help="numbers of states, separated by commas")
    parser.add_argument("--rounds", type=int, default=7, help="rounds per model (at most 3 from 500,000 states on)")
    parser.add_argument("--quick", action="store_true", help="1e3 and 1e4 states, 3 rounds, no memory test")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures and verdicts here")
    parser.add_argument("--memory", type=int, metavar="B", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        measure_memory(options.memory)
        return
    sizes = [int(float(size)) for size in ("1e3,1e4" if options.quick else options.sizes).split(",")]
    rounds = 3 if options.quick else options.rounds
    jobs = [(size, ragged) for size in sizes for ragged in (False, True)]
    figures: list[Figure] = []
    memory: dict[int, dict[str, float]] = {}
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("solver", total=len(jobs) + (0 if options.quick else 2))
        for size, ragged in jobs:
            name = f"{size:,} states, {'ragged' if ragged else 'regular'}"

            def tick(what: str, name: str = name) -> None:
                progress.update(task, description=f"{name}: {what}")

            figures.append(measure(size, ragged, rounds, tick))
            progress.advance(task)
        for batch in () if options.quick else (1, BATCH):
            progress.update(task, description=f"memory, {batch} weight vectors")
            memory[batch] = memory_of(batch)
            progress.advance(task)
    rows = report(figures, memory, Console(width=120 if not sys.stdout.isatty() else None))
    if options.json:
        found = {
            "figures": [figure._asdict() for figure in figures],
            "memory": memory,
            "verdicts": [row._asdict() for row in rows],
        }
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
