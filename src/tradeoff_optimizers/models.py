"""Convex and mixed-integer models of CVXPY become point sets: the solver is asked for the best point of any weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.model import Objective, Vector
from tradeoff.problems.pointset import PointSet
from tradeoff.sources.options import real

EXACT, INTEGER = 1e-6, 1e-3  # how far a solver may be from the optimum, as a share of the range


class _WeightedSum:
    """The best point of a CVXPY model for weights on its objectives; compiled once, solved for each."""

    def __init__(self, constraints: Any, parts: Mapping[Objective, Any], solver: str | None) -> None:
        import cvxpy

        self.parts, self.solver = dict(parts), solver
        self.weights = cvxpy.Parameter(len(self.parts), nonneg=True)
        total = sum(self.weights[j] * o.sign * part for j, (o, part) in enumerate(self.parts.items()))
        self.problem = cvxpy.Problem(cvxpy.Maximize(total), constraints)
        if not self.problem.is_dcp():
            wrong = [o.name for o, part in self.parts.items() if not (o.sign * part).is_concave()]
            raise ProblemError(
                f"the model is not convex in {', '.join(map(repr, wrong)) or 'its constraints'}: CVXPY minimises "
                "convex costs and maximises concave gains"
            )

    def __call__(self, weights: Vector) -> tuple[Vector, list[str]]:
        self.weights.value = np.abs(weights)
        self.problem.solve(solver=self.solver)  # type: ignore[no-untyped-call]
        if self.problem.status != "optimal":
            raise ProblemError(f"the solver of the model ended with {self.problem.status!r}; check its constraints")
        steps = [
            f"{variable.name()} = {np.array2string(np.asarray(variable.value), precision=4, threshold=12, separator=', ')}"
            for variable in self.problem.variables()
        ]
        return np.array([float(part.value) for part in self.parts.values()]), steps


def from_cvxpy(model: Any, *, objectives: Any, gap: Any = None, solver: str | None = None) -> PointSet:
    """Return a CVXPY problem as a point set; its constraints hold, and ``objectives`` take the place of its objective.

    ``objectives`` maps names, or ``Objective`` with units, to pairs of a direction and an expression: ``{"risk": ("min",
    cvxpy.sum_squares(x))}``. ``gap`` says how far the solver may be from the optimum, as a share of the range of each
    objective: by default 1e-3 with integer variables and 1e-6 without. ``solver`` is CVXPY's
    name of a solver.
    """
    if not isinstance(objectives, Mapping) or len(objectives) < 2:
        raise ArgumentError('objectives must map two or more names to expressions: {"risk": ("min", expression), ...}')
    parts: dict[Objective, Any] = {}
    for key, value in objectives.items():
        if not (isinstance(value, tuple) and len(value) == 2 and value[0] in ("min", "max")):
            raise ArgumentError(f'the objective {str(key)!r} must be ("min", expression) or ("max", expression)')
        goal, expression = value
        known = key if isinstance(key, Objective) else Objective(str(key), "", goal)
        if known.goal != goal:
            raise ArgumentError(
                f"the objective {known.name!r} is to be {known.goal}imised, but {goal!r} is given with it"
            )
        parts[known] = expression
    variables = {variable for part in parts.values() for variable in part.variables()} | set(model.variables())
    integer = any(variable.attributes["integer"] or variable.attributes["boolean"] for variable in variables)
    allowed = (INTEGER if integer else EXACT) if gap is None else real("gap", gap)
    best = _WeightedSum(model.constraints, parts, solver)
    return PointSet(best, list(parts), both_ways=False, gap=allowed, name="model")
