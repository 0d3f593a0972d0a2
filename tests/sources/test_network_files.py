"""What networks and their files are refused for, and what is read from files."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import defusedxml.ElementTree
import networkx
import numpy as np
import pytest

import tradeoff
from tests.messages import refused
from tests.processes import QUICK
from tests.sources.test_networks import EASY, random_graph
from tradeoff import ArgumentError, ProblemError
from tradeoff.sources.networks.graphml import read_graphml, refusal

# --- what is refused --------------------------------------------------------------------------------------------------


def easy(**last: Any) -> Any:
    graph = networkx.DiGraph()
    graph.add_edge("a", "b", length=1, time=2)
    graph.add_edge("b", "c", name="Mill Lane", **{"length": 1, "time": 2} | last)
    graph.add_edge("b", "a", length=1, time=1)
    graph.add_edge("d", "c", length=1, time=1)
    return graph


@pytest.mark.parametrize(
    ("graph", "options", "kind", "facts"),
    [
        (easy(), {"origin": None}, ArgumentError, ("origin=ID", "origin=x,y", "'a'")),
        (easy(), {"origin": "z"}, ArgumentError, ("origin", "'z'", "x,y", "'a', 'b'")),
        (easy(), {"origin": "1,2"}, ArgumentError, ("origin", "1,2", "coordinates x and y", "'a', 'b'")),
        (easy(), {"origin": "nan,2"}, ArgumentError, ("nan,2", "finite numbers")),
        (easy(), {"origin": "c"}, ArgumentError, ("both node 'c'",)),
        (easy(), {"objectives": None}, ArgumentError, ("objectives=", "length, time")),
        (easy(toll=1), {"objectives": "toll"}, ProblemError, ("from 'a' to 'b'", "'toll'", "3 of 4 edges")),
        (easy(), {"objectives": "lenght"}, ArgumentError, ("no edge", "'lenght'", "length, time")),
        (easy(), {"objectives": "time:maxi"}, ArgumentError, ("'time'", "'maxi'", "time:min")),
        (easy(), {"objectives": {"time": "MAX"}}, ArgumentError, ("'time'", "'MAX'", "time:min")),
        (easy(), {"objectives": "speed:maxi"}, ArgumentError, ("no edge", "'speed:maxi'")),
        (easy(), {"origin": "a", "destination": "d"}, ProblemError, ("'a'", "'d'", "4 nodes", "2 can be", "0 lead")),
        (easy(), {"horizon": 1}, ProblemError, ("'c'", "2 edges away", "horizon is 1")),
        (easy(), {"horizon": "x"}, ArgumentError, ("horizon is 'x'",)),
        (easy(), {"objectives": "length:max"}, ProblemError, ("more 'length' is better", "cycles", "horizon=30")),
        (easy(length=-1), {}, ProblemError, ("from 'b' to 'c' (Mill Lane)", "length -1", "below 0", "horizon=30")),
        (easy(length="50 mph"), {}, ProblemError, ("from 'b' to 'c' (Mill Lane)", "'length'", "'50 mph'")),
        (easy(length="['1', '2']"), {}, ProblemError, ("['1', '2']",)),
        (easy(length=[1, 2]), {}, ProblemError, ("[1, 2]",)),
        (easy(length="nan"), {}, ProblemError, ("'nan'", "finite")),
        (easy(length=float("inf")), {}, ProblemError, ("inf", "finite")),
        (easy(length=True), {}, ProblemError, ("True", "finite")),
        (easy(length=""), {}, ProblemError, ("'length'", "1 of 4")),
        (easy(length=None), {}, ProblemError, ("'length'", "1 of 4")),
        (easy(), {"speed": 3}, ArgumentError, ("'speed'", "origin, destination, objectives")),
        (networkx.empty_graph(3), {"origin": 0, "destination": 1}, ProblemError, ("3 nodes", "no edges")),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said(
    graph: Any, options: dict[str, Any], kind: type[Exception], facts: tuple[str, ...]
) -> None:
    with refused(kind, *facts):
        tradeoff.load(graph, **EASY | options)


def test_a_message_stays_short_however_long_the_names_are() -> None:
    with pytest.raises(ProblemError, match=r"^.{,300}\.\.\.$"):
        tradeoff.load(easy(length="", **{"x" * 9_999: 1}), **EASY)


def test_nodes_that_are_written_alike_are_refused() -> None:
    graph = networkx.DiGraph([(1, "1")])
    with refused(ProblemError, "'1'", "relabel_nodes"):
        tradeoff.load(graph, **EASY)


def test_amounts_too_large_to_be_added_up_are_refused() -> None:
    graph = easy(length=1.7e308)
    graph.edges["a", "b"]["length"] = 1.7e308
    for objectives in ("length", "length,time"):
        with pytest.raises(ProblemError, match="too large"):
            tradeoff.load(graph, **EASY | {"objectives": objectives}).best(np.ones((1, objectives.count(",") + 1)))


def test_a_place_finds_the_nearest_node_and_says_how_far() -> None:
    graph = easy()
    for node, x, y in (("a", 4.30, 50.80), ("b", 4.31, 50.80), ("c", 4.31, 50.81)):
        graph.add_node(node, lon=x, lat=y)
    problem = tradeoff.load(graph, origin=(4.3, 50.801), destination="4.32,50.82", objectives="length")
    assert problem.title.endswith("from a to c")
    assert any("node a" in note and "(4.3, 50.801) (111 m away)" in note for note in problem.notes)


@pytest.mark.parametrize(
    ("place", "facts"),
    [
        ("400,50.8", ("longitude, 400", "-180 and 180 degrees", "x is the longitude and y the latitude")),
        ("4.3,-91", ("latitude, -91", "-90 and 90 degrees")),
        ("50.8,4.3", ("6,116,220 m", "x is the longitude and y the latitude")),
        ("4.3,50.83", ("2,332 m", "1,315 m", "x is 4.3 to 4.31, y is 50.8 to 50.81")),
    ],
)
def test_a_place_outside_the_network_is_refused(place: str, facts: tuple[str, ...]) -> None:
    graph = easy()
    for node, x, y in (("a", 4.30, 50.80), ("b", 4.31, 50.80), ("c", 4.31, 50.81)):
        graph.add_node(node, lon=x, lat=y)
    for what in ("origin", "destination"):
        with refused(ArgumentError, f"the {what} {place} is not in this network", *facts):
            tradeoff.load(graph, **EASY | {what: place})


def test_places_in_other_units_may_be_large_but_not_far_away() -> None:
    graph = easy()
    for node, x, y in (("a", 400.0, 500.0), ("b", 450.0, 500.0), ("c", 480.0, 560.0)):
        graph.add_node(node, x=x, y=y)
    assert tradeoff.load(graph, **EASY | {"origin": "390,480"}).title.endswith("from a to c")
    for place in ("0,0", "1e308,-1e308"):
        with pytest.raises(ArgumentError, match="farther than the whole network is wide"):
            tradeoff.load(graph, **EASY | {"origin": place})
    for node in graph.nodes:
        graph.add_node(node, x=1.0, y=1.0)  # of no extent, so that nothing is known about what is far
    with refused(ArgumentError, "both node 'a'"):
        tradeoff.load(graph, **EASY | {"origin": "a", "destination": "7,7"})


def test_longitudes_may_be_counted_as_the_network_counts_them() -> None:
    graph = easy()
    for node, x in (("a", 181.0), ("b", 181.5), ("c", 182.0)):
        graph.add_node(node, lon=x, lat=-17.0)
    assert tradeoff.load(graph, **EASY | {"origin": "181.1,-17"}).title.endswith("from a to c")


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_files_are_read_as_networkx_reads_them(seed: int, tmp_path: Path) -> None:
    graph = random_graph(np.random.default_rng(seed))
    graph.graph["created_with"] = "OSMnx 2.0"
    graph.nodes[0]["x"] = 1.5
    for _, _, values in list(graph.edges(data=True))[:3]:
        values["name"] = "Rue de l'Été <&>"
    path = tmp_path / "net.graphml"
    networkx.write_graphml(graph, path)
    expected, found = networkx.read_graphml(path, force_multigraph=True), read_graphml(path)
    assert list(found.nodes) == list(expected.nodes) and found.nodes["0"] == {"x": "1.5"}
    assert found.about == {"created_with": "OSMnx 2.0"}
    directed = expected if expected.is_directed() else expected.to_directed()
    assert len(found.edges) == directed.number_of_edges()

    def listed(edges: Iterator[Any]) -> list[str]:
        return sorted(
            f"{a} {b} {sorted((k, str(v)) for k, v in values.items() if k != 'id')}" for a, b, values in edges
        )

    assert listed(iter(found.edges)) == listed(directed.edges(data=True))
    by_file = tradeoff.load(f"network:{path}", origin="0", destination="5", objectives="c0,c1")
    by_graph = tradeoff.load(graph, origin=0, destination=5, objectives="c0,c1")
    assert [o.tolist() for o in by_file.supported.values] == [o.tolist() for o in by_graph.supported.values]


def test_defaults_and_the_direction_of_single_edges_count(tmp_path: Path) -> None:
    path = tmp_path / "net.graphml"
    path.write_text(
        '<?xml version="1.0"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
        '<key id="l" for="edge" attr.name="length" attr.type="double"><default>2.5</default></key>'
        '<graph edgedefault="undirected"><node id="a"/><node id="b"/><node id="c"/>'
        '<edge source="b" target="a"/><edge source="b" target="c" directed="true"><data key="l">1</data></edge>'
        "</graph></graphml>"
    )
    problem = tradeoff.load(path, origin="a", destination="c", objectives="length")
    assert problem.gain_scale.ideal.tolist() == [3.5]
    with pytest.raises(ProblemError, match="cannot be reached"):
        tradeoff.load(path, origin="c", destination="a", objectives="length")


LAUGHS = '<?xml version="1.0"?><!DOCTYPE g [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><graphml><graph>&b;</graph></graphml>'
OUTSIDE = '<?xml version="1.0"?><!DOCTYPE g [<!ENTITY a SYSTEM "file:///etc/passwd">]><graphml>&a;</graphml>'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (LAUGHS, "<!DOCTYPE ...>"),
        (OUTSIDE, "<!DOCTYPE ...>"),
        ("", "not XML"),
        ("garbage " * 1_300_000, "a single tag, text or comment"),
        (bytes(range(256)) * 40_000, "UTF-8"),
        ("<graphml>" + "<graph>" * 1_000_000, "second graph"),
        ("<graphml>" + "<a>" * 3_000_000, "nested too deeply"),
        ("<graphml>" + "<a/>" * 2_500_000 + "</graphml>", "more than 100,000 .* <a>"),
        ("<graphml><graph>" + "<data/>" * 300_000, "not XML"),
        ("<html><body/></html>", "begins with <html>"),
        ("<graphml/>", "no <graph> in it"),
        ("<graphml><graph/></graphml>", "no edges"),
        ("<graphml><graph><node/></graph></graphml>", "node 1: has no id"),
        ("<graphml><graph><node id='a'/><node id='a'/></graph></graphml>", "the id 'a', which another"),
        ("<graphml><graph><edge source='a' target='b'/></graph></graphml>", "edge 1: there is no node 'a'"),
        ("<graphml><graph><edge source='a'/></graph></graphml>", "edge 1: has no source or no target"),
        ("<graphml><graph><hyperedge/></graph></graphml>", "only nodes and edges"),
        ('<?xml version="1.0" encoding="klingon"?><graphml/>', "in the encoding UTF-8|not XML"),
    ],
)
def test_hostile_files_are_refused_quickly(text: str | bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "net.graphml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    begin = time.process_time()
    with pytest.raises(ProblemError, match=words) as caught:
        tradeoff.load(path, **EASY)
    assert time.process_time() - begin < QUICK
    assert str(path) in str(caught.value) and len(str(caught.value)) < 1000
    assert "Forbidden" not in str(caught.value)


def test_a_forbidden_entity_is_said_in_words() -> None:
    with pytest.raises(ValueError) as caught:
        defusedxml.ElementTree.fromstring(LAUGHS)
    assert "an entity (<!ENTITY ...>)" in refusal(caught.value)


def test_a_file_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "net.graphml"
    with path.open("wb") as file:
        file.truncate(300 << 20)
    with pytest.raises(ProblemError, match="at most 256 MB"):
        tradeoff.load(path, **EASY)
