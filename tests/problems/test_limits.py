"""Limits: what is best within them, against enumeration and against the linear program of occupancies."""

from __future__ import annotations

import json
import re
from itertools import combinations, pairwise, permutations, product
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from tradeoff import (
    MDP,
    ArgumentError,
    Catalogue,
    Interview,
    LinearRespondent,
    Mixture,
    Objective,
    PointSet,
    ProblemError,
    load,
)
from tradeoff.apps.cli.main import main
from tradeoff.testing.problems import check_problem

TABLE = """name,price [EUR] (min),speed (max),balcony (max),brand
a,900,9,yes,Acme
b,500,7,no,Acme
c,600,6,yes,Bolt
d,450,5,yes,Bolt
e,400,1,no,Acme
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "flats.csv"
    path.write_text(TABLE)
    return path


# --- items -------------------------------------------------------------------------------------------------------------


def test_limited_items_are_those_that_keep_the_limits(table: Path) -> None:
    every = load(table)
    assert every.limited("price <= 500", "balcony = yes").names == ("d",)
    assert every.limited("Price <= 600 EUR; brand != acme").names == ("c", "d")
    assert load(table, limit=["speed >= 6", "brand = Acme"]).names == ("a", "b")
    assert load(table, limit="price ≤ 450").names == ("d", "e")
    twice = every.limited("price <= 600").limited("speed >= 6")
    assert twice.names == every.limited("price <= 600", "speed >= 6").names == ("b", "c")
    assert any("2 of 5 items keep that" in note for note in load(table, limit="price <= 450").notes)


def test_what_a_forbidden_item_beats_may_win(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("name,x (max),y (max),kind\nbest,9,9,no\nnext,8,8,yes\nother,1,9,yes\n")
    found = load(path)
    assert found.names == ("best",)
    within = found.limited("kind = yes")
    assert within.names == ("next", "other") and within.fingerprint == load(path, limit="kind=yes").fingerprint
    assert load(path, keep_dominated=True).limited("x <= 8").names == ("next", "other")


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_infeasible_limits_on_items_say_what_to_relax(data: st.DataObject) -> None:
    values = np.array(data.draw(st.lists(st.tuples(*[st.integers(0, 9)] * 3), min_size=1, max_size=6)), dtype=float)
    items = Catalogue(values, [Objective("a", "", "min"), Objective("b"), Objective("c", "", "min")])
    bounds = data.draw(st.tuples(*[st.integers(-2, 11)] * 3))
    limits = [f"a <= {bounds[0]}", f"b >= {bounds[1]}", f"c <= {bounds[2]}"]
    keeps = (values[:, 0] <= bounds[0]) & (values[:, 1] >= bounds[1]) & (values[:, 2] <= bounds[2])
    if keeps.any():
        assert items.limited(*limits).names == tuple(np.array(items.names)[keeps])
        return
    with pytest.raises(ProblemError) as caught:
        items.limited(*limits)
    said = str(caught.value)
    assert "relax" in said
    # Each proposal, taken alone or together as it says, leaves something to choose.
    ways = [part.split(", to ")[1] for part in said.replace("; and ", "; or ").split("; or ")]
    if "relax one" in said:
        for way in ways:
            assert items.limited(*[way if limit[0] == way[0] else limit for limit in limits]).names
    else:
        relaxed = {way[0]: way for way in ways}
        assert items.limited(*[relaxed.get(limit[0], limit) for limit in limits]).names


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("price", "is not of the form NAME <= NUMBER"),
        ("price < 500", "leaves open whether 500 itself is allowed; write <="),
        ("size <= 5", "neither an objective nor shown beside items"),
        ("brand <= Acme", "compares texts; write brand = TEXT"),
        ("price <= cheap", "compares price with 'cheap'; write a number of EUR"),
        ("price <= nan", "write a number"),
    ],
)
def test_limits_that_make_no_sense_are_refused(table: Path, limit: str, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        load(table, limit=limit)
    assert message in str(caught.value)


def test_limits_are_part_of_a_command_and_of_a_log(table: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    call = ["ask", str(table), "--limit", "price <= 600", "--limit", "speed >= 5"]
    begun = CliRunner(env={"COLUMNS": "200"}).invoke(main, [*call, "--log", str(log)], input="a\nq\n")
    assert begun.exit_code == 0 and "--limit 'price <= 600' --limit 'speed >= 5' --resume" in begun.output, begun.output
    assert CliRunner().invoke(main, [*call, "--resume", str(log)], input="q\n").exit_code == 0
    other = CliRunner().invoke(main, [*call[:-2], "--resume", str(log)], input="q\n")
    assert other.exit_code == 4  # another problem
    none = CliRunner().invoke(main, ["solve", str(table), "--limit", "price <= 300", "--weights", "speed=1"])
    assert none.exit_code == 3 and "relax one: 'price <= 300' by 100 EUR, to price <= 400 EUR" in none.stderr
    found = CliRunner().invoke(main, ["solve", str(table), "--limit", "price <= 500", "--weights", "speed=1", "--json"])
    assert json.loads(found.stdout)


def test_an_optimiser_cannot_be_limited_from_outside() -> None:
    points = PointSet(lambda w: max([(0.0, 1.0), (1.0, 0.0)], key=lambda p: float(w @ p)), ["x", "y"])
    with pytest.raises(ArgumentError, match="limits cannot be put on"):
        points.limited("x <= 0.5")


# --- routes ------------------------------------------------------------------------------------------------------------


def grid(rng: np.random.Generator, size: int) -> nx.DiGraph:
    graph = nx.DiGraph()
    for i, j in product(range(size), repeat=2):
        for a, b in ((i + 1, j), (i, j + 1), (i, j - 1)):
            if 0 <= a < size and 0 <= b < size:
                time, cost, risk = rng.integers(0, 9, 3)
                graph.add_edge(f"{i}{j}", f"{a}{b}", time=int(time), cost=int(cost), risk=int(risk))
    return graph


@pytest.mark.parametrize("seed", range(6))
def test_limited_routes_are_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph, names = grid(rng, 4), ["time", "cost", "risk"]
    routes = load(graph, origin="00", destination="33", objectives="time:min,cost:min,risk:min")
    every = np.array([
        [sum(graph[a][b][name] for a, b in pairwise(path)) for name in names]
        for path in nx.all_simple_paths(graph, "00", "33")
    ])  # fmt: skip
    bounds = np.quantile(every, [0.5, 0.4, 0.6], axis=0).diagonal()
    allowed = every[(every <= bounds).all(axis=1)]
    limits = [f"{name} <= {bound}" for name, bound in zip(names, bounds, strict=True)]
    if not len(allowed):
        with pytest.raises(ProblemError, match="relax"):
            routes.limited(*limits)
        return
    within = routes.limited(*limits)
    assert (within.fingerprint == routes.fingerprint) == np.array_equal(
        within.supported.values, routes.supported.values
    )
    for weights, best in zip(rows := rng.random((20, 3)), within.best(rows), strict=True):
        outcome = within.outcome(best.value)
        assert (outcome <= bounds + 1e-9).all()
        raw = weights / np.abs(within.scale)
        assert raw @ outcome == pytest.approx((allowed @ raw).min(), abs=1e-9)
    assert within.show(best).trajectories


def test_infeasible_limits_on_routes_say_what_to_relax() -> None:
    routes = load(grid(np.random.default_rng(0), 4), origin="00", destination="33", objectives="time:min,cost:min")
    least = float(routes.ideal[0])
    with pytest.raises(ProblemError, match=rf"'time <= {least - 1:g}' by 1, to time <= {least:g}"):
        routes.limited(f"time <= {least - 1:g}")
    with pytest.raises(ArgumentError, match="can be limited from above"):
        routes.limited("time >= 3")


# --- expected outcomes of an MDP ---------------------------------------------------------------------------------------


def random_mdp(seed: int) -> tuple[MDP, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    states, actions, horizon, k = 4, 3, 3, 3
    transitions = rng.dirichlet(np.ones(states) * 0.5, size=(states, actions))
    rewards = rng.integers(0, 10, (states, actions, k)).astype(float)
    aims = [Objective("a", "", "min"), Objective("b"), Objective("c")]
    mdp = MDP.from_arrays(transitions, rewards, horizon=horizon, start=0, objectives=aims)
    return mdp, transitions, rewards


def occupancy_program(
    transitions: np.ndarray,
    rewards: np.ndarray,
    horizon: int,
    weights: np.ndarray,
    rows: np.ndarray,
    bounds: np.ndarray,
) -> Any:
    """Return the linear program over how often each action is taken in each state at each step."""
    states, actions, _ = rewards.shape
    size = states * actions
    totals = np.tile(rewards.reshape(size, -1), (horizon, 1))
    flow, start = np.zeros((horizon * states, horizon * size)), np.zeros(horizon * states)
    start[0] = 1
    for step, state in product(range(horizon), range(states)):
        row = step * states + state
        flow[row, step * size + state * actions : step * size + (state + 1) * actions] = 1
        if step:
            flow[row, (step - 1) * size : step * size] = -transitions.reshape(size, states)[:, state]
    return linprog(
        -(totals @ weights), A_ub=(rows @ totals.T), b_ub=bounds, A_eq=flow, b_eq=start, method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_limited_mdps_are_as_good_as_the_program_of_occupancies(seed: int) -> None:
    mdp, transitions, rewards = random_mdp(seed)
    rng = np.random.default_rng(seed + 100)
    at = mdp.nadir + rng.uniform(0.3, 0.7, 3) * (mdp.ideal - mdp.nadir)
    limits, rows, bounds = (
        [f"a <= {at[0]}", f"b >= {at[1]}"],
        np.array([[1.0, 0, 0], [0, -1.0, 0]]),
        np.array([at[0], -at[1]]),
    )
    feasible = occupancy_program(transitions, rewards, 3, np.zeros(3), rows, bounds).status == 0
    if not feasible:
        with pytest.raises(ProblemError, match="relax"):
            mdp.limited(*limits)
        return
    within = mdp.limited(*limits)
    assert within.fingerprint not in (mdp.fingerprint, mdp.limited(limits[0]).fingerprint)
    grid = np.concatenate([rng.random((9, 3)), np.eye(3), rng.normal(size=(3, 3))])
    for weights, best in zip(grid, within.best(grid), strict=True):
        raw = within.gain_scale.raw_weights(weights)
        outcome = within.outcome(best.value)
        exact = -occupancy_program(transitions, rewards, 3, raw, rows, bounds).fun
        assert raw @ outcome == pytest.approx(exact, abs=1e-8)
        assert (rows @ outcome <= bounds + 1e-8).all()
        assert np.abs(within.evaluate(best.plan) - best.value).max() <= 1e-9
        if isinstance(best.plan, Mixture):
            assert len(best.plan.plans) <= 3
        if (weights >= 0).all():  # nothing else within the limits is better in one gain and worse in none
            gains = np.diag(np.where(within.matters, 1 / within.scale, 0.0))
            better = np.vstack([rows, -gains]), np.append(bounds, -gains @ outcome) + 1e-9
            most = occupancy_program(transitions, rewards, 3, gains.sum(axis=0), *better)
            assert most.x is None or -most.fun <= gains.sum(axis=0) @ outcome + 1e-5
    again = mdp.limited(*limits).best(grid[::-1])[::-1]
    assert all(np.array_equal(one.value, two.value) for one, two in zip(again, within.best(grid), strict=True))


@pytest.mark.parametrize("seed", range(6))
def test_an_objective_that_a_limit_fixes_cannot_be_changed(seed: int) -> None:
    mdp, transitions, rewards = random_mdp(seed)
    rng = np.random.default_rng(seed + 200)
    inside = mdp.outcome(np.mean([one.value for one in mdp.best(rng.random((4, 3)))], axis=0))
    within = mdp.limited(f"b = {inside[1]:.17g}")
    assert list(within.matters) == [True, False, True] and within.scale[1] == 1
    rows, bounds = np.array([[0, 1.0, 0], [0, -1.0, 0]]), np.array([inside[1], -inside[1]])
    for weights in np.concatenate([rng.dirichlet(np.ones(3), 8), np.eye(3)]):
        (best,) = within.best([weights])
        raw, outcome = within.gain_scale.raw_weights(weights), within.outcome(best.value)
        exact = -occupancy_program(transitions, rewards, 3, raw, rows, bounds).fun
        assert raw @ outcome == pytest.approx(exact, abs=1e-7)
        assert outcome[1] == pytest.approx(inside[1], abs=1e-8)
        assert not isinstance(best.plan, Mixture) or len(best.plan.plans) <= 2
        without = within.best([weights * [1, 0, 1]])[0]
        assert np.abs(best.value - without.value).max() <= 1e-7 or not np.any(weights * [1, 0, 1])


@pytest.mark.parametrize("limits", ["losses <= 300", "gain >= 500; fees = 100", "liquidity = 7.2"])
def test_limits_on_a_bundled_problem_are_kept(limits: str) -> None:
    within = load("portfolio").limited(limits)
    names = [objective.name for objective in within.objectives]
    for best in within.best(np.concatenate([np.eye(4), np.ones((1, 4)), [[1, 0, 0, 1], [0.3, 0.7, 0, 0]]])):
        amounts = dict(zip(names, within.outcome(within.evaluate(best.plan)), strict=True))
        for limit in limits.split("; "):
            name, relation, amount = limit.split()
            over = (amounts[name] - float(amount)) / float(amount)
            assert (over <= 1e-8 or relation == ">=") and (over >= -1e-8 or relation == "<=")


def test_an_optimum_that_is_not_proved_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    mdp, _, _ = random_mdp(1)
    within = mdp.limited(f"a <= {(mdp.nadir[0] + mdp.ideal[0]) / 2}")
    assert within.best([[1, 1, 1]])
    monkeypatch.setattr("tradeoff.mdp.limited.MOST_ROUNDS", 1)
    with pytest.raises(ProblemError, match="could not be proved"):
        within.best([[0.31, 0, -0.5], [0.2, 0.5, 0.1], [-1, 1, 0.1]])


@pytest.mark.parametrize("seed", range(12))
def test_advice_on_averages_is_feasible_minimal_and_the_same_in_any_order(seed: int) -> None:
    mdp, transitions, rewards = random_mdp(seed)
    rng = np.random.default_rng(seed + 300)
    at = (mdp.nadir + rng.uniform(0.75, 1.05, 3) * (mdp.ideal - mdp.nadir)).round(3)
    relations = ["<=", ">=", "=" if seed % 3 == 0 else ">="]
    limits = {f"{name} {relation} {amount!r}": (j, relation, float(amount))
              for j, (name, relation, amount) in enumerate(zip("abc", relations, at.tolist(), strict=True))}  # fmt: skip

    def feasible(chosen: list[tuple[int, str, float]], slack: float = 0.0) -> bool:
        sides = [(j, sign, amount) for j, relation, amount in chosen
                 for sign in {"<=": (1.0,), ">=": (-1.0,), "=": (1.0, -1.0)}[relation]]  # fmt: skip
        rows, bounds = [sign * np.eye(3)[j] for j, sign, _ in sides], [sign * amount for _, sign, amount in sides]
        found = occupancy_program(
            transitions, rewards, 3, np.zeros(3), np.array(rows).reshape(-1, 3), np.array(bounds) + slack
        )
        return bool(found.status == 0)

    if feasible(list(limits.values())):
        assert mdp.limited(*limits).best([[1, 1, 1]])
        return
    messages = set()
    for order in permutations(limits):
        with pytest.raises(ProblemError) as caught:
            mdp.limited(*order)
        messages.add(str(caught.value))
    (message,) = messages
    advice = re.findall(r"'([abc] \S+ \S+)' by \S+, to ([abc]) (\S+) ([-.\d]+)", message)
    relaxed = {limit: ("abc".index(name), relation, float(amount)) for limit, name, relation, amount in advice}
    assert relaxed
    sets = [[limit] for limit in relaxed] if "relax one" in message else [list(relaxed)]
    for fewer in combinations(limits, len(sets[0]) - 1):
        assert not feasible([limits[limit] for limit in limits if limit not in fewer])
    for chosen in sets:
        together = {limit: relaxed[limit] if limit in chosen else limits[limit] for limit in limits}
        assert feasible(list(together.values()), slack=1e-8)
        assert mdp.limited(*(f"{'abc'[j]} {relation} {amount!r}" for j, relation, amount in together.values()))
        for limit in chosen:  # one step of rounding less is impossible
            j, relation, amount = together[limit]
            tighter = amount + (-0.02 if relation == "<=" else 0.02)
            assert not feasible([*(together[one] for one in limits if one != limit), (j, relation, tighter)])


def test_a_limited_mdp_keeps_the_laws_of_problems() -> None:
    mdp, _, _ = random_mdp(1)
    middle = (mdp.nadir + mdp.ideal) / 2
    within = mdp.limited(f"a <= {middle[0]:.3f}")
    check_problem(within)
    interview = Interview(within)
    person = LinearRespondent([1.0, 2.0, 1.0], precision=0.001)
    while (question := interview.ask()) is not None:
        assert all(within.show(option).weights.sum() == pytest.approx(1) for option in question.options)
        interview.tell(person(question))
    assert within.outcome(interview.recommendation.option.value)[0] <= middle[0] + 1e-3
    with pytest.raises(ArgumentError, match="mixture"):
        within.solve([[1, 1, 1]])


def test_infeasible_limits_on_averages_say_by_how_much() -> None:
    mdp, _, _ = random_mdp(2)
    least = float(mdp.ideal[0])
    with pytest.raises(ProblemError) as caught:
        mdp.limited(f"a <= {least - 0.5}")
    way = str(caught.value).split(", to ")[1]
    assert mdp.limited(way).best([[1, 1, 1]]) and float(way.split()[-1]) == pytest.approx(least, abs=0.02)
    with pytest.raises(ArgumentError, match="cannot be kept by an average"):
        mdp.limited("a != 3")
    worst = float(mdp.nadir[1])
    assert mdp.limited(f"b = {worst:.17g}").outcome(mdp.limited(f"b = {worst:.17g}").best([[1, 1, 1]])[0].value)[1] == (
        pytest.approx(worst, abs=1e-6)
    )
