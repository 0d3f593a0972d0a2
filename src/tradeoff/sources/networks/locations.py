"""Coordinates of the nodes of a network, and the node nearest to a point."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tradeoff.errors import ArgumentError
from tradeoff.sources.networks.graph import Graph, Values

PLACES = (("x", "y"), ("lon", "lat"))  # the attributes that give a node's coordinates
METRES = 111_195.0  # in a degree of latitude


class Places:
    """The coordinates of those nodes whose attributes give them."""

    def __init__(self, graph: Graph) -> None:
        self.at: dict[str, tuple[float, float]] = {}
        for node, values in graph.nodes.items():
            place = _place(values)
            if place is not None:
                self.at[node] = place
        latitudes = [y for _, y in self.at.values()]
        ours = "4326" in str(graph.about.get("crs", "")) or any("lat" in values for values in graph.nodes.values())
        self.degrees = ours and bool(latitudes)
        # A degree of longitude is shorter than one of latitude.
        self.narrow = math.cos(math.radians(sum(latitudes) / len(latitudes))) if self.degrees else 1.0

    def drawn(self, node: str) -> tuple[float, float]:
        """Return a node's coordinates on a map with the same scale in both directions."""
        x, y = self.at[node]
        return x * self.narrow, y

    def nearest(self, x: float, y: float) -> tuple[str, str]:
        """Return the node nearest to a point, and its distance; refuse a point that can only be a mistake."""
        at = np.array(list(self.at.values()))
        order = "; x is the longitude and y the latitude" if self.degrees else ""
        limits = zip((x, y), (180, 90), at.T, ("longitude", "latitude"), strict=True)
        for value, most, known, what in limits if self.degrees else ():
            if abs(value) > max(most, np.abs(known).max()):  # some data have longitudes up to 360
                raise ArgumentError(f"its {what}, {value:g}, is not between -{most} and {most} degrees{order}")
        with np.errstate(over="ignore"):  # an infinite distance is refused below, too
            away = np.hypot((at[:, 0] - x) * self.narrow, at[:, 1] - y)
            (low_x, low_y), (high_x, high_y) = at.min(axis=0), at.max(axis=0)
            extent = float(np.hypot((high_x - low_x) * self.narrow, high_y - low_y))
        found = int(away.argmin())
        if 0 < extent * (1 + 1e-9) < away[found]:
            raise ArgumentError(
                f"it is {self._far(away[found])} from the nearest node, farther than the whole network is wide "
                f"({self._far(extent)}: x is {low_x:g} to {high_x:g}, y is {low_y:g} to {high_y:g}){order}"
            )
        return list(self.at)[found], self._far(away[found])

    def _far(self, distance: float) -> str:
        return f"{distance * METRES:,.0f} m" if self.degrees else f"{distance:.4g}"


def _place(values: Values) -> tuple[float, float] | None:
    pair: Any = values.get("pos")
    for across, up in PLACES:
        if across in values and up in values:
            pair = (values[across], values[up])
    try:
        x, y = (float(amount) for amount in pair)
    except (TypeError, ValueError):
        return None
    return (x, y) if math.isfinite(x) and math.isfinite(y) else None
