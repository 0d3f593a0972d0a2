from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from tests.messages import refused
from tests.models import Arrays, all_policies, random_arrays, small_arrays
from tradeoff import (
    MDP,
    NOTHING,
    ArgumentError,
    Catalogue,
    Interview,
    Mixture,
    Objective,
    Policy,
    ProblemError,
    ProblemWarning,
    Reference,
    StochasticPolicy,
    TooLargeError,
    dilute,
)
from tradeoff.mdp.compiled import CompiledSolver

seeds = st.integers(0, 2**32 - 1)


def random_stochastic(mdp: MDP, rng: np.random.Generator) -> np.ndarray:
    table = np.zeros((mdp.horizon, len(mdp.states), len(mdp.actions)))
    for h in range(mdp.horizon):
        layer = mdp.layer(h)
        for s in range(len(mdp.states)):
            able = layer.action[layer.state_ptr[s] : layer.state_ptr[s + 1]]
            if len(able):
                table[h, s, able] = rng.dirichlet(np.ones(len(able)))
    return table


@given(small_arrays())
def test_evaluation_agrees_with_every_policy_written_out(arrays: Arrays) -> None:
    mdp = arrays.mdp()
    policies, outcomes = all_policies(arrays)
    for i in np.linspace(0, len(policies) - 1, 5).astype(int):
        assert_allclose(mdp.outcome(mdp.evaluate(policies[i])), outcomes[i], atol=1e-10)
        assert_allclose(mdp.start @ mdp.values(policies[i])[0], outcomes[i], atol=1e-10)


@given(small_arrays(), seeds)
def test_occupancy_and_values_agree_for_stochastic_policies(arrays: Arrays, seed: int) -> None:
    mdp = arrays.mdp()
    table = random_stochastic(mdp, np.random.default_rng(seed))
    occupancy = mdp.occupancy(StochasticPolicy(table))
    assert_allclose(occupancy.sum(axis=1), 1)
    expected = np.einsum("hs,hsa,hsak->k", occupancy[:-1], table, arrays.expected_rewards())
    assert_allclose(mdp.outcome(mdp.evaluate(table)), expected, atol=1e-10)
    assert_allclose(mdp.start @ mdp.values(table)[0], expected, atol=1e-10)
    step = np.einsum("s,sa,sat->t", occupancy[0], table[0], arrays.transitions[0])
    assert_allclose(occupancy[1], step + occupancy[0] * mdp.layer(0).ends, atol=1e-12)


def test_rollouts_follow_the_policy_and_average_to_its_value() -> None:
    rng = np.random.default_rng(5)
    arrays = random_arrays(rng, states=6, actions=3, objectives=3, horizon=5)
    mdp = arrays.mdp()
    table = random_stochastic(mdp, rng)
    n = 40_000
    drawn = mdp.rollout(table, rng=1, n=n)
    error = drawn.outcomes.std(axis=0) / np.sqrt(n)
    assert np.all(np.abs(drawn.outcomes.mean(axis=0) - mdp.outcome(mdp.evaluate(table))) <= 4.5 * error + 1e-12)
    occupancy = mdp.occupancy(table)
    for h in range(mdp.horizon + 1):
        share = np.bincount(drawn.states[:, h], minlength=len(mdp.states)) / n
        assert_allclose(share, occupancy[h], atol=0.02)
    # Every step that was drawn is possible, and outcomes are sums of the rewards along the way.
    total = np.zeros_like(drawn.outcomes)
    for h in range(mdp.horizon):
        s, a, t = drawn.states[:, h], drawn.actions[:, h], drawn.states[:, h + 1]
        going = a >= 0
        assert np.all(arrays.transitions[h][s[going], a[going], t[going]] > 0)
        assert np.all(table[h][s[going], a[going]] > 0)
        total[going] += arrays.rewards[h][s[going], a[going], t[going]]
    assert_allclose(total, drawn.outcomes, atol=1e-12)
    again = mdp.rollout(table, rng=1, n=n)
    assert_array_equal(again.states, drawn.states)


def test_mixtures_are_drawn_once_at_the_start() -> None:
    rows = [("s", "a", 1, "s", [1.0]), ("s", "b", 1, "s", [0.0])]
    mdp = MDP.from_rows(rows, horizon=3, start="s")
    always_a, always_b = np.zeros((3, 1), dtype=int), np.ones((3, 1), dtype=int)
    mixture = Mixture((0.25, 0.75), (Policy(always_a), Policy(always_b)))
    assert_allclose(mdp.evaluate(mixture), [0.25])
    assert set(mdp.rollout(mixture, rng=0, n=200).outcomes[:, 0]) == {0.0, 3.0}
    assert_allclose(mdp.occupancy(mixture), 1)
    best = mdp.best([[1.0]])[0]
    half = dilute(best, 0.5)
    assert_allclose(half.value, 0.5 * best.value)
    assert_allclose(mdp.evaluate(half.plan), half.value)


@given(small_arrays(), seeds)
def test_the_constructors_agree(arrays: Arrays, seed: int) -> None:
    """Rows with a step, sparse matrices and dense arrays of one model have the same optima, bit for bit."""
    dense = arrays.mdp()
    horizon, states, actions, _ = arrays.transitions.shape
    k = arrays.rewards.shape[-1]
    matrices = [[sparse.csr_array(arrays.transitions[h, :, a]) for a in range(actions)] for h in range(horizon)]
    if horizon == 1:
        matrices = matrices[0]
    from_sparse = MDP.from_sparse(
        matrices, arrays.rewards, start=arrays.start, objectives=arrays.objectives, horizon=horizon,
        rewards_on="step and next", prune=False,
    )  # fmt: skip
    at = np.argwhere(arrays.transitions > 0)
    ends = [str(s) for s in range(states) if not arrays.transitions[:, s].any()]
    from_columns = MDP.from_columns(
        [str(s) for s in at[:, 1]],
        [str(a) for a in at[:, 2]],
        arrays.transitions[tuple(at.T)],
        [str(t) for t in at[:, 3]],
        arrays.rewards[tuple(at.T)],
        list(at[:, 0]),
        horizon=horizon,
        start={str(s): p for s, p in enumerate(arrays.start) if p > 0},
        ends=ends,
        objectives=arrays.objectives,
        states=[str(s) for s in range(states)],
        actions=[str(a) for a in range(actions)],
        prune=False,
    )
    rows = np.random.default_rng(seed).normal(size=(5, k))
    for other in (from_sparse, from_columns):
        for a, b in zip(dense.best(rows), other.best(rows), strict=True):
            assert_allclose(a.value, b.value, atol=1e-13)


@given(small_arrays(), seeds)
def test_a_stationary_model_equals_the_same_model_written_step_by_step(arrays: Arrays, seed: int) -> None:
    stationary = MDP.from_arrays(
        arrays.transitions[0], arrays.rewards[0], horizon=4, start=arrays.start, objectives=arrays.objectives,
        rewards_on="next", prune=False,
    )  # fmt: skip
    timed = replace(
        arrays, transitions=np.stack([arrays.transitions[0]] * 4), rewards=np.stack([arrays.rewards[0]] * 4)
    ).mdp()
    rows = np.random.default_rng(seed).normal(size=(5, len(arrays.objectives)))
    for a, b in zip(stationary.best(rows), timed.best(rows), strict=True):
        assert a.value.tobytes() == b.value.tobytes()


def test_less_memory_gives_the_same_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Policies that do not fit are worked out again, segment by segment: same bits; and finally it is refused."""
    rng = np.random.default_rng(0)
    arrays = random_arrays(rng, states=200, actions=3, objectives=3, horizon=40, goals=False)
    mdp = MDP.from_arrays(arrays.transitions[0], arrays.rewards[0], horizon=40, rewards_on="next", prune=False)
    mdp.solver = CompiledSolver()
    rows = np.concatenate([rng.dirichlet(np.ones(3), size=20), np.eye(3)])
    expected = mdp.best(rows)
    tables = mdp.solve(rows)
    segments = set()
    for kib in (4000, 700, 500, 440, 200):
        monkeypatch.setenv("TRADEOFF_MEMORY", str(kib / 2**20))
        segments |= {plan for _, _, plan in mdp.solver._chunks(mdp.dynamics, len(rows), keep_policies=True)}
        for a, b in zip(expected, mdp.best(rows), strict=True):
            assert a.value.tobytes() == b.value.tobytes()
        if kib >= 440:
            for a, b in zip(tables, mdp.solve(rows), strict=True):
                assert_array_equal(a.actions, b.actions)
    assert {(plan.width, plan.segment) for plan in segments} == {(23, 40), (16, 40), (16, 18), (1, 18)}
    monkeypatch.setenv("TRADEOFF_MEMORY", "0.00001")
    with refused(TooLargeError, "200 states", "40 steps", "GiB", "TRADEOFF_MEMORY"):
        mdp.best(rows)


def test_a_model_that_would_not_fit_is_refused_before_it_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRADEOFF_MEMORY", "0.001")
    states = 20_000
    matrix = sparse.csr_array(sparse.eye(states))
    with refused(TooLargeError, "20,000 states", "40,000 branches", "GiB"):
        MDP.from_sparse([matrix, matrix], np.ones((states, 2, 3)), horizon=3)
    monkeypatch.setenv("TRADEOFF_MEMORY", "1")
    mdp = MDP.from_sparse([matrix, matrix], np.ones((states, 2, 3)), horizon=3, prune=False)
    with refused(TooLargeError, "1,000,000,000 rollouts", "3 steps"):
        mdp.rollout(np.zeros((3, states), dtype=int), n=10**9)


def test_amounts_too_large_to_add_up_are_named() -> None:
    rows = [("a", "x", 1, "a", [1e308, 1]), ("a", "y", 1, "a", [-1e308, 2])]
    with refused(ProblemError, "'objective 1'", "too large", "larger unit"):
        MDP.from_rows(rows, horizon=5, start="a").best([[1, 1]])
    with refused(ProblemError, "'objective 1'", "too large", "larger unit"):
        Catalogue([[1e308, 1], [-1e308, 2]]).best([[1, 1]])


def test_problems_are_forgotten_when_nobody_holds_them() -> None:
    import gc
    import weakref

    problem = MDP.from_rows([("s", "a", 1, "s", [2.0, 1]), ("s", "b", 1, "s", [1.0, 3])], horizon=1, start="s")
    Interview(problem, "certified").ask()
    gone = weakref.ref(problem)
    del problem
    gc.collect()
    assert gone() is None


def test_nothing_is_the_reference_when_it_is_the_worst() -> None:
    rows = [("s", "a", 1, "s", [2.0, 1.0]), ("s", "b", 1, "s", [1.0, 3.0])]
    plain = MDP.from_rows(rows, horizon=2, start="s")
    assert_allclose(plain.origin, [2, 2])
    mdp = plain.with_nothing("stay in bed")
    assert_allclose(mdp.origin, 0)
    assert mdp.nothing_is_reference and mdp.reference_name == "stay in bed"
    assert_array_equal(mdp.nothing.value, 0)
    assert_array_equal(mdp.evaluate(NOTHING), 0)
    assert_allclose(mdp.rollout(NOTHING, rng=0, n=3).outcomes, 0)
    assert mdp.actions[mdp.solve([[-1, -1]])[0].actions[0, 0]] == "stay in bed"
    with refused(ProblemError, "do-nothing action", "'stay in bed'"):
        mdp.with_nothing()


def test_nothing_is_available_only_at_the_start() -> None:
    rows = [("s", "go", 1, "t", [1.0]), ("t", "back", 1, "s", [1.0])]
    mdp = MDP.from_rows(rows, horizon=3, start="s").with_nothing()
    layer = mdp.layers[0]
    offered = {mdp.states[s]: layer.action[layer.state_ptr[s] : layer.state_ptr[s + 1]].tolist() for s in range(2)}
    assert [mdp.actions[a] for a in offered["s"]] == ["go", "do nothing"]
    assert [mdp.actions[a] for a in offered["t"]] == ["back"]


def test_where_doing_nothing_is_not_the_worst_the_reference_is_hypothetical() -> None:
    objectives = [Objective("time", "min", "min"), Objective("fun", "", "max")]
    rows = [("s", "a", 1, "s", [20, 1]), ("s", "b", 1, "s", [40, 5])]
    mdp = MDP.from_rows(rows, horizon=1, start="s", objectives=objectives).with_nothing("stay at home")
    assert_allclose(mdp.origin, [40, 0])
    assert_allclose(mdp.scale, [-40, 5])
    assert not mdp.nothing_is_reference and mdp.reference_name == "the worst of everything"
    with refused(ArgumentError, "'the worst of everything'", "hypothetical"):
        mdp.rollout(NOTHING)


def test_a_named_reference_outcome() -> None:
    objectives = [Objective("time", "min", "min"), Objective("fun", "", "max")]
    rows = [("s", "a", 1, "s", [20, 1]), ("s", "b", 1, "s", [40, 5])]
    given = Reference("a wasted day", {"time": 100, "fun": 0})
    mdp = MDP.from_rows(rows, horizon=1, start="s", objectives=objectives, reference=given)
    assert_allclose(mdp.origin, [100, 0])
    assert_allclose(mdp.scale, [-80, 5])
    assert_allclose(mdp.best([[1, 0]])[0].value, [1, 0.2])
    too_good = Reference("a short day", {"time": 30, "fun": 0})
    with refused(ProblemError, "'a short day'", "time = 30 min", "40 min"):
        MDP.from_rows(rows, horizon=1, start="s", objectives=objectives, reference=too_good).best([[1, 0]])
    with refused(ProblemError, "'x'", "objective 1", "'time'"):
        MDP.from_rows(rows, horizon=1, start="s", reference=Reference("x", {"time": 3})).best([[1, 0]])


def test_states_that_cannot_be_reached_are_left_out_with_a_warning() -> None:
    rows = [("a", "go", 1, "b", [1.0]), ("b", "go", 1, "a", [2.0]), ("island", "go", 1, "a", [9.0])]
    with pytest.warns(ProblemWarning, match="1 state cannot be reached .* 'island'"):
        mdp = MDP.from_rows(rows, horizon=3, start="a")
    assert list(mdp.states) == ["a", "b"]
    assert mdp.notes and "island" in mdp.notes[0]
    assert_allclose(mdp.outcome(mdp.best([[1.0]])[0].value), [4.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = MDP.from_rows(rows, horizon=3, start="a", prune=False)
    assert len(kept.states) == 3


def test_an_objective_that_never_changes_is_kept_and_said_not_to_matter() -> None:
    rows = [("s", "a", 1, "s", [1, 0.1]), ("s", "b", 1, "s", [2, 0.1])]
    mdp = MDP.from_rows(rows, horizon=7, start="s", objectives=["gain", "fixed"])
    assert [o.name for o in mdp.irrelevant] == ["fixed"]
    for best in mdp.best([[1, 0], [0, 1], [1, 5], [-1, 1]]):
        assert best.value[1] == 0.0
        assert_allclose(mdp.outcome(best.value)[1], 0.7)
    assert mdp.best([[0, 1]])[0].value[0] == 1.0  # ties go to what is better otherwise


def test_more_than_256_actions_in_a_state() -> None:
    rows = [("s", f"a{i}", 1, "s", [float(i), float(-i)]) for i in range(400)]
    mdp = MDP.from_rows(rows, horizon=2, start="s")
    (policy,) = mdp.solve([[1.0, 0.0]])
    assert [mdp.actions[a] for a in policy.actions[:, 0]] == ["a399", "a399"]
    assert_allclose(mdp.outcome(mdp.best([[1, 0]])[0].value), [798, -798])


BAD_ARRAYS = [
    ([[[0.5, 0.4]], [[0, 1]]], ("state '0', action '0'", "0.9", "renormalise=True")),
    ([[[1.5, -0.5]], [[0, 1]]], ("state '0', action '0'", "-0.5", "negative")),
    ([[[np.nan, 1]], [[0, 1]]], ("(0, 0, 0)", "nan")),
    ([[[np.inf, 1]], [[0, 1]]], ("(0, 0, 0)", "inf")),
    ([[0.5, 0.5], [0, 1]], ("shape (2, 2)", "[states, actions, states]")),
    ([[[0.5, 0.5]], [[1]]], ("transitions", "full array")),
    (np.zeros((0, 1, 0)), ("shape (0, 1, 0)",)),
]


@pytest.mark.parametrize(("transitions", "facts"), BAD_ARRAYS)
def test_bad_transitions_are_named(transitions: object, facts: tuple[str, ...]) -> None:
    with refused(ProblemError, *facts):
        MDP.from_arrays(transitions, np.zeros((2, 1, 2)), horizon=2)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_single_precision_is_precise_enough(is_sparse: bool) -> None:
    rng = np.random.default_rng(3)
    exact = rng.random((40, 3, 40))
    exact /= exact.sum(axis=2, keepdims=True)
    single, rewards, start = exact.astype(np.float32), rng.random((40, 3, 2)), np.full(40, 1 / 40, dtype=np.float32)
    if is_sparse:
        found = MDP.from_sparse([sparse.coo_array(single[:, a, :]) for a in range(3)], rewards, horizon=4, start=start)
    else:
        found = MDP.from_arrays(single, rewards, horizon=4, start=start)
    layer = found.layer(0)
    assert_allclose(np.add.reduceat(layer.prob, layer.choice_ptr[:-1]), 1, atol=1e-12)
    with pytest.raises(ProblemError, match="not 1"):
        MDP.from_arrays(single.astype(float), rewards, horizon=4)  # what has more digits must have them right
    with pytest.raises(ProblemError, match="not 1"):
        MDP.from_arrays(single * np.float32(1.0001), rewards, horizon=4)


def test_renormalise_scales_what_does_not_sum_to_one() -> None:
    transitions = [[[0.5, 0.3]], [[0, 1]]]
    mdp = MDP.from_arrays(transitions, np.ones((2, 1, 1)), horizon=1, renormalise=True)
    assert_allclose(mdp.layers[0].prob, [0.625, 0.375, 1])


P = np.array([[[0.5, 0.5]], [[0, 1.0]]])
R = np.ones((2, 1, 2))


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"horizon": 0}, ("horizon is 0", "at least 1")),
        ({"horizon": 2.5}, ("horizon is 2.5",)),
        ({"horizon": None}, ("horizon is None",)),
        ({"start": 7}, ("start state 7", "2 states")),
        ({"start": "x"}, ("start state 'x'", "'0', '1'")),
        ({"start": {"0": 0.3}}, ("start probabilities", "0.3")),
        ({"start": [0.5, np.nan]}, ("start probability", "state '1'", "nan")),
        ({"start": [1.5, -0.5]}, ("start probability", "state '1'", "-0.5")),
        ({"states": ["a", "a"]}, ("state name 'a'", "positions 1 and 2")),
        ({"states": ["a"]}, ("1 state name", "2 states")),
        ({"objectives": ["x", "x"]}, ("objective name 'x'", "positions 1 and 2")),
        ({"objectives": ["x"]}, ("1 objective", "2 columns")),
        ({"objectives": [" x", "y"]}, ("objective name ' x'", "position 1", "spaces")),
        ({"available": [[True, True]]}, ("available has shape (1, 2)", "(2, 1)")),
    ],
)
def test_bad_options_are_named(options: dict, facts: tuple[str, ...]) -> None:
    with refused(ProblemError, *facts):
        MDP.from_arrays(P, R, **{"horizon": 2} | options)


def test_an_action_may_be_marked_as_unavailable() -> None:
    assert MDP.from_arrays(P, R, horizon=2, available=[[True], [False]]).layers[0].ends.tolist() == [False, True]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_rewards_must_be_finite(bad: float) -> None:
    rewards = R.copy()
    rewards[1, 0, 1] = bad
    with pytest.raises(ProblemError, match=r"reward of state '1', action '0' for 'objective 2' is -?(nan|inf)"):
        MDP.from_arrays(P, rewards, horizon=2)


def test_an_action_said_to_be_available_needs_transitions() -> None:
    transitions = np.array([[[0.5, 0.5], [0, 0]], [[0, 1.0], [0, 1]]])
    with refused(ProblemError, "state '0', action '1'", "available", "no transitions"):
        MDP.from_arrays(transitions, np.ones((2, 2, 1)), horizon=1, available=np.ones((2, 2)))


def test_a_state_cannot_be_an_end_at_some_steps_only() -> None:
    transitions = np.ones((2, 1, 1, 1))
    transitions[1] = 0
    with refused(ProblemError, "state '0'", "steps 0 and 1"):
        MDP.from_arrays(transitions, np.ones((1, 1, 1)))


def test_rewards_whose_shape_could_mean_two_things_must_be_explained() -> None:
    cube = np.broadcast_to(np.eye(2)[:, None, :], (2, 2, 2))
    rewards = np.arange(16.0).reshape(2, 2, 2, 2)
    with refused(ProblemError, "(2, 2, 2, 2)", "rewards_on='next'", "rewards_on='step'"):
        MDP.from_arrays(cube, rewards, horizon=2)
    by_step = MDP.from_arrays(cube, rewards, horizon=2, rewards_on="step", prune=False)
    assert_allclose(by_step.outcome(by_step.best([[1, 0]])[0].value), [2 + 10, 3 + 11])


@pytest.mark.parametrize(
    ("rows", "facts"),
    [
        ([("a", "go", 1, "b")], ("row 1", "('a', 'go', 1, 'b')", "five entries")),
        ([("a", "go", 1, "b", [1, 2]), ("a", "go", 1, "b", [1])], ("row 2 has 1", "row 1 has 2")),
        ([("a", "go", "x", "b", [1])], ("probability in row 1", "'x'")),
        ([("a", "go", 1, "b", ["?"])], ("reward in row 1", "'?'")),
        ([("a", "go", 1, "b", [1])], ("row 1", "next state 'b'", "state 'a'", "action 'go'", "ends")),
        ([], ("no rows",)),
        ([("a", "go", 0.5, "a", [1])], ("state 'a', action 'go'", "0.5", "renormalise=True")),
    ],
)
def test_bad_rows_are_named(rows: list, facts: tuple[str, ...]) -> None:
    with refused(ProblemError, *facts):
        MDP.from_rows(rows, horizon=1, start="a")


def test_ends_must_be_declared_and_have_no_rows() -> None:
    rows = [("a", "go", 1, "a", [1])]
    with refused(ProblemError, "state 'a'", "end", "actions"):
        MDP.from_rows(rows, horizon=1, start="a", ends=["a"])
    with refused(ProblemError, "state 'b' has no actions", "rows", "ends"):
        MDP.from_rows(rows, horizon=1, start="a", states=["a", "b"])


@pytest.mark.parametrize(
    ("policy", "facts"),
    [
        (np.zeros((2, 3), dtype=int), ("shape (2, 3)", "[steps, states] is (2, 2)")),
        (np.array([[0, 0], [1, 0]]), ("action 'stop'", "state 'a'", "step 1", "'go'")),
        (np.array([[0, 0], [0, 7]]), ("action number 7", "state 'b'", "step 1")),
        (np.full((2, 2, 2), 0.5), ("state 'a'", "step 0", "[0.5, 0.5]")),
        (np.zeros((2, 2)), ("[steps, states, actions]",)),
        ("nonsense", ("integer array", "'nonsense'")),
    ],
)
def test_bad_policies_are_named(policy: object, facts: tuple[str, ...]) -> None:
    rows = [("a", "go", 1, "b", [1]), ("b", "go", 1, "a", [1]), ("b", "stop", 1, "b", [0])]
    mdp = MDP.from_rows(rows, horizon=2, start="a")
    with refused(ArgumentError, *facts):
        mdp.evaluate(policy)


@pytest.mark.parametrize(
    ("weights", "facts"),
    [
        ([1, 2], ("shape (2,)", "[w]")),
        ([[1]], ("2 numbers", "objective 1, objective 2", "shape (1, 1)")),
        ([[1, np.nan]], ("objective 2", "row 0", "nan")),
        ([["a", 1]], ("not numbers",)),
    ],
)
def test_bad_weights_are_named(weights: object, facts: tuple[str, ...]) -> None:
    mdp = MDP.from_arrays(P, R, horizon=1)
    with refused(ArgumentError, *facts):
        mdp.best(weights)


def test_no_weights_no_alternatives() -> None:
    assert MDP.from_arrays(P, R, horizon=1).best(np.zeros((0, 2))) == []


def test_threads_do_not_change_the_result() -> None:
    rng = np.random.default_rng(3)
    states = 12_000
    targets = rng.integers(0, states, size=(states, 3))
    matrices = [
        sparse.csr_array((np.ones(states), (np.arange(states), targets[:, a])), shape=(states, states))
        for a in range(3)
    ]
    mdp = MDP.from_sparse(matrices, rng.random((states, 3, 3)), horizon=4, prune=False)
    rows = rng.dirichlet(np.ones(3), size=33)
    mdp.threads = 1
    one = mdp.best(rows)
    mdp.threads = 3
    assert all(a.value.tobytes() == b.value.tobytes() for a, b in zip(one, mdp.best(rows), strict=True))


def test_columns_may_be_lists() -> None:
    model = MDP.from_columns(
        ["s", "s"],
        ["a", "b"],
        [1, 1],
        ["e", "e"],
        [[1, 0], [0, 1]],
        horizon=1,
        start="s",
        ends=["e"],
        objectives=["x", "y"],
    )
    assert model.best([[1, 0]])[0].value.tolist() == [1, 0]
