"""The bundled problems are what they say they are."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests import processes
from tradeoff import MDP, Catalogue, Policy, load
from tradeoff.sources import EXAMPLES, examples

ROOT = Path(__file__).resolve().parents[2]


def follow(mdp: MDP, wanted: dict[str, str]) -> Policy:
    """Return the policy that takes the wanted action in each state, and the first available one elsewhere."""
    table = np.full((mdp.horizon, len(mdp.states)), -1)
    for h in range(mdp.horizon):
        layer = mdp.layer(h)
        for s, name in enumerate(mdp.states):
            able = layer.action[layer.state_ptr[s] : layer.state_ptr[s + 1]]
            if len(able):
                table[h, s] = mdp.actions.index(wanted[name]) if name in wanted else able[0]
    return Policy(table)


def test_the_highway_takes_40_minutes_nine_times_in_ten_and_three_hours_otherwise() -> None:
    mdp = load("commute")
    assert isinstance(mdp, MDP)
    plan = follow(
        mdp,
        {
            "home": "drive to the highway ramp",
            "at the highway ramp": "take the highway",
            "on the free highway": "drive on to the airport",
            "on the highway behind an accident": "wait it out",
            "at the airport car parks": "park at the terminal",
        },
    )
    drawn = mdp.rollout(plan, rng=0, n=20_000)
    minutes, counts = np.unique(drawn.outcomes[:, 0].round(9), return_counts=True)
    assert minutes.tolist() == [40.0, 180.0]
    assert_allclose(counts / 20_000, [0.9, 0.1], atol=0.01)
    assert_allclose(mdp.outcome(mdp.evaluate(plan))[0], 54.0)


def test_the_subway_always_takes_an_hour() -> None:
    mdp = load("commute")
    assert isinstance(mdp, MDP)
    plan = follow(
        mdp,
        {
            "home": "walk to the subway station",
            "at the subway station": "board the first train",
            "in a half-empty subway": "ride on to the airport",
            "in a crowded subway": "stand all the way to the airport",
        },
    )
    minutes = mdp.rollout(plan, rng=0, n=5_000).outcomes[:, 0]
    assert_allclose(minutes, 60.0)


def test_the_single_objective_optima_of_the_appendix_are_dependent() -> None:
    mdp = load("dependent")
    assert isinstance(mdp, MDP)
    optima = mdp.outcome(np.array([a.value for a in mdp.best(np.eye(3))]))
    assert_allclose(optima, [[8, 4, 2], [85 / 12, 25 / 6, 35 / 12], [1, 2, 3]], rtol=1e-15)
    assert np.linalg.matrix_rank(optima) == 2
    assert mdp.nothing_is_reference and mdp.reference_name == "do nothing"


@pytest.mark.parametrize("name", examples())
def test_bundled_problems_have_real_trade_offs(name: str) -> None:
    problem = load(name)
    assert not problem.irrelevant and problem.about and problem.title
    k = len(problem.objectives)
    rows = np.random.default_rng(0).dirichlet(np.ones(k), size=300)
    optima = {tuple(a.value.round(2)) for a in problem.best(rows)}
    assert len(optima) >= (3 if name == "dependent" else 15)
    values = np.array([a.value for a in problem.best(np.eye(k))])
    for i in range(k):  # no plan is best at two things at once
        assert all(values[i, j] < 0.999 for j in range(k) if j != i) or name == "dependent"
    if isinstance(problem, Catalogue):
        assert len(problem.names) >= 200


@pytest.mark.parametrize("name", examples())
def test_a_reference_that_is_not_real_says_so(name: str) -> None:
    """A person is shown the reference by its name: it is something that can be chosen, or called the worst."""
    problem = load(name)
    if isinstance(problem, MDP) and problem.nothing_is_reference:
        assert problem.reference_name in problem.actions
        return
    if isinstance(problem, Catalogue) and problem.reference_name in problem.names:
        assert_allclose(problem.evaluate(problem.reference_name), 0.0, atol=1e-12)
        return
    assert problem.reference.outcome is None and problem.reference_name.startswith("the worst")
    assert_allclose(problem.origin, problem.nadir)


def test_the_tables_are_what_the_script_makes(tmp_path: Path) -> None:
    processes.run([sys.executable, str(ROOT / "tools" / "make_examples.py"), str(tmp_path)], check=True)
    made = sorted(tmp_path.iterdir())
    assert made
    for path in made:
        assert path.read_bytes() == (EXAMPLES / path.name).read_bytes(), path.name
