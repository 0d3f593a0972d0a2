"""Particles against the exact posterior of the whole model of answers, which is worked out by brute force."""

from __future__ import annotations

import doctest
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import beta

from tradeoff import ArgumentError
from tradeoff.kernels.density import REPLIES
from tradeoff.strategies import sampling
from tradeoff.strategies.sampling import (
    PEOPLE,
    WITH_STRENGTHS,
    Answering,
    Dirichlets,
    Particles,
    consistent,
    log_likelihood,
    log_words,
    posterior_particles,
)

MODELS = {
    "people": PEOPLE,
    "slips": Answering(lapse=(0.05, 0.05)),
    "noise": Answering(noise=(0.01, 0.5), lapse=(0.01, 0.01)),
    "changing": Answering(noise=(0.001, 0.01), lapse=(0.01, 0.3), change=0.2),
    "strengths": replace(WITH_STRENGTHS, change=0.1),
}


def drawn(n: int, d: int, answering: Answering, mixture: Dirichlets, rng: np.random.Generator) -> Particles:
    low, high = answering.ranges
    traits = np.exp(rng.uniform(low, high, (n, 3)))
    much = np.exp(rng.uniform(*np.log(answering.much), n))
    return Particles(mixture.draw(n, rng), *traits.T, np.zeros(n, dtype=np.int64), much)


def quantiles(values, chances, shares):
    order = np.argsort(values)
    return np.interp(shares, np.cumsum(chances[order]), values[order])


@pytest.mark.parametrize("model", MODELS)
def test_particles_follow_the_posterior(model: str) -> None:
    """Importance sampling with many draws from the prior is the brute force: no moves, no resampling, no slices."""
    rng = np.random.default_rng(len(model))
    answering, mixture = MODELS[model], Dirichlets((0.3, 0.7), ((1.0, 1.0, 1.0), (2.0, 0.5, 4.0)))
    differences = rng.normal(size=(6, 3)) * 0.5
    kinds = np.sign(differences @ [0.2, 0.1, 0.7]).astype(np.int64)
    kinds[0], kinds[3] = -kinds[0], 0
    strengths = np.where(answering.strengths, [1, 2, 0, 0, 2, 1], 0)  # some say it and some do not
    everybody = drawn(150_000, 3, answering, mixture, rng)
    each = log_likelihood(everybody, differences, kinds) + log_words(everybody, differences, kinds, strengths)
    guesses = np.log(np.where(strengths == 0, 3, 6))  # a mind that was changed since said anything, with either word
    whole = np.stack([each[:, start:].sum(axis=1) - guesses[:start].sum() for start in range(len(kinds))])
    whole[1:] += np.log(answering.change) if answering.change else -np.inf
    joint = np.exp(whole - whole.max())
    chance = joint.sum(axis=0) / joint.sum()
    found = posterior_particles(differences, kinds, 3000, rng, answering=answering, prior=mixture, strengths=strengths)
    ranks = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
    effective = 1 / np.sum(chance**2)
    assert effective > 1500  # enough to compare with
    columns = [(everybody.weights[:, j], found.weights[:, j]) for j in range(3)]
    for name in ("precision", "noise", "lapse", "much"):
        columns.append((np.log(getattr(everybody, name)), np.log(getattr(found, name))))
    for before, after in columns:
        if np.ptp(before) < 1e-9:
            assert_allclose(after, before[0])
            continue
        expected = quantiles(before, chance, ranks)
        reached = np.array([(after <= at).mean() for at in expected])
        assert_allclose(reached, ranks, atol=0.06)
    assert_allclose(np.bincount(found.since, minlength=6) / 3000, joint.sum(axis=1) / joint.sum(), atol=0.04)


def test_a_reply_of_several_comparisons_is_one_answer() -> None:
    """Its noise counts for a share of each comparison, and a lapse or a changed mind for the whole of it."""
    rng = np.random.default_rng(8)
    answering, mixture = MODELS["changing"], Dirichlets((1.0,), ((1.0, 1.0, 1.0),))
    differences = rng.normal(size=(7, 3)) * 0.5
    kinds = np.sign(differences @ [0.2, 0.1, 0.7]).astype(np.int64)
    kinds[1], kinds[3] = -kinds[1], 2 if differences[3] @ [0.2, 0.1, 0.7] > 0 else 0
    replies = np.array([0, 1, 1, 1, 2, 3, 3])
    shares = np.array([1.0, 0.6, 0.6, 0.6, 1.0, 1.0, 1.0])
    everybody = drawn(150_000, 3, answering, mixture, rng)
    with_lapses = np.exp(log_likelihood(everybody, differences, kinds))
    meant = np.exp(log_likelihood(everybody._replace(lapse=0 * everybody.lapse), differences, kinds))
    each, guess = [], []
    for number in range(4):
        mine = replies == number
        together = meant[:, mine].prod(axis=1) ** shares[mine][0]
        of_all = (1 - everybody.lapse) * together + everybody.lapse / REPLIES
        each.append(of_all if mine.sum() > 1 else with_lapses[:, mine][:, 0])
        guess.append(1 / REPLIES if mine.sum() > 1 else 1 / 3)
    whole = np.stack([np.prod(each[start:], axis=0) * np.prod(guess[:start]) for start in range(4)])
    whole[1:] *= answering.change
    chance = whole.sum(axis=0) / whole.sum()
    assert 1 / np.sum(chance**2) > 1500  # enough to compare with
    found = posterior_particles(
        differences, kinds, 3000, rng, answering=answering, prior=mixture, shares=shares, replies=replies
    )
    ranks = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
    for j in range(3):
        reached = [(found.weights[:, j] <= at).mean() for at in quantiles(everybody.weights[:, j], chance, ranks)]
        assert_allclose(reached, ranks, atol=0.06)
    starts = np.bincount(found.since, minlength=7)[[0, 1, 4, 5]] / 3000
    assert_allclose(starts, whole.sum(axis=1) / whole.sum(), atol=0.04)


def test_chances_sum_to_one_and_two_sides_are_alike() -> None:
    rng = np.random.default_rng(0)
    some = drawn(50, 4, PEOPLE, Dirichlets.usual(4), rng)
    differences = rng.normal(size=(9, 4)) * 0.1
    there, back = sampling.chances(some, differences), sampling.chances(some, -differences)
    assert_allclose(there.sum(axis=0), 1.0, atol=1e-12)
    assert_allclose(there, back[::-1], atol=1e-12)
    # The nearer two alternatives, the likelier an error and "about equal".
    nearer = sampling.chances(some, differences / 3)
    assert (nearer[1] >= there[1] - 1e-12).all() and (
        nearer[[0, 2]].max(axis=0) <= there[[0, 2]].max(axis=0) + 1e-12
    ).all()


def test_particles_of_nobody_in_particular_are_the_prior() -> None:
    rng = np.random.default_rng(0)
    unmoved = posterior_particles(np.zeros((0, 5)), [], 4000, rng)
    moved = posterior_particles(np.zeros((1, 5)), [0], 4000, rng)  # everyone finds a thing like itself
    for w, e, *_ in (unmoved, moved):
        assert_allclose(w.sum(axis=1), 1.0, atol=1e-12)
        assert w.min() > 0.0 and e.min() >= 1e-4 and e.max() <= 1.0
        assert_allclose(w.mean(axis=0), 0.2, atol=0.025)
        second = 0.5 * 2 / 30 + 0.5 * 0.3 * 1.3 / (1.5 * 2.5)
        assert_allclose((w**2).mean(), second, rtol=0.06)
        sparse_tail = 0.5 * beta.cdf(1e-3, 1, 4) + 0.5 * beta.cdf(1e-3, 0.3, 1.2)
        assert_allclose((w < 1e-3).mean(), sparse_tail, rtol=0.1)
        assert_allclose(np.log(e).mean(), np.log(1e-4) / 2, rtol=0.05)


def answered(d: int, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    w, differences = rng.dirichlet(np.ones(d)), rng.normal(size=(count, d))
    return differences, np.sign(differences @ w).astype(np.int64)


def test_particles_go_on_from_where_they_were() -> None:
    differences, kinds = answered(4, 9, 11)
    before = posterior_particles(differences[:8], kinds[:8], 1000, np.random.default_rng(0))
    step = posterior_particles(differences, kinds, 1000, np.random.default_rng(1), start=before, seen=8)
    whole = posterior_particles(differences, kinds, 1000, np.random.default_rng(2), moves=40)
    error = whole.weights.std(axis=0) * np.sqrt(2 / 1000)
    assert (np.abs(step.weights.mean(axis=0) - whole.weights.mean(axis=0)) <= 6 * error).all()
    assert consistent(step.weights, step.precision, differences, kinds).mean() > 0.9
    fewer = posterior_particles(differences, kinds, 100, np.random.default_rng(1), start=before, seen=8)
    assert fewer.weights.shape == (100, 4)


def test_particles_repeat_with_the_generator_and_leave_the_start_alone() -> None:
    start = posterior_particles([[1.0, -1.0, 0.0]], [1], 50, np.random.default_rng(4), answering=PEOPLE)
    copy = [array.copy() for array in start]
    one, two = (
        posterior_particles(
            [[1.0, -1.0, 0.0], [0.2, 0.1, -0.5]], [1, 0], 50, np.random.default_rng(7), start, 1, answering=PEOPLE
        )
        for _ in range(2)
    )
    for a, b in (*zip(one, two, strict=True), *zip(start, copy, strict=True)):
        assert_array_equal(a, b)


def test_particles_of_one_weight_learn_the_precision() -> None:
    rng = np.random.default_rng(0)
    found = posterior_particles([[0.3], [0.1]], [1, 0], 800, rng, answering=Answering(lapse=(0.01, 0.01)))
    assert_allclose(found.weights, 1.0)
    assert ((found.precision >= 0.1) & (found.precision <= 0.3)).mean() > 0.9


@pytest.mark.parametrize("d", [10, 100])
def test_particles_learn_with_many_weights(d: int) -> None:
    """Densities are logarithms, so that nothing underflows and particles still fit noiseless answers."""
    differences, kinds = answered(d, 15, d)
    found = posterior_particles(differences, kinds, 300, np.random.default_rng(d))
    assert np.isfinite(found.weights).all() and np.isfinite(found.precision).all()
    assert consistent(found.weights, found.precision, differences, kinds).mean() > 0.85


def test_arguments_that_make_no_sense_are_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ArgumentError, match="shapes"):
        posterior_particles([[1.0, 2.0]], [1, 1], 10, rng)
    with pytest.raises(ArgumentError, match="n >= 4"):
        posterior_particles([[1.0, 2.0]], [1], 3, rng)
    for bad in ({"lapse": (0.0, 0.1)}, {"lapse": (0.1, 0.7)}, {"noise": (0.2, 0.1)}, {"change": 1.0}):
        with pytest.raises(ArgumentError):
            Answering(**bad)  # type: ignore[arg-type]


def test_examples_in_docstrings_run() -> None:
    assert doctest.testmod(sampling).failed == 0
