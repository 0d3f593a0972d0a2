"""What to pack for a hike of at most ten kilograms: a small integer program as a problem."""

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from tradeoff import Objective, PointSet

THINGS = np.array(["tent", "stove", "book", "camera", "rain coat", "rope", "guitar", "lamp"])
COMFORT, FUN, KILOGRAMS = AMOUNTS = np.array(
    [[9, 6, 2, 1, 5, 2, 4, 3], [2, 1, 6, 8, 1, 5, 9, 2], [4, 2, 1, 2, 1, 3, 5, 1]], dtype=float
)


def best(weights):
    """Return the comfort, fun and weight of the pack with the largest weighted sum, and what is in it."""
    found = milp(
        -weights @ AMOUNTS,  # milp minimises
        integrality=np.ones(8),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(KILOGRAMS, 0, 10),
        options={"mip_rel_gap": 0},
    )
    packed = found.x > 0.5
    return AMOUNTS @ packed, THINGS[packed]


OBJECTIVES = [Objective("comfort"), Objective("fun"), Objective("weight", "kg", "min")]
problem = PointSet(best, OBJECTIVES, gap=0, name="knapsack")
