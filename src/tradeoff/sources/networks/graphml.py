"""Read GraphML files: values stay strings, nothing external is fetched, and entities and nested graphs are refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

from tradeoff.errors import ProblemError
from tradeoff.sources.markup import check_markup
from tradeoff.sources.messages import shortened
from tradeoff.sources.networks.graph import Graph, Values
from tradeoff.sources.options import library
from tradeoff.sources.progress import tracked

LARGEST_FILE = 256 << 20
DEEPEST = 16  # levels of nested elements; a graph needs five
MOST_OTHERS = 100_000  # elements that are not part of a graph, such as a program's drawing hints
PARTS = {"graphml", "key", "default", "desc", "graph", "node", "edge", "data"}


def read_graphml(path: Path) -> Graph:
    """Return the graph in a GraphML file; an undirected edge becomes two, one in each direction."""
    size = path.stat().st_size
    if size > LARGEST_FILE:
        raise ProblemError(
            f"{path} has {size / 2**20:,.0f} MB; GraphML files may have at most {LARGEST_FILE >> 20} MB: save only the "
            "part that is needed"
        )
    parser = library("defusedxml.ElementTree", "network", "reading a GraphML file")
    try:
        with path.open("rb") as file:
            check_markup(file, str(path))
            file.seek(0)
            return _Reader(path).read(parser.iterparse(file, events=("start", "end"), forbid_dtd=True))
    except ParseError as error:
        raise ProblemError(f"{path}: not XML: {error}; is it the right file?") from None
    except ProblemError:
        raise
    except (ValueError, LookupError) as error:
        raise ProblemError(f"{path}: {refusal(error)}") from None


def refusal(error: Exception) -> str:
    """Return why the parser stopped: a forbidden declaration, or an unknown encoding."""
    match type(error).__name__:
        case "DTDForbidden":
            what = "a document type (<!DOCTYPE ...>)"
        case "EntitiesForbidden":
            what = "an entity (<!ENTITY ...>)"
        case _:
            return f"cannot be read as text ({shortened(str(error))}); save it in the encoding UTF-8"
    return f"declares {what}, which is refused and which no GraphML file needs; remove the declaration"


class _Reader:
    """The state of reading one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.graph = Graph()
        self.keys: dict[str, tuple[str, str]] = {}  # id -> (kind of element, name of the attribute)
        self.defaults: dict[str, Values] = {"node": {}, "edge": {}, "graph": {}}
        self.data: Values = {}
        self.graph_data: Values = {}
        self.directed: bool | None = None
        self.above: list[str] = []
        self.others = 0

    def read(self, events: Iterator[tuple[str, Any]]) -> Graph:
        for event, element in tracked(events, f"Reading {self.path.name}"):
            name = str(element.tag).rpartition("}")[2]
            if event == "start":
                self.begin(name, element)
                self.above.append(name)
                continue
            self.above.pop()
            self.end(name, element)
            if name not in ("default", "data"):
                element.clear()  # otherwise a large file would be in memory twice
        if self.directed is None:
            raise ProblemError(f"{self.path}: there is no <graph> in it; is it the right file?")
        for node in self.graph.nodes:
            self.graph.nodes[node] = self.defaults["node"] | self.graph.nodes[node]
        known = self.graph.nodes
        for i, (source, target, _) in enumerate(self.graph.edges):
            for end in (source, target):
                if end not in known:
                    raise ProblemError(f"{self.path}, edge {i + 1}: there is no node {shortened(end)} in the file")
        self.graph.about = self.defaults["graph"] | self.graph_data
        return self.graph

    def begin(self, name: str, element: Any) -> None:
        if len(self.above) >= DEEPEST:
            raise ProblemError(f"{self.path}: elements are nested too deeply for a graph; is it the right file?")
        if not self.above and name != "graphml":
            raise ProblemError(f"{self.path}: begins with <{name:.40}>, not with <graphml>; is it the right file?")
        if name not in PARTS:
            self.others += 1
            if name in ("hyperedge", "port"):
                raise ProblemError(f"{self.path}: has a <{name}>; only nodes and edges between two of them are read")
            if self.others > MOST_OTHERS:
                raise ProblemError(
                    f"{self.path}: more than {MOST_OTHERS:,} elements are not part of a graph, the last is <{name:.40}>; "
                    "save the graph without drawings"
                )
        if name == "graph":
            if self.directed is not None:
                raise ProblemError(f"{self.path}: has a second graph; save each graph in a file of its own")
            self.directed = element.get("edgedefault", "directed") != "undirected"
        elif name in ("node", "edge"):
            self.data = {}

    def end(self, name: str, element: Any) -> None:
        match name:
            case "key":
                for part in self.kinds(element):
                    self.keys[element.get("id", "")] = (part, element.get("attr.name") or element.get("id", ""))
                    default = next((child for child in element if str(child.tag).endswith("default")), None)
                    if default is not None:
                        self.defaults[part][self.keys[element.get("id", "")][1]] = (default.text or "").strip()
            case "data" if self.above:
                key = element.get("key", "")
                into = self.graph_data if self.above[-1] == "graph" else self.data
                into[self.keys.get(key, ("", key))[1]] = (element.text or "").strip()
            case "node":
                node = element.get("id")
                if node is None or node in self.graph.nodes:
                    what = "no id" if node is None else f"the id {shortened(node)}, which another node has"
                    raise ProblemError(
                        f"{self.path}, node {len(self.graph.nodes) + 1}: has {what}; give each node its own id"
                    )
                self.graph.nodes[node] = self.data
            case "edge":
                source, target = element.get("source"), element.get("target")
                if source is None or target is None:
                    raise ProblemError(
                        f"{self.path}, edge {len(self.graph.edges) + 1}: has no source or no target; each edge needs both"
                    )
                values = self.defaults["edge"] | self.data
                self.graph.edges.append((source, target, values))
                directed = element.get("directed")
                if source != target and not (self.directed if directed is None else directed == "true"):
                    self.graph.edges.append((target, source, values))

    def kinds(self, key: Any) -> list[str]:
        """Return the kinds of element that a key applies to."""
        given = key.get("for", "all")
        return [given] if given in self.defaults else list(self.defaults) if given == "all" else []
