"""A graph, whichever file or library it came from."""

from __future__ import annotations

from dataclasses import dataclass, field

Values = dict[str, object]


@dataclass
class Graph:
    """What is in a file or an object of another library: nodes and edges with their attributes."""

    about: Values = field(default_factory=dict)
    nodes: dict[str, Values] = field(default_factory=dict)
    edges: list[tuple[str, str, Values]] = field(default_factory=list)  # each in the direction it can be used
