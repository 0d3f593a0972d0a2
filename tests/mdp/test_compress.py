"""Laws of C4 (Algorithm 3): few points, positive weights, the same mean; over ordinary and degenerate inputs."""

from __future__ import annotations

import doctest
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tests.mdp.naive_c4 import naive_c4
from tests.messages import refused
from tradeoff.errors import ProblemError
from tradeoff.mdp.stories import caratheodory, elimination
from tradeoff.mdp.stories.caratheodory import Push
from tradeoff.mdp.stories.compress import TRUSTED, compress, robust

ALLOWED = 1e-14  # of each coordinate's scale: what the law allows

SHAPES = {
    # How the points lie, and the affine rank where it is known by construction (to rounding).
    "gaussian": lambda rng, n, k: (rng.normal(size=(n, k)), None),
    "far from the origin": lambda rng, n, k: (rng.normal(size=(n, k)) + 1e6, None),
    "1e6 beside 1e-6": lambda rng, n, k: (rng.normal(size=(n, k)) * 10.0 ** rng.choice([-6, 6], size=k), None),
    "1e150 beside 1e-150": lambda rng, n, k: (rng.normal(size=(n, k)) * 10.0 ** rng.uniform(-150, 150, size=k), None),
    "spread 1e-6 at 1e6": lambda rng, n, k: (1e6 + 1e-6 * rng.normal(size=(n, k)), None),
    "heavy tails": lambda rng, n, k: (np.exp(6 * rng.normal(size=(n, k))), None),
    "duplicated": lambda rng, n, k: (rng.normal(size=(n, k))[rng.integers(0, n, size=n)], None),
    "grid": lambda rng, n, k: (rng.integers(0, 3, size=(n, k)).astype(float), None),
    "identical": lambda rng, n, k: (np.tile(rng.normal(size=k), (n, 1)), 0),
    "collinear": lambda rng, n, k: (np.outer(rng.normal(size=n), rng.normal(size=k)) + rng.normal(size=k), 1),
    "one unusual value": lambda rng, n, k: (np.where(rng.random((n, 1)) < 0.1, 0.2, 0.1) * np.ones(k), 1),
    "running sums": lambda rng, n, k: (np.cumsum(rng.integers(0, 2, size=(n, k)), axis=0) * 0.1, None),
    "plane": lambda rng, n, k: (
        rng.normal(size=(n, min(2, k))) @ rng.normal(size=(min(2, k), k))
        + rng.choice([0.0, 1.0, 1e3]) * rng.normal(size=k),
        min(2, k),
    ),
    "nearly dependent": lambda rng, n, k: (_nearly_dependent(rng, n, k), None),
    "constant coordinates": lambda rng, n, k: (rng.normal(size=(n, k)) * (np.arange(k) % 2) + 0.1, k // 2),
}

MASSES = {
    "equal": lambda rng, n: np.full(n, 1.0),
    "dirichlet": lambda rng, n: rng.dirichlet(np.full(n, 0.3)) + 1e-300,
    "down to 1e-12": lambda rng, n: 10.0 ** rng.uniform(-12, 0, size=n),
    "some of 1e-12": lambda rng, n: np.where(rng.random(n) < 0.5, 1e-12, 1.0) * rng.uniform(0.1, 1.0, size=n),
    "some of zero": lambda rng, n: _some_of_zero(rng, n),
}


def _nearly_dependent(rng: np.random.Generator, n: int, k: int) -> np.ndarray:
    points = rng.normal(size=(n, k))
    points[:, -1] = points[:, 0] + 10.0 ** rng.uniform(-17, -7) * rng.normal(size=n)
    return points


def _some_of_zero(rng: np.random.Generator, n: int) -> np.ndarray:
    weights = rng.uniform(0.1, 1.0, size=n) * (rng.random(n) < 0.6)
    weights[rng.integers(n)] = 1.0
    return weights


@st.composite
def distributions(draw: st.DrawFn, largest: int = 100, shapes: tuple[str, ...] = tuple(SHAPES)):
    shape = draw(st.sampled_from(shapes))
    masses = draw(st.sampled_from(tuple(MASSES)))
    n = draw(st.integers(1, largest))
    k = draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    points, rank = SHAPES[shape](rng, n, k)
    weights = MASSES[masses](rng, n)
    return points, weights / weights.sum(), rank


def exact_error(points, weights, rows, shares, target=None) -> float:
    """Return the largest error of the mean, of scale, and of the sum of the weights, in rational arithmetic."""
    mass = [Fraction(float(p)) for p in weights]
    kept = [Fraction(float(w)) for w in shares]
    error = abs(1 - sum(kept))
    for j in range(points.shape[1]):
        if target is None:
            mean = sum(p * Fraction(float(x)) for p, x in zip(mass, points[:, j], strict=True)) / sum(mass)
        else:
            mean = Fraction(float(target[j]))
        ours = sum(w * Fraction(float(x)) for w, x in zip(kept, points[rows, j], strict=True))
        scale = Fraction(float(np.abs(points[weights > 0, j]).max()))
        if scale:
            error = max(error, abs(ours - mean) / scale)
    return float(error)


def check(points, weights, rows, shares, rank=None) -> None:
    limit = points.shape[1] + 1 if rank is None else min(points.shape[1], rank) + 1
    assert 1 <= len(rows) == len(shares) <= limit
    assert rows.dtype == np.int64
    assert shares.dtype == np.float64
    assert np.all(np.diff(rows) > 0)
    assert np.all(shares > 0)
    assert np.all(weights[rows] > 0)
    assert exact_error(points, weights, rows, shares) <= ALLOWED


@settings(max_examples=1500)
@given(distributions())
def test_few_points_positive_weights_same_mean(distribution):
    points, weights, rank = distribution
    rows, shares = compress(points, weights)
    check(points, weights, rows, shares, rank)


@settings(max_examples=300)
@given(distributions())
def test_the_fallback_alone_obeys_the_same_laws(distribution):
    points, weights, rank = distribution
    push = Push(points, weights)
    points = np.ldexp(points, -push.exponents)
    check(points, weights, *elimination.eliminate(points, weights, push.mean, push.rest), rank)


@settings(max_examples=200)
@given(distributions())
def test_the_robust_way_obeys_the_same_laws(distribution):
    points, weights, _ = distribution
    push = Push(points, weights)
    check(points, weights, *robust(push, points, weights, (push.mean, push.rest)))


@settings(max_examples=200)
@given(distributions(largest=40, shapes=("gaussian", "duplicated", "grid", "plane")))
def test_the_mean_is_that_of_the_papers_algorithm(distribution):
    points, weights, _ = distribution
    rows, shares = compress(points, weights)
    papers_rows, papers_shares = naive_c4(points, weights)
    assert len(papers_rows) <= points.shape[1] + 1
    scale = np.abs(points).max() + 1
    assert_allclose(shares @ points[rows], papers_shares @ points[papers_rows], rtol=0, atol=1e-10 * scale)


def test_thousands_of_instances_verify_without_the_fallback():
    rng = np.random.default_rng(7)
    for _ in range(2500):
        n, k = int(rng.integers(1, 300)), int(rng.integers(1, 13))
        shape = str(rng.choice([s for s in SHAPES if s not in ("nearly dependent", "1e150 beside 1e-150")]))
        points = np.ascontiguousarray(SHAPES[shape](rng, n, k)[0])
        weights = MASSES[str(rng.choice(list(MASSES)))](rng, n)
        weights /= weights.sum()
        push = Push(points, weights)
        rows, shares, error = push.solve(push.mean, push.rest)
        assert error <= TRUSTED
        assert len(rows) <= k + 1
        assert np.all(shares > 0)
        assert np.all(weights[rows] > 0)
        mean = weights.astype(np.longdouble) @ points.astype(np.longdouble) / weights.astype(np.longdouble).sum()
        ours = shares.astype(np.longdouble) @ points[rows].astype(np.longdouble)
        assert np.all(np.abs(ours - mean) <= ALLOWED * np.abs(points).max(axis=0))


@pytest.mark.parametrize(("n", "k"), [(20_000, 3), (5_000, 32), (300, 100), (2_000, 1)])
def test_large_instances(n, k):
    rng = np.random.default_rng(n + k)
    points = rng.normal(size=(n, k))
    weights = rng.dirichlet(np.full(n, 0.5)) + 1e-300
    weights /= weights.sum()
    rows, shares = compress(points, weights)
    assert len(rows) <= k + 1
    assert np.all(shares > 0)
    mean = weights.astype(np.longdouble) @ points
    assert_allclose(shares @ points[rows], mean.astype(float), rtol=0, atol=ALLOWED * np.abs(points).max())


def test_points_close_together_do_not_hide_that_all_lie_on_a_line():
    rng = np.random.default_rng(2)
    for _ in range(200):
        points = np.outer(rng.normal(size=1000), rng.normal(size=3)) + rng.normal(size=3)
        assert len(compress(points, np.full(1000, 1e-3))[0]) <= 2


def test_likelier_points_are_kept_than_by_an_elimination_that_knows_no_order():
    rng = np.random.default_rng(5)
    surprise = np.zeros(2)
    for _ in range(20):
        points, weights = rng.normal(size=(450, 8)), rng.dirichlet(np.full(450, 0.1)) + 1e-15
        weights /= weights.sum()
        ways = compress(points, weights), elimination.eliminate(points, weights, weights @ points, np.zeros(8))
        surprise += [float(-shares @ np.log(weights[rows])) / 20 for rows, shares in ways]
    assert surprise[0] < surprise[1] - 0.5


@settings(max_examples=300)
@given(
    distributions(shapes=("gaussian", "1e6 beside 1e-6", "duplicated", "plane", "collinear", "far from the origin")),
    st.integers(0, 2**32),
)
def test_a_target_is_met_where_the_points_allow_it(distribution, seed):
    points, weights, _ = distribution
    shift = np.random.default_rng(seed)
    # Another mean of the same points, further off than any rounding: weights moved by 1e-11 of themselves.
    moved = weights * (1 + 1e-11 * shift.uniform(-1, 1, size=len(weights)))
    target = (moved / moved.sum()) @ points
    rows, shares = compress(points, weights, target=target)
    assert len(rows) <= points.shape[1] + 1
    assert np.all(shares > 0)
    assert exact_error(points, weights, rows, shares, target) <= 3 * ALLOWED


@settings(max_examples=100)
@given(st.integers(2, 40), st.integers(2, 5), st.integers(0, 2**32), st.floats(-1e-10, 1e-10))
def test_a_target_that_no_mixture_meets_is_missed_by_no_more_than_it_must(n, k, seed, off):
    rng = np.random.default_rng(seed)
    points = np.outer(rng.uniform(0.5, 1.0, size=n), np.ones(k))
    weights = rng.dirichlet(np.ones(n))
    target = weights @ points
    target[-1] += off
    rows, shares = compress(points, weights, target=target)
    assert len(rows) <= 2
    assert np.all(shares > 0)
    assert_allclose(shares @ points[rows], target, rtol=0, atol=abs(off) + 1e-14)


def test_error_does_not_grow_when_compressing_again_and_again():
    rng = np.random.default_rng(3)
    k = 6
    values, weights = np.zeros((1, k)), np.ones(1)
    target = np.zeros(k)
    for _ in range(300):
        steps = rng.normal(size=(20, k)) + 1.0
        chances = rng.dirichlet(np.ones(20))
        target = target + chances @ steps
        values = (values[:, None, :] + steps).reshape(-1, k)
        weights = np.outer(weights, chances).ravel()
        rows, weights = compress(values, weights / weights.sum(), target=target)
        values = values[rows]
        assert np.all(np.abs(weights @ values - target) <= 3e-15 * np.abs(values).max(axis=0))


@settings(max_examples=60)
@given(distributions())
def test_the_same_input_gives_the_same_bits(distribution):
    points, weights, _ = distribution
    first, second = compress(points, weights), compress(points.copy(), weights.copy())
    assert_array_equal(first[0], second[0])
    assert_array_equal(first[1], second[1])


@given(st.integers(1, 8), st.integers(0, 2**32))
@example(3, 0)
def test_affinely_independent_points_come_back_as_they_are(k, seed):
    rng = np.random.default_rng(seed)
    points = np.vstack([np.zeros(k), np.diag(rng.uniform(0.5, 2.0, size=k))]) + rng.normal(size=k)
    weights = rng.dirichlet(np.ones(k + 1)) + 0.01
    weights /= weights.sum()
    rows, shares = compress(points, weights)
    assert_array_equal(rows, np.arange(k + 1))
    assert_allclose(shares, weights, rtol=1e-15)  # they are divided by their sum, itself 1 only to a rounding


def test_one_point_and_no_coordinates():
    assert [x.tolist() for x in compress([[3.0, 4.0]], [1.0])] == [[0], [1.0]]
    assert [x.tolist() for x in compress(np.empty((3, 0)), [0.2, 0.5, 0.3])] == [[1], [1.0]]


def test_lists_integers_strided_and_read_only_arrays_are_welcome():
    points = np.arange(24).reshape(8, 3) ** 2 % 17
    weights = np.full(8, 0.125)
    wanted = compress(points.astype(float), weights)
    frozen = points.astype(float)
    frozen.setflags(write=False)
    for form in (points.tolist(), points, frozen, np.asfortranarray(points), np.repeat(points, 2, axis=0)[::2]):
        rows, shares = compress(form, weights)
        assert_array_equal(rows, wanted[0])
        assert_array_equal(shares, wanted[1])


@pytest.mark.parametrize("size", [1e-320, 1e-310, 1e-200, 1e200, 1.7e308])
def test_coordinates_at_the_ends_of_the_range(size):
    rng = np.random.default_rng(1)
    points = rng.uniform(-1, 1, size=(30, 3)) * np.array([1.0, size, 1.0])
    weights = rng.dirichlet(np.ones(30))
    rows, shares = compress(points, weights)
    assert len(rows) <= 4
    assert exact_error(points, weights, rows, shares) <= max(ALLOWED, 5e-324 / size)


def test_weights_a_little_off_are_divided_by_their_sum():
    points = np.array([[0.0], [1.0], [5.0]])
    rows, shares = compress(points, np.array([0.2, 0.3, 0.5]) * (1 + 5e-10))
    assert abs(shares.sum() - 1) < 1e-15
    assert abs(shares @ points[rows, 0] - 2.8) < 1e-14


@pytest.mark.parametrize(
    ("points", "weights", "facts"),
    [
        ([[1.0], [2.0]], [0.5, 0.6], ["weights", "1.1"]),
        ([[1.0], [2.0]], [0.0, 0.0], ["weights", "sum to 0"]),
        ([[1.0], [2.0]], [1.5, -0.5], ["weight", "point 1", -0.5]),
        ([[1.0], [2.0]], [np.nan, 1.0], ["weight", "point 0", "nan"]),
        ([[1.0], [2.0]], [np.inf, 1.0], ["weight", "point 0", "inf"]),
        ([[1.0, 2.0], [2.0, np.nan]], [0.5, 0.5], ["coordinate 1", "point 1", "nan"]),
        ([[1.0, 2.0], [np.inf, 0.0]], [1.0, 0.0], ["coordinate 0", "point 1", "inf"]),
        ([1.0, 2.0], [0.5, 0.5], ["(2,)"]),
        ([[1.0], [2.0]], [1.0], ["(2, 1)", "(1,)"]),
        (np.empty((0, 2)), [], ["no points"]),
    ],
)
def test_a_bad_distribution_is_an_error_that_names_the_place(points, weights, facts):
    with refused(ProblemError, *facts):
        compress(points, weights)


def test_a_bad_target_is_an_error():
    points, weights = [[0.0, 1.0], [1.0, 1.0]], [0.5, 0.5]
    with refused(ProblemError, "coordinate 0", "target", 0.6, 0.5):
        compress(points, weights, target=[0.6, 1.0])
    with refused(ProblemError, "coordinate 1", "target", "nan"):
        compress(points, weights, target=[0.5, np.nan])
    with refused(ProblemError, "target", "(1,)", 2):
        compress(points, weights, target=[0.5])


@pytest.mark.parametrize("module", [elimination, caratheodory, "tradeoff.mdp.stories.compress"])
def test_the_examples_in_the_docstrings_run(module):
    import importlib

    found = importlib.import_module(module) if isinstance(module, str) else module
    results = doctest.testmod(found)
    assert results.attempted > 0
    assert results.failed == 0
