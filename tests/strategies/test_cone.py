"""The consistent cone against brute force, exact arithmetic, Qhull and linear programs."""

import doctest
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog
from scipy.spatial import HalfspaceIntersection

from tradeoff.errors import ArgumentError
from tradeoff.evidence import PREFERRED, SAME, half_spaces
from tradeoff.strategies import cone as cone_module
from tradeoff.strategies.cone import TOUCH, Cone

CLOSE = 1e-9


# ------------------------------------------------------------------------------------------------- answers to try


@st.composite
def answers(draw, most_weights=4, most_answers=7, errors=True):
    """A number of weights and answers: of a person with a grid of values (ties everywhere) or of anybody."""
    d = draw(st.integers(1, most_weights))
    count = draw(st.integers(0, most_answers))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    grid = draw(st.sampled_from([1, 2, 3, None]))
    e = draw(st.sampled_from([0.0, 0.1, 0.25]))
    w = rng.dirichlet(np.ones(d)) if grid is None else rng.integers(0, 4, d) + np.eye(d)[0]
    w = w / w.sum()
    given_answers = []
    for _ in range(count):
        difference = rng.normal(size=d) if grid is None else rng.integers(-grid, grid + 1, d) / grid
        kind = answer(w, e, difference)
        if errors and rng.random() < 0.1:
            kind = int(rng.integers(-1, 2))
        given_answers.append((difference, kind))
    return d, given_answers


def answer(w, e, difference):
    gain = w @ difference
    return 1 if gain > e + 1e-12 else -1 if gain < -e - 1e-12 else 0


def rows_of(difference, kind):
    """The half-spaces of a reply to a pair: 1 for the first, -1 for the second, 0 for "about equal"."""
    difference = np.array(difference, dtype=float)
    return half_spaces((kind or 1) * difference[None], np.array([PREFERRED if kind else SAME]))


def cone_of(d, given_answers, **options):
    cone = Cone.orthant(d, **options)
    for label, (difference, kind) in enumerate(given_answers):
        cone = cone.add(rows_of(difference, kind), label)
    return cone


def contains(cone, z, tol=CLOSE):
    """Whether z, scaled to weights that sum to 1, satisfies every half-space to within ``tol``."""
    total = z[:-1].sum()
    return bool(total > 0.0 and (cone.half_spaces @ (z / total)).min() >= -tol)


def only(cone, labels):
    """The cone of these answers alone."""
    rows, found = cone.half_spaces[cone.d + 2 :], Cone.orthant(cone.d, cone.e_max, cone.limit)
    for label in labels:
        found = found.add(rows[[other == label for other in cone.row_labels]], label)
    return found


def interview(d, count, seed, e=0.01, points=200):
    """Answers of somebody to questions about a random catalogue, between optima of people still possible."""
    rng = np.random.default_rng([d, seed])
    values, w = rng.random((points, d)), rng.dirichlet(np.ones(d))
    cone, given_answers = Cone.orthant(d), []
    for label in range(count):
        guesses = cone.rays[rng.integers(len(cone.rays), size=2), :d]
        first, second = np.argmax(guesses @ values.T, axis=1)
        difference = values[first] - values[second]
        given_answers.append((difference, answer(w, e, difference)))
        cone = cone.add(rows_of(*given_answers[-1]), label)
    return cone, given_answers, np.append(w, e)


# ------------------------------------------------------------------------------------------------- other ways to it


def brute_force(cone):
    """All vertices of the cross-section, by solving every m-1 half-spaces."""
    rows, m = cone.half_spaces, cone.d + 1
    subsets = np.array(list(combinations(range(len(rows)), m - 1)))
    systems = np.concatenate(
        [rows[subsets], np.broadcast_to(np.append(np.ones(m - 1), 0.0), (len(subsets), 1, m))], axis=1
    )
    systems = systems[np.abs(np.linalg.det(systems)) > 1e-9]
    one = np.append(np.zeros(m - 1), 1.0)[:, None]
    points = np.linalg.solve(systems, np.broadcast_to(one, (len(systems), m, 1)))[..., 0]
    return points[(points @ rows.T).min(axis=1) >= -CLOSE]


def in_fractions(cone):
    """The same in rational arithmetic, where nothing is a matter of tolerance."""
    rows = [[Fraction(float(x)) for x in row] for row in cone.half_spaces]
    m, found = cone.d + 1, []
    for subset in combinations(rows, m - 1):
        point = [(-1) ** j * determinant([row[:j] + row[j + 1 :] for row in subset]) for j in range(m)]
        total = sum(point[:-1])
        if total:
            point = [x / total for x in point]
            if all(sum(a * x for a, x in zip(row, point, strict=True)) >= 0 for row in rows):
                found.append([float(x) for x in point])
    return np.array(found).reshape(-1, m)


def determinant(matrix):
    if not matrix:
        return Fraction(1)
    return sum(
        (-1) ** j * top * determinant([row[:j] + row[j + 1 :] for row in matrix[1:]]) for j, top in enumerate(matrix[0])
    )


def by_program(cone, direction):
    m = cone.d + 1
    ends = []
    for sign in (1.0, -1.0):
        found = linprog(
            sign * direction,
            A_ub=-cone.half_spaces,
            b_ub=np.zeros(len(cone.half_spaces)),
            A_eq=np.append(np.ones(m - 1), 0.0)[None],
            b_eq=[1.0],
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        ends.append(sign * found.fun)
    return tuple(ends)


def by_qhull(cone):
    m = cone.d + 1
    normal = np.append(np.ones(m - 1), 0.0)
    basis = np.linalg.svd(normal[None])[2][1:]
    inside = cone.interior
    system = np.hstack([-cone.half_spaces @ basis.T, -(cone.half_spaces @ inside)[:, None]])
    points = HalfspaceIntersection(system, np.zeros(m - 1), qhull_options="Qx").intersections
    return points[np.isfinite(points).all(axis=1)] @ basis + inside


def assert_same_points(one, two, tol=CLOSE):
    """Each set has every point of the other; no matter how often."""
    distance = np.abs(one[:, None] - two[None]).max(axis=2)
    assert distance.min(axis=1).max() <= tol
    assert distance.min(axis=0).max() <= tol


# ------------------------------------------------------------------------------------------------- rays


@given(answers())
def test_rays_are_all_the_vertices_and_each_once(case):
    cone = cone_of(*case)
    vertices = brute_force(cone)
    flat = not len(vertices) or (cone.half_spaces @ vertices.T).max(axis=1).min() <= CLOSE
    assert cone.empty == flat
    if flat:
        assert cone.rays.shape == (0, cone.d + 1)
        return
    assert_same_points(vertices, cone.rays)
    assert len(cone.rays) == len(np.unique(vertices.round(7) + 0.0, axis=0))
    assert_allclose(cone.rays[:, :-1].sum(axis=1), 1.0, rtol=0, atol=1e-15)
    assert cone.rays.min() >= 0.0


@given(answers(), st.randoms(use_true_random=False))
def test_the_order_of_answers_does_not_matter(case, random):
    d, given_answers = case
    cone = cone_of(d, given_answers)
    shuffled = list(given_answers)
    random.shuffle(shuffled)
    other = cone_of(d, shuffled)
    assert cone.empty == other.empty
    if not cone.empty:
        assert_same_points(cone.rays, other.rays)


@given(answers(errors=False), st.floats(0.05, 5.0))
def test_the_largest_precision_is_the_callers(case, e_max):
    d, given_answers = case
    cone = cone_of(d, given_answers, e_max=e_max)
    if not cone.empty:
        assert_same_points(brute_force(cone), cone.rays, CLOSE * max(1.0, e_max))
        assert cone.rays[:, -1].max() <= e_max * (1 + 1e-15)


@pytest.mark.parametrize(("d", "seed"), [(5, 0), (5, 1), (6, 0), (6, 1), (7, 0), (8, 0)])
def test_rays_are_qhulls_on_whole_interviews(d, seed):
    cone, given_answers, person = interview(d, 14, seed)
    expected = by_qhull(cone)
    assert_same_points(expected, cone.rays, 1e-8)
    assert contains(cone, person)
    assert (cone.half_spaces @ cone.rays.T).min() >= -1e-15
    rebuilt = cone_of(d, given_answers[::-1])
    assert_same_points(rebuilt.rays, cone.rays)


@given(answers(most_weights=6, most_answers=12, errors=False), st.integers(0, 2**32))
def test_bounds_are_those_of_linear_programs(case, seed):
    cone = cone_of(*case)
    if cone.empty:
        return
    direction = np.random.default_rng(seed).normal(size=cone.d + 1)
    assert_allclose(cone.bounds(direction), by_program(cone, direction), rtol=0, atol=1e-7)


@pytest.mark.parametrize("nearness", [1e-4, 1e-7, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-15])
@pytest.mark.parametrize("d", [2, 3])
def test_nearly_parallel_cuts_lose_nothing(nearness, d):
    for seed in range(4):
        rng = np.random.default_rng([seed, d])
        w, e = rng.dirichlet(np.ones(d)), 0.01
        base = rng.normal(size=(2, d))
        given_answers = []
        for i in range(8 if d == 2 else 6):
            difference = base[i % 2] + nearness * rng.normal(size=d)
            if i % 3 == 1:  # at the very edge of what the person notices
                edge = e * (1 + 100 * nearness * rng.normal())
                difference += w * (edge - w @ difference) / (w @ w)
            gain = w @ difference
            given_answers.append((difference, 1 if gain > e else -1 if gain < -e else 0))
        cone = cone_of(d, given_answers)
        exact = in_fractions(cone)
        if cone.empty:
            assert not len(exact) or (cone.half_spaces @ exact.T).max(axis=1).min() <= 2 * TOUCH
            continue
        directions = rng.normal(size=(d + 1, 100))
        ours, true = (cone.rays @ directions).max(axis=0), (exact @ directions).max(axis=0)
        assert (ours >= true - 1e-13).all()  # nobody is left out
        assert (ours <= true + 1e-10).all()


def test_thirty_bisections_leave_a_thin_but_exact_cone():
    d, rng = 4, np.random.default_rng(5)
    w, e = rng.dirichlet(np.ones(d)), 1e-7
    cone = Cone.orthant(d)
    for label in range(30):
        direction = np.append(rng.normal(size=d), 0.0)
        low, high = cone.bounds(direction)
        difference = direction[:d] - (low + high) / 2
        cone = cone.add(rows_of(difference, 1 if w @ difference > e else -1), label)
        assert not cone.empty
        assert contains(cone, np.append(w, e), 1e-14)
        assert (cone.half_spaces @ cone.rays.T).min() >= -1e-14
    low, high = np.transpose([cone.bounds(row) for row in np.eye(d + 1)])
    assert ((low <= np.append(w, e) + 1e-14) & (np.append(w, e) <= high + 1e-14)).all()
    assert (high - low)[:d].max() < 0.05


def test_a_repeated_answer_changes_nothing():
    cone, given_answers, _ = interview(5, 10, 3)
    again = cone
    for label, (difference, kind) in enumerate(given_answers):
        again = again.add(rows_of(3.0 * difference, kind) / 3.0, 100 + label)
    assert_array_equal(again.rays, cone.rays)
    assert again.labels == (*range(10), *range(100, 110))


@pytest.mark.parametrize("reluctance", [1e-11, 1e-3, 0.05, 2.0])
def test_a_cut_that_cannot_be_made_cleanly_is_moved_outward(monkeypatch, reluctance):
    cone, given_answers, person = interview(4, 8, 7)
    cleanly = cone_module.Skeleton._separate

    def reluctantly(self, height, gone, index, limit):
        return cleanly(self, height, gone, index, limit) if height[gone].max() < -reluctance else None

    monkeypatch.setattr(cone_module.Skeleton, "_separate", reluctantly)
    larger = cone_of(4, given_answers)
    directions = np.random.default_rng(0).normal(size=(5, 200))
    assert ((larger.rays @ directions).max(axis=0) >= (cone.rays @ directions).max(axis=0) - 1e-14).all()
    assert contains(larger, person)


def test_rays_that_stay_are_the_same_numbers():
    cone, _, _ = interview(5, 8, 1)
    row = np.append(cone.interior[:5] - cone.rays[0][:5], 0.0)
    row[:5] -= row[:5] @ cone.interior[:5]
    cut = cone.add(row, "half")
    stay = cone.rays[cone.rays @ row > 1e-9]
    assert 0 < len(stay) < len(cone.rays)
    assert {ray.tobytes() for ray in stay} <= {ray.tobytes() for ray in cut.rays}


def test_the_precision_may_collapse_to_almost_a_point():
    cone = Cone.orthant(2).add([0.3, 0.3, -1.0], "at most").add([-0.3 + 1e-9, -0.3 + 1e-9, 1.0], "at least")
    assert not cone.empty
    assert_allclose(cone.bounds([0, 0, 1]), (0.3 - 1e-9, 0.3), rtol=0, atol=1e-15)
    assert_same_points(cone.rays, np.array([[1, 0, 0.3], [0, 1, 0.3], [1, 0, 0.3 - 1e-9], [0, 1, 0.3 - 1e-9]]), 1e-14)
    flat = cone.add([-0.3, -0.3, 1.0], "exactly")
    assert flat.empty
    assert flat.conflict() == ("at most", "exactly")


def test_one_weight_leaves_the_precision_alone():
    cone = Cone.orthant(1).add(rows_of([0.4], +1), 0).add(rows_of([0.1], 0), 1)
    assert_allclose(np.sort(cone.rays, axis=0), [[1.0, 0.1], [1.0, 0.4]])
    assert cone.add(rows_of([0.2], -1), 2).conflict() == (2,)


def test_cuts_through_rays_and_about_equal_answers_keep_few_rays():
    # "About equal" makes e >= 0 redundant and every ray below it degenerate.
    cone = Cone.orthant(6)
    for label in range(6):
        difference = np.eye(6)[label] - np.eye(6)[(label + 1) % 6]
        cone = cone.add(rows_of(difference, 0), label)
        assert_same_points(brute_force_or_qhull(cone), cone.rays, 1e-8)
    assert len(cone._skeleton.rays) <= 6 * len(cone.rays)


def brute_force_or_qhull(cone):
    return by_qhull(cone) if len(cone.half_spaces) > 12 else brute_force(cone)


# ------------------------------------------------------------------------------------------------- the rest of it


@given(answers(errors=False))
def test_interior_is_inside(case):
    cone = cone_of(*case)
    if cone.empty:
        assert cone.interior is None
        return
    assert (cone.half_spaces @ cone.interior).min() > 0.0
    assert_allclose(cone.interior[:-1].sum(), 1.0)


@given(st.integers(1, 3), st.integers(0, 2**32), st.sampled_from([1, 2, None]))
def test_conflict_is_the_smallest_set_that_cannot_hold(d, seed, grid):
    rng = np.random.default_rng(seed)
    cone = Cone.orthant(d)
    for label in range(7):
        difference = rng.normal(size=d) if grid is None else rng.integers(-grid, grid + 1, d) / grid
        # mostly mild: all but the last few true for someone
        kind = answer(np.ones(d) / d, 0.05, difference) if rng.random() < 0.7 else int(rng.integers(-1, 2))
        cone = cone.add(rows_of(difference, kind), label)
    found = cone.conflict()
    if not cone.empty:
        assert found == ()
        return

    def cannot_hold(labels):
        return only(cone, labels).empty

    assert cannot_hold(found)
    assert found == tuple(sorted(found))
    assert not any(cannot_hold(fewer) for fewer in combinations(range(7), len(found) - 1))
    irreducible = cone.irreducible_conflict()
    assert cannot_hold(irreducible) and len(irreducible) >= len(found)
    assert not any(cannot_hold([other for other in irreducible if other != label]) for label in irreducible)


def test_a_smallest_conflict_is_sought_with_limited_work(monkeypatch):
    """Limits are of work, so that every machine says the same; without any, it is the irreducible conflict."""
    limits = []

    def watched(*given, options, **named):
        limits.append(options["node_limit"])
        return integer_program(*given, options=options, **named)

    integer_program = scipy.optimize.milp
    monkeypatch.setattr(scipy.optimize, "milp", watched)
    rng = np.random.default_rng(8)
    cone = Cone.orthant(3)
    for label in range(20):
        cone = cone.add(rows_of(rng.normal(size=3), int(rng.integers(-1, 2))), label)
    assert len(cone.conflict()) <= len(cone.irreducible_conflict())
    assert 0 < len(limits) <= cone_module.CONFLICT_ROUNDS and set(limits) == {cone_module.CONFLICT_NODES}
    limits.clear()
    monkeypatch.setattr(cone_module, "CONFLICT_ROUNDS", 0)
    assert cone.conflict() == cone.irreducible_conflict() and not limits


def test_conflicts_of_many_weights_can_need_many_answers():
    # w1 > w2 > ... > wd > w1: no d - 1 of these conflict.
    for d in (3, 5, 8):
        cone = Cone.orthant(d)
        for label in range(d):
            cone = cone.add(rows_of(np.eye(d)[label] - np.eye(d)[(label + 1) % d], +1), label)
            cone = cone.add(rows_of(np.eye(d)[label] + 0.5, +1), 100 + label)
        assert cone.empty
        assert cone.conflict() == tuple(range(d))


def test_contradictions_never_crash():
    rng = np.random.default_rng(8)
    cone = Cone.orthant(3)
    for label in range(40):
        cone = cone.add(rows_of(rng.normal(size=3), int(rng.integers(-1, 2))), label)
    assert cone.empty and cone.interior is None and len(cone.rays) == 0
    assert 1 <= len(cone.conflict()) <= 4
    assert cone.labels == tuple(range(40))
    while cone.empty:
        conflict = cone.conflict()
        cone = only(cone, [label for label in cone.labels if label != conflict[-1]])
    assert len(cone.rays) >= 4
    with pytest.raises(ArgumentError, match="contradict"):
        cone.add([-1, -1, -1, 0], "no").bounds([1, 0, 0, 0])


def test_half_spaces_that_say_nothing_are_harmless():
    cone = Cone.orthant(2).add([0, 0, 0], "nothing")
    assert_array_equal(cone.rays, Cone.orthant(2).rays)
    assert cone.labels == ("nothing",)
    assert cone.add(rows_of([0, 0], +1), "a over a").conflict() == ("a over a",)
    assert not cone.add(rows_of([0, 0], 0), "a like a").empty
    assert cone.add(np.zeros((0, 3)), "no rows").labels == ("nothing",)


@pytest.mark.parametrize("bad", [[1, 2], [np.nan, 0, 0], [np.inf, 0, 0], [[[1, 2, 3]]]])
def test_half_spaces_that_make_no_sense_are_refused(bad):
    with pytest.raises(ArgumentError, match="half-space"):
        Cone.orthant(2).add(bad, 0)
    with pytest.raises(ArgumentError, match="at least one weight"):
        Cone.orthant(0)


def test_cones_do_not_change():
    cone, _, _ = interview(4, 5, 2)
    before = cone.rays.copy()
    cone.add([1, -1, 0, 0, 0], "more").add([-1, 0.5, 0, 0, 0], "and more")
    assert_array_equal(cone.rays, before)
    with pytest.raises(ValueError, match="read-only"):
        cone.rays[0, 0] = 3.0
    with pytest.raises(ValueError, match="read-only"):
        cone.half_spaces[0, 0] = 3.0


def test_beyond_the_limit_programs_take_over():
    full, given_answers, person = interview(6, 10, 4)
    cone = cone_of(6, given_answers, limit=20)
    assert not cone.complete and full.complete
    assert len(cone.rays) <= 20 and not cone.empty
    assert (cone.half_spaces @ cone.interior).min() > 1e-9
    for direction in np.eye(7):
        assert_allclose(cone.bounds(direction), full.bounds(direction), rtol=0, atol=1e-8)
    against = rows_of(-given_answers[0][0], given_answers[0][1] or 1)
    assert contains(cone, person)
    if given_answers[0][1]:
        assert set(cone.add(against, 99).conflict()) <= {0, 99}


def test_rays_beyond_the_limit_contain_the_set():
    """However few rays are listed: every bound over them is one over the set itself."""
    rng = np.random.default_rng(3)
    weights = rng.dirichlet(np.ones(6))
    given_answers = [(d, int(np.sign(d @ weights))) for d in rng.normal(size=(12, 6))]
    exact = cone_of(6, given_answers, limit=100_000)
    assert exact.complete
    for limit in (100, 30, 12):
        some = cone_of(6, given_answers, limit=limit)
        assert some.labels == exact.labels and not some.empty and len(some.rays) <= limit
        for direction in rng.normal(size=(50, 7)):
            assert (some.rays @ direction).max() >= (exact.rays @ direction).max() - 1e-12
    assert not some.complete
    assert some.add(rows_of(-given_answers[0][0], given_answers[0][1]), 99).empty


def test_examples_in_docstrings_run():
    assert doctest.testmod(cone_module).failed == 0
