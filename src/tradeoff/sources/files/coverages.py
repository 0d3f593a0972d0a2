"""A coverage in an .npz file: its model, and beside it the plans, what they were solved for, and what proves them enough.

A program that knows nothing of coverages reads the model alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradeoff.errors import ProblemError
from tradeoff.mdp.model import MDP
from tradeoff.model import Matrix
from tradeoff.numerics import worth_of_each, worths
from tradeoff.problem import ROUNDING, GainScale, ScaledProblem
from tradeoff.problems.coverage import Coverage, Plans, Proof

FORMAT = "tradeoff-coverage/1"
HEADER = "coverage"  # the array that says that a file holds a coverage
PLAN_WEIGHTS, PLAN_VALUES = "coverage_plan_weights", "coverage_plan_values"
SIGNED_WEIGHTS, SIGNED_VALUES = "coverage_signed_weights", "coverage_signed_values"
QUICK = 1_000_000  # branches of all steps: such a model is solved within milliseconds
SPOT_CHECKS = 16  # weights
PROOF_WEIGHTS, PROOF_VALUES, PROOF_MOST = "coverage_proof_weights", "coverage_proof_values", "coverage_proof_most"


def arrays_of(coverage: Coverage) -> dict[str, NDArray[Any]]:
    """Return what is written beside the model."""
    header = {
        "format": FORMAT,
        "fingerprint": coverage.model.fingerprint,
        "guarantee": coverage.guarantee,
        "slack": coverage.slack,
        "ideal": coverage.ideal.tolist(),
        "nadir": coverage.nadir.tolist(),
    }
    signed: dict[str, NDArray[Any]] = {}
    if coverage.signed is not None:
        signed = {SIGNED_WEIGHTS: coverage.signed.weights, SIGNED_VALUES: coverage.signed.values}
    return signed | {
        HEADER: np.frombuffer(json.dumps(header, allow_nan=False).encode(), dtype=np.uint8),
        PLAN_WEIGHTS: np.array(coverage.plans.weights),
        PLAN_VALUES: np.array(coverage.plans.values),
        PROOF_WEIGHTS: np.array(coverage.proof.weights),
        PROOF_VALUES: np.array(coverage.proof.values),
        PROOF_MOST: np.array(coverage.proof.most),
    }


def coverage_from(arrays: Mapping[str, NDArray[Any]], model: ScaledProblem) -> Coverage:
    """Return the coverage that was written beside its model, checked."""
    header = json.loads(arrays[HEADER].astype(np.uint8).tobytes().decode())
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        found = header.get("format") if isinstance(header, dict) else header
        raise ProblemError(f"the format of its coverage is {found!r:.80}; this version reads {FORMAT!r}")
    if header.get("fingerprint") != model.fingerprint:
        raise ProblemError("its plans were computed for another model; compile the problem again")
    k = len(model.objectives)
    plans = Plans(_rows(arrays, PLAN_WEIGHTS, k), _rows(arrays, PLAN_VALUES, k))
    optima = _rows(arrays, PROOF_WEIGHTS, k), _rows(arrays, PROOF_VALUES, k)
    proof = Proof(*optima, _rows(arrays, PROOF_MOST, 1)[:, 0])
    signed = None
    if SIGNED_WEIGHTS in arrays:
        signed = Plans(_rows(arrays, SIGNED_WEIGHTS, k, any_sign=True), _rows(arrays, SIGNED_VALUES, k))
    guarantee, slack = (_share(header, name) for name in ("guarantee", "slack"))
    tables: list[Plans | Proof] = [plans, proof] if signed is None else [plans, proof, signed]
    if not len(plans.values) or any(len({len(part) for part in vars(table).values()}) > 1 for table in tables):
        raise ProblemError("the numbers of its plans and of their weights differ; is the file damaged?")
    if plans.values.max() > 1 + slack + ROUNDING:
        raise ProblemError(
            f"one of its plans has a gain of {plans.values.max():.6g}, but 1 is the most; is it damaged?"
        )
    if isinstance(model, MDP) and "gain_scale" not in vars(model):
        # The best and the worst of each objective need not be solved for: the model is the same.
        model.gain_scale = _scale(header, model)
    _check_guarantee(model, plans, proof, guarantee)
    return Coverage(model, plans, proof, guarantee, slack, signed)


def _check_guarantee(model: ScaledProblem, plans: Plans, proof: Proof, guarantee: float) -> None:
    """Raise a ProblemError if the plans miss more than the guarantee at a point of its proof, or for other weights.

    Other weights are solved for where that is quick; a large model is compiled so that nothing need be solved.
    """
    k = len(model.objectives)
    matters = np.array(model.matters, dtype=float)
    weights, most = proof.weights, proof.most
    if not isinstance(model, MDP) or model.extent["branches"] * model.horizon <= QUICK:
        drawn = np.random.default_rng(0).dirichlet(np.ones(k), SPOT_CHECKS)
        optima = worth_of_each(drawn * matters, np.array([option.value for option in model.best(drawn)]))
        weights, most = np.vstack([weights, drawn]), np.concatenate([most, optima])
    reached = worths(weights * matters, plans.values).max(axis=1)
    bad = np.flatnonzero(most - reached > guarantee * most + model.slack + ROUNDING)
    if len(bad):
        worst = ((most - reached)[bad] / most[bad]).max()
        raise ProblemError(
            f"its plans miss {100 * worst:.3g}% of the best possible gain for some weights, but it says at most "
            f"{100 * guarantee:.3g}%; the file was edited or is damaged: compile the problem again"
        )


def _rows(arrays: Mapping[str, NDArray[Any]], name: str, width: int, any_sign: bool = False) -> Matrix:
    """Return an array of numbers, a row for each plan."""
    if name not in arrays:
        raise ProblemError(f"the array {name!r} is missing; was the file made by this program?")
    array = arrays[name]
    rows = array.reshape(-1, 1) if width == 1 and array.ndim == 1 else array
    if array.dtype != np.float64 or rows.ndim != 2 or rows.shape[1] != width:
        raise ProblemError(f"the array {name!r} is not a table of {width} numbers per row; is the file damaged?")
    if not (np.isfinite(rows).all() and (any_sign or rows.min(initial=0.0) >= 0)):
        raise ProblemError(f"the array {name!r} has numbers that are negative or not finite; is the file damaged?")
    return rows


def _share(header: Mapping[str, Any], name: str) -> float:
    value = header.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ProblemError(f"its coverage has {name} = {value!r:.80}, but must have a number from 0 to 1")
    return float(value)


def _scale(header: Mapping[str, Any], model: MDP) -> GainScale:
    ends = []
    for name in ("ideal", "nadir"):
        found = np.array(header.get(name), dtype=float)
        if found.shape != (len(model.objectives),) or not np.isfinite(found).all():
            raise ProblemError(f"its coverage has {name} = {found!r:.80}, but must have a number for each objective")
        ends.append(found)
    ideal, nadir = ends
    more = np.array([o.sign > 0 for o in model.objectives])
    lowest, highest = np.where(more, nadir, ideal), np.where(more, ideal, nadir)
    return GainScale(model.objectives, lowest, highest, model.reference, 1e-15 * model.largest_total)
