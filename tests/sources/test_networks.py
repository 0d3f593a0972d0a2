"""Networks: routes are the best of all simple paths, every plan arrives, and files that are wrong are refused."""

from __future__ import annotations

import importlib.util
import json
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from click.testing import CliRunner
from scipy.optimize import linprog

import tradeoff
from tests.messages import refused
from tradeoff import MDP, ArgumentError, Interview, LinearRespondent, ProblemError
from tradeoff.apps.cli.main import main
from tradeoff.simulation.respondents import relative_regret
from tradeoff.sources.networks.routes import Routes

ROOT = Path(__file__).parents[2]
EASY = {"origin": "a", "destination": "c", "objectives": "length:min,time:min"}


@pytest.fixture(scope="module")
def benchmark() -> Any:
    spec = importlib.util.spec_from_file_location("benchmark_network", ROOT / "benchmarks" / "network.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def random_graph(rng: np.random.Generator, *, nodes: int = 6, k: int = 2, whole: bool = False) -> Any:
    """Return a small multigraph with loops, parallel edges and dead ends, in which node 0 leads to the last."""
    kind = networkx.MultiDiGraph if rng.random() < 0.7 else networkx.MultiGraph
    graph = kind()
    graph.add_nodes_from(range(nodes))
    pairs = [tuple(rng.integers(0, nodes, 2)) for _ in range(2 * nodes)] + [(i, i + 1) for i in range(nodes - 1)]
    for source, target in pairs:
        amounts = rng.integers(0, 4, k).astype(float) if whole else rng.random(k)
        graph.add_edge(int(source), int(target), **{f"c{j}": str(amounts[j]) for j in range(k)})
    return graph


def ways(graph: Any, k: int, goal: int, longest: int | None = None) -> np.ndarray:
    """Return the amounts of all simple paths from 0, or of all walks of at most so many edges."""
    directed = graph if graph.is_directed() else graph.to_directed()
    found = []

    def go(node: int, seen: tuple[int, ...], amounts: np.ndarray, steps: int) -> None:
        if node == goal:
            found.append(amounts)
            return
        if longest is not None and steps == longest:
            return
        for _, after, values in directed.edges(node, data=True):
            if longest is not None or after not in seen:
                more = np.array([float(values[f"c{j}"]) for j in range(k)])
                go(after, (*seen, after), amounts + more, steps + 1)

    go(0, (0,), np.zeros(k), 0)
    return np.array(found)


def loaded(graph: Any, k: int, goal: int, directions: str = "min", **options: Any) -> Any:
    wanted = ",".join(f"c{j}:{directions}" for j in range(k))
    return tradeoff.load(graph, origin=0, destination=goal, objectives=wanted, **options)


def supported(points: np.ndarray) -> np.ndarray:
    """Return the costs that are least for some weights above 0, each tried by a linear program."""
    kept = []
    for point in np.unique(points, axis=0):
        done = linprog(
            np.zeros(points.shape[1]), A_ub=point - points, b_ub=np.zeros(len(points)) + 1e-12,
            A_eq=np.ones((1, points.shape[1])), b_eq=[1.0], bounds=(1e-5, None),
        )  # fmt: skip
        if done.status == 0:
            kept.append(point)
    return np.array(kept)


# --- routes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(24))
def test_routes_are_the_best_of_all_simple_paths(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k = 1 + seed % 3
    graph = random_graph(rng, k=k, whole=seed % 2 == 0)
    problem, points = loaded(graph, k, 5), ways(graph, k, 5)
    assert isinstance(problem, Routes) and problem.complete
    gains = (problem.gain_scale.origin - points) / -problem.gain_scale.scale * problem.gain_scale.matters
    likely = rng.dirichlet(np.ones(k), 20) * rng.integers(0, 2, (20, k))
    for weights, best in zip(likely, problem.best(likely), strict=True):
        assert best.value @ weights == pytest.approx((gains @ weights).max(), abs=1e-9)
        outcome = problem.outcome(best.value)
        assert not np.any(np.all(points <= outcome + 1e-9, axis=1) & np.any(points < outcome - 1e-9, axis=1))
        assert np.abs(points - outcome).max(axis=1).min() < 1e-9  # it is a path that exists
    best_for_somebody = problem.gain_scale.gains(supported(points))
    against = rng.normal(size=(20, k))
    for weights, best in zip(against, problem.best(against), strict=True):
        assert best.value @ weights == pytest.approx((best_for_somebody @ weights).max(), abs=1e-6)


def test_the_path_that_is_told_is_the_path_that_is_meant() -> None:
    graph = random_graph(np.random.default_rng(3), nodes=8, k=2)
    problem = loaded(graph, 2, 7)
    for best in problem.best(np.random.default_rng(0).dirichlet(np.ones(2), 10)):
        journey = problem.journey(best)
        assert journey.states[0] == "0" and journey.layers[0].ends[-1] and journey.states[-1] == "7"
        np.testing.assert_allclose(journey.outcome(journey.best([[1, 1]])[0].value), problem.outcome(best.value))
        (told,) = problem.show(best).trajectories
        assert told.states[0] == "0" and told.states[-1] == "7"


def test_streets_are_told_turn_by_turn_and_drawn_where_they_are() -> None:
    graph = networkx.DiGraph()
    for i, street in enumerate(["Main Street", "Main Street", "['Mill Lane', \"King's Way\"]", ""]):
        graph.add_edge(i, i + 1, length=1.0, toll="0", name=street)
        graph.add_node(i, x=float(i), y=2.0)
    graph.add_edge(0, 4, length="9", toll="-0.0")
    problem = tradeoff.load(graph, origin=0, destination=4, objectives={"length": "min", "toll": None})
    (best,) = problem.best([[1, 1]])
    (told,) = problem.show(best).trajectories
    assert told.states == ("0", "2", "3", "4") and told.actions == ("Main Street", "Mill Lane / King's Way", "to 4")
    assert best.plan.name == "Main Street, Mill Lane / King's Way, to 4"
    assert problem.places == {str(i): (float(i), 2.0) for i in range(4)}
    assert any("less is taken to be better for toll" in note for note in problem.notes)


def test_parallel_edges_are_choices_unless_one_is_worse_in_everything() -> None:
    graph = networkx.MultiDiGraph()
    for length, when in ((5, 1), (1, 5), (6, 6), (5, 1)):
        graph.add_edge("a", "c", length=length, time=when)
    graph.add_edge("a", "a", length=0, time=0)
    graph.add_edge("c", "a", length=0, time=0)
    problem = tradeoff.load(graph, **EASY)
    assert [problem.outcome(a.value).tolist() for a in problem.best([[1, 0], [0, 1]])] == [[1, 5], [5, 1]]
    notes = " ".join(problem.notes)
    assert "2 edges are no better" in notes and "1 edges lead back to where they begin" in notes


@pytest.mark.parametrize("strategy", ["paper", "certified", "careful"])
def test_a_whole_interview_finds_the_route_and_can_be_resumed(strategy: str) -> None:
    graph = random_graph(np.random.default_rng(11), nodes=14, k=3)
    problem = loaded(graph, 3, 13)
    for seed in range(4):
        person = LinearRespondent.scaled(problem, np.random.default_rng(seed).dirichlet(np.ones(3)), 0.001)
        interview = Interview(problem, strategy)
        while question := interview.ask():
            interview.tell(person(question))
        made = interview.recommendation
        regret = relative_regret(problem, person, made.option)
        assert regret <= (made.regret_bound if made.regret_bound is not None else 0.05) + 1e-9
        again = Interview.resume(loaded(graph, 3, 13), interview.log)
        assert again.recommendation.option.value.tolist() == made.option.value.tolist()
        assert [one.question.key for one in again.answers] == [one.question.key for one in interview.answers]


def test_where_not_all_routes_are_found_the_best_still_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tradeoff.sources.networks.routes.MOST_ASKED", 3)
    graph = random_graph(np.random.default_rng(5), nodes=12, k=3)
    problem, points = loaded(graph, 3, 11), ways(graph, 3, 11)
    assert not problem.complete and "there may be more" in " ".join(problem.notes)
    gains = (problem.gain_scale.origin - points) / -problem.gain_scale.scale
    weights = np.random.default_rng(1).dirichlet(np.ones(3), 50)
    worth = np.array([w @ a.value for w, a in zip(weights, problem.best(weights), strict=True)])
    np.testing.assert_allclose(worth, (gains @ weights.T).max(axis=0), atol=1e-9)
    assert np.isfinite([a.value for a in problem.best(np.random.default_rng(2).normal(size=(9, 3)))]).all()


# --- scenarios --------------------------------------------------------------------------------------------------------


def jammed(rng: np.random.Generator) -> Any:
    graph = networkx.gnp_random_graph(8, 0.5, seed=4, directed=True)
    for _, _, values in graph.edges(data=True):
        values["c0"], values["c1"] = rng.random(2)
        if rng.random() < 0.7:
            values["c0_jam"] = values["c0"] * 3
    return graph


@pytest.mark.parametrize("horizon", [None, 4])
def test_scenarios_average_to_what_is_promised(horizon: int | None) -> None:
    graph = jammed(np.random.default_rng(0))
    problem = loaded(
        graph, 2, 7, scenarios="clear:0.6,jam:0.4" if horizon else {"clear": 0.6, "jam": 0.4}, horizon=horizon
    )
    for _, _, values in graph.edges(data=True):
        values["c0"] = 0.6 * values["c0"] + 0.4 * values.get("c0_jam", values["c0"])
    plain = loaded(graph, 2, 7, horizon=horizon)
    weights = np.random.default_rng(1).dirichlet(np.ones(2), 6)
    for best, same in zip(problem.best(weights), plain.best(weights), strict=True):
        promised = problem.outcome(best.value)
        np.testing.assert_allclose(promised, plain.outcome(same.value), rtol=1e-9)
        lottery = problem.show(best)
        np.testing.assert_allclose(lottery.average, promised, rtol=1e-9)
        assert len(lottery.trajectories) <= 3 and all(0 < t.probability <= 1 for t in lottery.trajectories)
        mdp, plan = (
            (problem, best.plan) if horizon else (problem.journey(best), problem.journey(best).best([[1, 1]])[0].plan)
        )
        drawn = mdp.rollout(plan, 0, 4000)
        error = 5 * drawn.outcomes.std(axis=0) / np.sqrt(4000) + 1e-12
        assert np.all(np.abs(drawn.outcomes.mean(axis=0) - promised) <= error)
        assert len(np.unique(drawn.outcomes[:, 0].round(9))) > 1
    assert "on every edge" in " ".join(problem.notes)


@pytest.mark.parametrize("given", ["jam", "jam:0.5", "jam:0.5,clear:x", "jam:1.5,clear:-0.5", "jam:0.5,jam:0.5", ":1"])
def test_scenarios_that_make_no_sense_are_refused(given: str) -> None:
    with pytest.raises(ArgumentError):
        loaded(jammed(np.random.default_rng(0)), 2, 7, scenarios=given)


@pytest.mark.parametrize("given", ["rubbish", "jam", ":1", "clear:0.5,jam", [("clear", 1)]])
def test_scenarios_without_names_or_probabilities_say_how_they_are_written(given: object) -> None:
    with refused(ArgumentError, "scenarios is", "NAME:PROBABILITY,NAME:PROBABILITY"):
        loaded(jammed(np.random.default_rng(0)), 2, 7, scenarios=given)
    with pytest.raises(ArgumentError, match="different names"):
        loaded(jammed(np.random.default_rng(0)), 2, 7, scenarios={})


def test_scenarios_that_no_edge_knows_are_all_named_with_what_was_looked_for() -> None:
    words = (
        "for scenario 'clear' or 'fog', .* looked for: 'c0_clear', 'c1_clear', 'c0_fog' and 'c1_fog'; with .* c0_jam"
    )
    with pytest.raises(ProblemError, match=words):
        loaded(jammed(np.random.default_rng(0)), 2, 7, scenarios="clear:0.9,fog:0.1")
    many = ",".join(f"s{i}:0.1" for i in range(10))
    with pytest.raises(ProblemError, match=r"'s7', \.\.\. \(10 in all\).*\.\.\. \(20 in all\)"):
        loaded(jammed(np.random.default_rng(0)), 2, 7, scenarios=many)


def test_an_objective_may_be_known_in_scenarios_only() -> None:
    graph = networkx.DiGraph()
    graph.add_edge("a", "c", wait_clear=1.0, wait_jam=5.0)
    asked = {"origin": "a", "destination": "c", "objectives": "wait:min"}
    problem = tradeoff.load(graph, **asked, scenarios="clear:0.75,jam:0.25")
    assert problem.gain_scale.ideal.tolist() == [2.0]
    with pytest.raises(
        ArgumentError, match="no edge has the attribute 'wait', 'wait_snow' or 'wait_ice'; with numbers"
    ):
        tradeoff.load(graph, **asked, scenarios="snow:0.5,ice:0.5")


# --- the MDP ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("directions", ["min", "max"])
def test_with_a_horizon_it_is_the_best_of_all_walks_and_everybody_arrives(seed: int, directions: str) -> None:
    rng = np.random.default_rng(seed)
    graph = networkx.DiGraph(random_graph(rng, nodes=5, whole=seed % 2 == 0))
    graph.remove_edges_from(list(networkx.selfloop_edges(graph)))
    horizon = 4 + seed % 2
    problem, points = loaded(graph, 2, 4, directions, horizon=horizon), ways(graph, 2, 4, horizon)
    assert isinstance(problem, MDP)
    gains = problem.gain_scale.gains(points)
    weights = np.concatenate([rng.normal(size=(8, 2)), np.eye(2), -np.eye(2), np.zeros((1, 2))])
    for row, best in zip(weights, problem.best(weights), strict=True):
        assert best.value @ row == pytest.approx((gains @ row).max(), abs=1e-9)
        assert all(t.states[-1] == "4" for t in problem.show(best).trajectories)


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("directions", ["min", "max"])
def test_a_short_horizon_is_kept_with_and_without_circles(seed: int, directions: str) -> None:
    rng = np.random.default_rng(seed)
    size = 3 + seed % 4
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(size))
    straight = seed % 3 > 0
    for i in range(size):
        for j in range(i + 1 if straight else 0, size):
            if i != j and (j == i + 1 or rng.random() < 0.5):
                graph.add_edge(i, j, c0=float(rng.integers(0, 5)), c1=float(rng.random()))
    assert networkx.is_directed_acyclic_graph(graph) or not straight
    least, goal = networkx.shortest_path_length(graph, 0, size - 1), size - 1
    if least > 1:
        with pytest.raises(ProblemError, match=f"is {least} edges away, but the horizon is 1"):
            loaded(graph, 2, goal, directions, horizon=1)
    for horizon in range(least, size + 1):
        problem, points = loaded(graph, 2, goal, directions, horizon=horizon), ways(graph, 2, goal, horizon)
        gains = problem.gain_scale.gains(points)
        weights = np.concatenate([rng.normal(size=(6, 2)), np.eye(2), -np.eye(2), np.zeros((1, 2))])
        for row, best in zip(weights, problem.best(weights), strict=True):
            assert best.value @ row == pytest.approx((gains @ row).max(), abs=1e-9)
            assert np.abs(points - problem.outcome(best.value)).max(axis=1).min() < 1e-9  # of a walk that arrives
            assert all(told.states[-1] == str(goal) for told in problem.show(best).trajectories)


def test_a_horizon_of_one_takes_the_only_edge_that_arrives() -> None:
    graph = networkx.DiGraph()
    for source, target, t, m in (("a", "b", 1, 5), ("b", "c", 1, 5), ("a", "c", 9, 1)):
        graph.add_edge(source, target, t=t, m=m)
    asked = {"origin": "a", "destination": "c", "objectives": "t,m"}
    for horizon, states, outcome in ((1, ("a", "c"), [9, 1]), (2, ("a", "b", "c"), [2, 10])):
        problem = tradeoff.load(graph, **asked, horizon=horizon)
        (best,) = problem.best([[1, 0]])
        assert problem.outcome(best.value).tolist() == outcome
        assert [told.states for told in problem.show(best).trajectories] == [states]
        assert ("1 of 3 nodes are on no route of at most 1 edges" in " ".join(problem.notes)) == (horizon == 1)


def test_without_circles_more_may_be_better() -> None:
    graph = networkx.DiGraph()
    for i in range(5):
        for j in range(i + 1, 6):
            graph.add_edge(i, j, c0=float((3 * i + 7 * j) % 5), c1=float(i - j))
    problem, points = loaded(graph, 2, 5, "max"), ways(graph, 2, 5)
    assert isinstance(problem, MDP) and problem.horizon == 5 and len(problem.layers) == 1
    weights = np.random.default_rng(0).normal(size=(20, 2))
    worth = np.array([w @ a.value for w, a in zip(weights, problem.best(weights), strict=True)])
    np.testing.assert_allclose(worth, (problem.gain_scale.gains(points) @ weights.T).max(axis=0), atol=1e-12)


def test_edges_of_one_node_with_one_street_and_end_are_different_actions() -> None:
    graph = networkx.MultiDiGraph()
    for length, when in ((5, 1), (1, 5), (3, 3)):
        graph.add_edge("a", "c", length=length, time=when, name="Main Street")
    problem = tradeoff.load(graph, **EASY, horizon="1")
    assert problem.actions == ("Main Street to c", "Main Street to c (2)", "Main Street to c (3)")


# --- from the command line, and a city --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def town(benchmark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("town") / "town.graphml"
    networkx.write_graphml(benchmark.city(12), path)
    return path


@pytest.mark.parametrize("more", [[], ["-w", "horizon=40"]])
def test_a_whole_interview_from_the_command_line(town: Path, more: list[str]) -> None:
    source = [
        str(town),
        "--objectives",
        "length:min,travel_time:min,toll:min",
        "-w",
        "origin=0",
        "-w",
        "destination=143",
    ]
    call = ["ask", *source, *more, "--simulate", "length=1,toll=2", "--precision", "0.001", "--json"]
    done = CliRunner(env={"COLUMNS": "100"}).invoke(main, call)
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["recommendation"]["finished"] and result["relative_regret"] <= 0.02
    for command in (
        ["check"],
        ["show", "--json"],
        ["solve", "--weights", "length=1"],
        ["explain", "--weights", "toll=1"],
    ):
        told = CliRunner(env={"COLUMNS": "100"}).invoke(main, [command[0], *source, *more, *command[1:]])
        assert told.exit_code == 0, told.output
    refused = CliRunner().invoke(main, ["show", str(town), "--objectives", "length"])
    assert refused.exit_code == 2 and "say which node is the origin" in refused.stderr
    refused = CliRunner().invoke(main, ["show", str(town), "--objectives", "lenght", *source[3:]])
    assert refused.exit_code == 2 and "'lenght'" in refused.stderr


def test_a_city_of_thousands_of_nodes_is_interactive(benchmark: Any, tmp_path: Path) -> None:
    path = tmp_path / "city.graphml"
    networkx.write_graphml(benchmark.city(64), path)
    options = {"origin": "0", "destination": "4095", "objectives": "length:min,travel_time:min,toll:min"}
    problem, _, _, counts = benchmark.measure(str(path), options, 1, "careful")
    assert len(problem.network.nodes) > 3900 and len(problem.network.source) > 10_000 and problem.complete
    assert [o.unit for o in problem.objectives] == ["m", "s", ""]
    assert max(counts) <= 18
    begin = time.process_time()
    problem.best(np.random.default_rng(0).dirichlet(np.ones(3), 300))
    assert time.process_time() - begin < 2  # a hundred times what looking them up takes, less than solving them anew


def test_routes_have_a_map_without_a_horizon() -> None:
    from tradeoff.presentation.maps import map_layout
    from tradeoff.presentation.plans import plan_names

    path = Path(__file__).parents[2] / "docs/how-to/data/town.graphml"
    routes = tradeoff.load(str(path), origin="A1", destination="E5", objectives="length,travel_time")
    layout = map_layout(routes)
    assert layout is not None and layout.roads
    for best in routes.best([[1, 0], [0, 1]]):
        (told,) = routes.show(best).trajectories
        drawn = layout.route(told.through)
        assert told.through[0] == told.states[0] == "A1" and told.through[-1] == told.states[-1] == "E5"
        assert set(told.states) <= set(told.through)
        assert all(tuple(sorted(pair)) in layout.roads for pair in pairwise(drawn))  # along roads, not across
    one, other = plan_names(routes, *routes.best([[1, 0], [0, 1]]))
    assert one != other and max(len(one), len(other)) < 60
