"""The plug-in's entry point: when a model is solved on the graphics card."""

from __future__ import annotations

from tradeoff.errors import ArgumentError
from tradeoff.mdp.compiled import CompiledSolver
from tradeoff.mdp.dynamics import Dynamics
from tradeoff_cuda.card import Card, absent, fits

# Branches in a step; above this a card is quicker than sixteen cores, both for one weight vector and for sixteen
# (benchmarks/devices.py).
LARGE = 100_000


def solver_for(dynamics: Dynamics, *, required: bool) -> CompiledSolver | None:
    """Return a solver on the card; None if there is none or the model is small, or does not fit on it."""
    reason = absent()
    if required:
        if reason:
            raise ArgumentError(f"a graphics card was asked for, but {reason}")
        return CompiledSolver(device=Card())
    large = max(len(layer.target) for layer in dynamics.layers) >= LARGE
    return CompiledSolver(device=Card()) if large and not reason and fits(dynamics) else None
