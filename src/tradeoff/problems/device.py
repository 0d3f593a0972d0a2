"""Choose where a model is solved: on the processor, or on a graphics card if there is one and the model is large."""

from __future__ import annotations

import os

from tradeoff.errors import ArgumentError
from tradeoff.problems.compiled import CompiledSolver
from tradeoff.problems.dynamics import Dynamics

DEVICE = "TRADEOFF_DEVICE"  # the environment variable, which the workers of servers and simulations inherit
DEVICES = ("auto", "cpu", "gpu")
# Branches in a step; above this a card is quicker than sixteen cores, both for one weight vector and for sixteen
# (benchmarks/devices.py).
LARGE = 100_000


def solver_for(dynamics: Dynamics) -> CompiledSolver:
    """Return the default solver for a model. The device it uses does not change any result."""
    wanted = os.environ.get(DEVICE) or "auto"
    if wanted not in DEVICES:
        raise ArgumentError(f"the device is one of {', '.join(DEVICES)}, but {DEVICE} is {wanted!r}")
    large = max(len(layer.target) for layer in dynamics.layers) >= LARGE
    if wanted == "gpu" or (wanted == "auto" and large):
        from tradeoff.problems import card

        if wanted == "gpu" or (not card.absent() and card.fits(dynamics)):
            return CompiledSolver(device=card.Card())
    return CompiledSolver()
