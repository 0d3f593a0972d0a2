"""One model on one core, on all cores and on a graphics card: times, and that the bits are the same.

    python benchmarks/devices.py                   models of 1e3 to 1e6 states (some minutes on sixteen cores)
    python benchmarks/devices.py --sizes 1e4,1e5   only these numbers of states
    python benchmarks/devices.py --peers           beside SciPy, QuantEcon, JAX and mdpax, all of them on all cores or the card

Each model has 4 actions of 4 random successors and 4 objectives. A time is that of the optimal outcomes of some weight
vectors over the whole horizon (backwards with policies, then forwards), the best of two rounds in which all candidates
take turns; what is prepared once for a model is not counted. The exit code is 1 if any bit differs.

With --peers only the values and policies of the steps backwards are computed, because that is what the peers do (mdpax computes
values only). JAX and mdpax use the card if they find one. "Of the bandwidth" is how much of the time reading and writing every
number once would take, at the speed of a copy on that device; rows that stay in its cache can take it above what memory allows.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
from rich.console import Console
from rich.table import Table

from tradeoff.mdp.compiled import CompiledSolver, layer_arrays
from tradeoff.mdp.dynamics import Dynamics
from tradeoff.mdp.kernels import bellman
from tradeoff.mdp.layer import Layer
from tradeoff.mdp.solver import Weights
from tradeoff_cuda.card import Card, absent

HORIZON, ROUNDS = 50, 2
Array = np.ndarray[Any, Any]


def random_model(states: int, seed: int = 0) -> Dynamics:
    """Return a model with random successors."""
    rng = np.random.default_rng(seed)
    branches = 16 * states
    chances = rng.random((4 * states, 4))
    layer = Layer(
        state_ptr=np.arange(0, 4 * states + 1, 4, dtype=np.int32),
        action=np.tile(np.arange(4, dtype=np.int32), states),
        choice_ptr=np.arange(0, branches + 1, 4, dtype=np.int64),
        target=rng.integers(0, states, branches, dtype=np.int32),
        prob=(chances / chances.sum(axis=1, keepdims=True)).ravel(),
        reward=rng.random((4 * states, 4)),
        branch_reward=None,
    )
    start = np.zeros(states)
    start[0] = 1.0
    return Dynamics((layer,), HORIZON, start, range(states), ("a", "b", "c", "d"))  # type: ignore[arg-type]


def candidates() -> dict[str, CompiledSolver]:
    """Return the solvers to compare, by name."""
    cores = os.cpu_count() or 1
    found = {"one core": CompiledSolver(1)}
    if cores > 1:
        found[f"{cores} cores"] = CompiledSolver(cores)
    if not absent():
        found["card"] = CompiledSolver(device=Card())
    return found


def compare(states: int, count: int, solvers: dict[str, CompiledSolver]) -> tuple[dict[str, float], bool]:
    """Return the seconds of each solver, and whether all results have the same bits."""
    model = random_model(states)
    rows = np.random.default_rng(1).random((count, 4))
    weights = Weights(rows, np.zeros(count, bool), np.zeros(count), np.ones(4))
    best: dict[str, float] = dict.fromkeys(solvers, float("inf"))
    results: dict[str, Any] = {name: solver.optimal_outcomes(model, weights) for name, solver in solvers.items()}
    for _ in range(ROUNDS):
        for name, solver in solvers.items():
            begin = time.perf_counter()
            solver.optimal_outcomes(model, weights)
            best[name] = min(best[name], time.perf_counter() - begin)
    first = next(iter(results.values()))
    return best, all(np.array_equal(found, first) for found in results.values())


# --- peers -----------------------------------------------------------------------------------------------------------


def jax_peer(layer: Layer, weights: Array) -> Callable[[], Array]:
    """Backward induction as one would write it in JAX, for any number of weight vectors, in float64."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    states = len(layer.state_ptr) - 1
    target, prob = jnp.asarray(layer.target.reshape(-1, 4)), jnp.asarray(layer.prob.reshape(-1, 4))
    reward = jnp.asarray(layer.reward)

    @jax.jit  # type: ignore[untyped-decorator, unused-ignore]
    def solve(target: Any, prob: Any, reward: Any, rows: Any) -> Any:
        earned = reward @ rows.T

        def step(values: Any, _: Any) -> Any:
            worth = earned + jnp.einsum("cb,cbw->cw", prob, values[target])
            table = worth.reshape(states, 4, -1)
            return table.max(axis=1), table.argmax(axis=1).astype(jnp.uint8)

        return jax.lax.scan(step, jnp.zeros((states, rows.shape[0])), length=HORIZON)

    rows = jnp.asarray(weights)
    return lambda: np.asarray(solve(target, prob, reward, rows)[0].block_until_ready())


def mdpax_peer(layer: Layer, weights: Array) -> Callable[[], Array]:
    """mdpax's value iteration for one weight vector: values only, as many sweeps as there are steps."""
    import jax
    import jax.numpy as jnp
    from mdpax.core.problem import Problem
    from mdpax.solvers.value_iteration import ValueIteration

    jax.config.update("jax_enable_x64", True)
    states = len(layer.state_ptr) - 1
    target, prob = jnp.asarray(layer.target.reshape(states, 4, 4)), jnp.asarray(layer.prob.reshape(states, 4, 4))
    earned = jnp.asarray((layer.reward @ weights).reshape(states, 4))

    class Random(Problem):  # type: ignore[misc, unused-ignore]
        name = "random"

        def state_to_index(self, state: Any) -> Any:
            return state[0]

        def _construct_state_space(self) -> Any:
            return jnp.arange(states)

        def _construct_action_space(self) -> Any:
            return jnp.arange(4)

        def _construct_random_event_space(self) -> Any:
            return jnp.arange(4)

        def random_event_probability(self, state: Any, action: Any, event: Any) -> Any:
            return prob[state[0], action[0], event[0]]

        def transition(self, state: Any, action: Any, event: Any) -> Any:
            return target[state[0], action[0], event[0]][None], earned[state[0], action[0]]

    solver = ValueIteration(
        Random(), gamma=1.0, epsilon=1e-300, max_batch_size=min(states, 1 << 17), verbose=0, jax_double_precision=True
    )

    def run() -> Array:
        solver.values = jnp.zeros(states)
        for _ in range(HORIZON):
            solver.values, _ = solver._iteration_step()
        return np.asarray(solver.values.block_until_ready())

    return run


def ours(layer: Layer, weights: Array, threads: int) -> Callable[[], Array]:
    """Return the product's backward sweeps on the processor."""

    def run() -> Array:
        values = np.zeros((len(layer.state_ptr) - 1, len(weights)))
        policy = np.empty((HORIZON, *values.shape), np.uint8)
        bellman.backward(*layer_arrays(layer), weights, values, policy, threads=threads)
        return values

    return run


def on_card(layer: Layer, weights: Array) -> Callable[[], Array]:
    """Return the product's backward sweeps on the card; the policies stay there, as they do in an interview."""
    import cupy

    from tradeoff_cuda import kernels as cuda

    there, rows = cuda.card_layer(*layer_arrays(layer)), cupy.asarray(weights)
    policy = cupy.empty((HORIZON, len(layer.state_ptr) - 1, len(weights)), cupy.uint8)

    def run() -> Array:
        values = cupy.zeros(policy.shape[1:])
        cuda.backward(there, rows, values, policy)
        return np.asarray(values.get())

    return run


def bandwidth(arrays: Any, done: Callable[[], object]) -> float:
    """Return the bytes a second of a large copy."""
    source, sink, best = arrays.zeros(1 << 27), arrays.zeros(1 << 27), float("inf")
    for _ in range(5):
        begin = time.perf_counter()
        sink[...] = source
        done()
        best = min(best, time.perf_counter() - begin)
    return float(2 * source.nbytes / best)


def traffic(layer: Layer, count: int) -> int:
    """Return the bytes of a backward step: the model once, a row of values for each successor, what is written."""
    states = len(layer.state_ptr) - 1
    model = sum(array.nbytes for array in layer_arrays(layer))
    return model + count * (8 * len(layer.target) + (8 + 1) * states)


def peer_makers(layer: Layer, weights: Array) -> dict[str, Callable[[], Callable[[], Array]]]:
    """Return by name what prepares each solver for these weights; some peers take only one weight vector."""
    import solver_peers as peers  # beside this file

    plain, one = peers.Layer(*layer_arrays(layer)), weights[0]
    cores = os.cpu_count() or 1
    makers: dict[str, Callable[[], Callable[[], Array]]] = {
        "tradeoff, one core": lambda: ours(layer, weights, 1),
        f"tradeoff, {cores} cores": lambda: ours(layer, weights, cores),
        "tradeoff, card": lambda: on_card(layer, weights),
        "SciPy": lambda: peers.scipy_major_peer(plain, weights if len(weights) > 1 else one, HORIZON),
        "JAX": lambda: jax_peer(layer, weights),
    }
    if len(weights) == 1:
        makers["QuantEcon"] = lambda: peers.quantecon_peer(plain, one, HORIZON)
        makers["mdpax (values only)"] = lambda: mdpax_peer(layer, one)
    return makers


def compare_peers(states: int, out: Console) -> bool:
    """Print how long everybody takes; return whether all values agree."""
    (layer,) = random_model(states).layers
    right = True
    speeds = {"processor": bandwidth(np, lambda: None)}
    if not absent():
        import cupy

        speeds["card"] = bandwidth(cupy, cupy.cuda.Device().synchronize)
    out.print("copies: " + ", ".join(f"{name} {speed / 1e9:,.0f} GB/s" for name, speed in speeds.items()))
    for count in (1, 16):
        weights = np.random.default_rng(1).random((count, 4))
        table = Table("solver", f"{states:,} states, {count} weight vectors", "of the bandwidth", "values")
        reference: Array | None = None
        for name, make in peer_makers(layer, weights).items():
            with out.status(name):
                try:
                    run = make()
                    found = run().reshape(states, -1)
                except ImportError as missing:
                    table.add_row(name, f"not installed ({missing.name})", "", "")
                    continue
                taken = min(timed(run) for _ in range(ROUNDS))
            reference = found if reference is None else reference
            same = bool(np.abs(found - reference).max() < 1e-9)
            right &= same
            speed = speeds.get(
                "card" if name.endswith("card") else "processor" if name.startswith("tradeoff") else "", 0
            )
            share = f"{HORIZON * traffic(layer, count) / speed / taken:.0%}" if speed else ""
            table.add_row(name, f"{1000 * taken:,.1f} ms", share, "agree" if same else "DIFFERENT")
        out.print(table)
    return right


def timed(run: Callable[[], object]) -> float:
    """Return the seconds of a call."""
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1e3,1e4,1e5,1e6", help="numbers of states")
    parser.add_argument("--peers", action="store_true", help="compare with peers, at the largest of the sizes")
    parser.add_argument("--vectors", default="1,16", help="numbers of weight vectors")
    options = parser.parse_args()
    sizes = [int(float(text)) for text in options.sizes.split(",")]
    if options.peers:
        sys.exit(0 if compare_peers(max(sizes), Console(width=120)) else 1)
    out, solvers = Console(width=120), candidates()
    if reason := absent():
        out.print(f"without a card: {reason}")
    table = Table("states", "weight vectors", *solvers, "bits")
    right = True
    for states in sizes:
        for count in map(int, options.vectors.split(",")):
            with out.status(f"{states:,} states, {count} weight vectors"):
                seconds, same = compare(states, count, solvers)
            right &= same
            whole = next(iter(seconds.values()))
            cells = [f"{1000 * each:,.1f} ms ({whole / each:.1f}x)" for each in seconds.values()]
            table.add_row(f"{states:,}", str(count), *cells, "same" if same else "DIFFERENT")
    out.print(table)
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
