"""How long routes through a city take: to load, and between an answer and the next question.

    python benchmarks/network.py [--side N] [--people N] [--strategy NAME] [--file CITY.graphml --origin A --destination B]

Without a file a city is made: an irregular grid of streets, some of them one-way, some missing, with names, lengths, speeds
and coordinates, written to a GraphML file as OSMnx does. A wait is telling the answer and asking for the next question.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import tradeoff
from tradeoff import Interview, LinearRespondent
from tradeoff.errors import ProblemWarning

OBJECTIVES = ("length:min", "travel_time:min", "stress:min", "toll:min")
BLOCK = 110.0  # metres
DEGREE = 111_195.0  # metres


def city(side: int, seed: int = 0) -> Any:
    """Return a made-up city of side x side crossings as a networkx graph with OSMnx's attributes."""
    import networkx

    rng = np.random.default_rng(seed)
    graph = networkx.MultiDiGraph(created_with="OSMnx 2.0", crs="epsg:4326", name="made-up city")
    north, east = 50.8, 4.3
    for row, column in np.ndindex(side, side):
        x, y = (np.array([column, row]) + rng.normal(0, 0.22, 2)) * BLOCK / DEGREE
        graph.add_node(row * side + column, x=east + x / math.cos(math.radians(north)), y=north + y, street_count=4)
    for row, column in np.ndindex(side, side):
        here = row * side + column
        for there, along, street in (
            (here + 1, column + 1, f"{row}th Street"),
            (here + side, row + 1, f"{column}th Avenue"),
        ):
            main = int(street.partition("th")[0]) % 8 == 0
            if along == side or (not main and rng.random() < 0.15):
                continue
            ends = [(here, there), (there, here)][:: rng.choice([1, -1])]
            for source, target in ends if main or rng.random() < 0.6 else ends[:1]:
                _add_street(graph, source, target, street, main, rng)
    return graph


def _add_street(graph: Any, source: int, target: int, street: str, main: bool, rng: np.random.Generator) -> None:
    a, b = graph.nodes[source], graph.nodes[target]
    gap = np.array([(a["x"] - b["x"]) * math.cos(math.radians(a["y"])), a["y"] - b["y"]]) * DEGREE
    length = float(np.hypot(*gap)) * rng.uniform(1.0, 1.3)
    speed = float(rng.choice([50.0, 70.0]) if main else rng.choice([20.0, 30.0, 30.0, 50.0]))
    name = str([street, f"Old {street}"]) if rng.random() < 0.02 else street
    # OSMnx writes numbers as texts; so does this.
    graph.add_edge(
        source, target, name=name, highway="primary" if main else "residential", oneway="False",
        length=f"{length:.3f}", speed_kph=f"{speed:.1f}", travel_time=f"{3.6 * length / speed:.2f}",
        stress=f"{length / 1000 * (3.0 if main else 1.0) * rng.uniform(0.5, 1.5):.4f}",
        toll=f"{0.002 * length if speed == 70 else 0.0:.3f}",
    )  # fmt: skip


def measure(
    source: str, options: dict[str, Any], people: int, strategy: str
) -> tuple[Any, float, list[float], list[int]]:
    """Return the problem, the seconds to load it, the seconds of every wait, and the questions of each person."""
    waits: list[float] = []
    counts: list[int] = []
    load = 0.0
    for number in range(people):
        begin = time.perf_counter()
        problem: Any = tradeoff.load(source, **options)  # anew, so that nothing is remembered from the last person
        load = max(load, time.perf_counter() - begin)
        weights = np.random.default_rng(number).dirichlet(np.ones(len(problem.objectives)))
        person = LinearRespondent.scaled(problem, weights, 0.01)
        begin = time.perf_counter()
        interview = Interview(problem, strategy)
        while question := interview.ask():
            waits.append(time.perf_counter() - begin)
            begin = time.perf_counter()
            interview.tell(person(question))
        counts.append(len(interview.answers))
    return problem, load, waits, counts


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=64, help="crossings along each side of the city (default: 64)")
    parser.add_argument("--people", type=int, default=5, help="simulated people for each row (default: 5)")
    parser.add_argument("--strategy", default="careful", help="the way of asking (default: careful)")
    parser.add_argument("--file", type=Path, help="a GraphML file of your own")
    parser.add_argument("--origin", help="a node, or x,y")
    parser.add_argument("--destination", help="a node, or x,y")
    parser.add_argument("--objectives", default=",".join(OBJECTIVES), help="the attributes, NAME:min,NAME:min")
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore", ProblemWarning)
    wanted = given.objectives.split(",")
    with tempfile.TemporaryDirectory() as folder:
        source, ends = given.file, (given.origin, given.destination)
        if source is None:
            import networkx

            source, ends = Path(folder) / "city.graphml", ("0", str(given.side**2 - 1))
            networkx.write_graphml(city(given.side), source)
        table = Table("objectives", "routes", "load s", "p50 ms", "p95 ms", "longest ms", "questions")
        for count in range(2, len(wanted) + 1):
            options = {"origin": ends[0], "destination": ends[1], "objectives": ",".join(wanted[:count])}
            problem, load, waits, counts = measure(str(source), options, given.people, given.strategy)
            network = problem.network
            p50, p95, most = np.percentile(1000 * np.array(waits), [50, 95, 100])
            routes = f"{len(problem.supported.gains):,}" + ("" if problem.complete else " and more")
            table.add_row(
                str(count), routes, f"{load:.2f}", f"{p50:.0f}", f"{p95:.0f}", f"{most:.0f}", f"{np.mean(counts):.1f}"
            )
        Console().print(f"{len(network.nodes):,} nodes, {len(network.source):,} edges on some way", table, sep="\n")


if __name__ == "__main__":
    main()
