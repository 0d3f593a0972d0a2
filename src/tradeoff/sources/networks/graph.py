"""A graph from any file format or library."""

from __future__ import annotations

from dataclasses import dataclass, field

Values = dict[str, object]


@dataclass
class Graph:
    """Nodes and edges with their attributes."""

    about: Values = field(default_factory=dict)
    nodes: dict[str, Values] = field(default_factory=dict)
    edges: list[tuple[str, str, Values]] = field(default_factory=list)  # (from, to, attributes)
