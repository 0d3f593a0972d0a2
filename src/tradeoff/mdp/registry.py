"""The default solver of a model: NumPy for small ones, compiled code for large ones, or an installed plug-in.

A plug-in registers a function in the entry point group ``tradeoff.solvers``, under the name of its device (``gpu``). The
function takes the dynamics of a model and ``required``, and returns a ``Solver``, or None if it does not suit this model;
if ``required``, it raises an ``ArgumentError`` that says why it cannot be used.
"""

from __future__ import annotations

import os
import warnings
from importlib.metadata import entry_points
from importlib.util import find_spec

from tradeoff.errors import ArgumentError, ProblemWarning
from tradeoff.mdp.dynamics import Dynamics
from tradeoff.mdp.solver import Solver
from tradeoff.mdp.textbook import TextbookSolver

GROUP = "tradeoff.solvers"
DEVICE = "TRADEOFF_DEVICE"  # the environment variable, which the workers of servers and simulations inherit
# Branches of all steps; up to this, compiling takes longer than all that an interview solves (benchmarks/startup.py).
SMALL = 50_000


def solver_for(dynamics: Dynamics) -> Solver:
    """Return the default solver for a model. It does not change the value of any result."""
    wanted = os.environ.get(DEVICE) or "auto"
    plugins = entry_points(group=GROUP)
    if wanted in plugins.names:
        required: Solver = plugins[wanted].load()(dynamics, required=True)
        return required
    if wanted not in ("auto", "cpu"):
        known = ", ".join(["auto", "cpu", *sorted(plugins.names)])
        raise ArgumentError(f"the device is one of {known}, but {DEVICE} is {wanted!r}")
    branches = max(len(layer.target) for layer in dynamics.layers)
    if branches * dynamics.horizon <= SMALL:
        return TextbookSolver()
    if wanted == "auto":
        for plugin in plugins:
            solver: Solver | None = plugin.load()(dynamics, required=False)
            if solver is not None:
                return solver
    if find_spec("numba") is None:
        warnings.warn(
            f"this model has {branches:,} branches in a step; it is solved many times faster with the package 'numba'; "
            "install it, in the folder of tradeoff, with: pip install '.[fast]'",
            ProblemWarning,
            stacklevel=2,
        )
        return TextbookSolver()
    from tradeoff.mdp.compiled import CompiledSolver

    return CompiledSolver()
