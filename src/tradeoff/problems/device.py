"""Choose how a model is solved: in NumPy, in compiled code, or on a graphics card if there is one and the model is large."""

from __future__ import annotations

import os
import warnings
from importlib.util import find_spec

from tradeoff.errors import ArgumentError, ProblemWarning
from tradeoff.problems.dynamics import Dynamics
from tradeoff.problems.solver import Solver
from tradeoff.problems.textbook import TextbookSolver

DEVICE = "TRADEOFF_DEVICE"  # the environment variable, which the workers of servers and simulations inherit
DEVICES = ("auto", "cpu", "gpu")
# Branches of all steps; up to this, compiling takes longer than all that an interview solves (benchmarks/startup.py).
SMALL = 50_000
# Branches in a step; above this a card is quicker than sixteen cores, both for one weight vector and for sixteen
# (benchmarks/devices.py).
LARGE = 100_000
INSTALL = "install it, in the folder of tradeoff, with: pip install '.[fast]'"


def solver_for(dynamics: Dynamics) -> Solver:
    """Return the default solver for a model. It does not change the value of any result."""
    wanted = os.environ.get(DEVICE) or "auto"
    if wanted not in DEVICES:
        raise ArgumentError(f"the device is one of {', '.join(DEVICES)}, but {DEVICE} is {wanted!r}")
    branches = max(len(layer.target) for layer in dynamics.layers)
    small = branches * dynamics.horizon <= SMALL
    if wanted != "gpu" and small:
        return TextbookSolver()
    if find_spec("numba") is None:
        if wanted == "gpu":
            raise ArgumentError(f"{DEVICE} is gpu, which needs the package 'numba'; {INSTALL}")
        warnings.warn(
            f"this model has {branches:,} branches in a step; it is solved many times faster with the package 'numba'; "
            f"{INSTALL}",
            ProblemWarning,
            stacklevel=2,
        )
        return TextbookSolver()
    from tradeoff.problems.compiled import CompiledSolver

    if wanted == "gpu" or branches >= LARGE:
        from tradeoff.problems import card

        if wanted == "gpu" or (not card.absent() and card.fits(dynamics)):
            return CompiledSolver(device=card.Card())
    return CompiledSolver()
