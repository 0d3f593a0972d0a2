"""Samples against the exact posterior of the whole model of replies, which is worked out by brute force."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import beta

from tradeoff import Answer, ArgumentError, Option, Question
from tradeoff.evidence import NOT_WORSE, PREFERRED, SAME, Evidence
from tradeoff.model import FIRST
from tradeoff.strategies import posterior as posterior_module
from tradeoff.strategies.posterior import (
    PEOPLE,
    SLIPS,
    WRONG_REPLIES,
    DirichletMixture,
    ResponseModel,
    Samples,
    consistent,
    pair_chances,
    reply_likelihood,
    sample_prior,
    update_samples,
)
from tradeoff.strategies.tuning import CAREFUL

MODELS = {
    "people": PEOPLE,
    "slips": SLIPS,
    "noise": ResponseModel(noise=(0.01, 0.5), lapse=(0.01, 0.01)),
    "changing": ResponseModel(noise=(0.001, 0.01), lapse=(0.01, 0.3), change=0.2),
}
RANKS = np.array([0.1, 0.25, 0.5, 0.75, 0.9])


def evidence_of(differences, outcomes, owners=None, shares=None) -> Evidence:
    """The evidence of comparisons; each is an answer, unless ``owners`` says which answer it belongs to."""
    differences, outcomes = np.array(differences, dtype=float), np.array(outcomes, dtype=np.int64)
    owners = np.arange(len(outcomes)) if owners is None else owners
    shares = np.ones(len(outcomes)) if shares is None else shares
    some = Answer(Question((Option([0.0]), Option([0.0]))), FIRST)
    answers = (some,) * (int(owners.max()) + 1 if len(owners) else 0)
    return Evidence(np.arange(differences.shape[1]), answers, differences, outcomes, owners, shares)


def posterior(evidence, n, rng, model=SLIPS, prior=None, start=None, seen=0, steps=CAREFUL.steps) -> Samples:
    """n samples given all answers of the evidence, of which those in ``start`` have seen some."""
    prior = prior or DirichletMixture.default(evidence.differences.shape[1])
    start = sample_prior(n, model, prior, rng) if start is None else start
    return update_samples(start, evidence, seen, n, model, prior, rng, steps)


def meant(samples: Samples, differences, outcomes) -> np.ndarray:
    """How likely each comparison is without lapses, by the definition alone."""

    def felt(gap: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            noisy = 1 / (1 + np.exp(-gap / samples.noise[:, None]))
        return np.where(samples.noise[:, None] == 0, gap >= 0, noisy)

    gain, least = samples.weights @ differences.T, samples.precision[:, None]
    first, second = felt(gain - least), felt(-gain - least)
    equal = 1 - first - second
    return np.select([outcomes == SAME, outcomes == NOT_WORSE], [equal, first + equal / 2], first)


def with_lapse(samples: Samples, chances: np.ndarray) -> np.ndarray:
    """How likely a reply to a pair is: with a lapse it is one of the two others."""
    lapse = samples.lapse[:, None]
    return (1 - lapse) * chances + lapse * (1 - chances) / 2


def quantiles(values, chances, shares):
    order = np.argsort(values)
    return np.interp(shares, np.cumsum(chances[order]), values[order])


@pytest.mark.parametrize("name", MODELS)
def test_samples_follow_the_posterior(name: str) -> None:
    """Importance sampling with many draws from the prior is the brute force: no moves, no resampling."""
    rng = np.random.default_rng(len(name))
    model, mixture = MODELS[name], DirichletMixture((0.3, 0.7), ((1.0, 1.0, 1.0), (2.0, 0.5, 4.0)))
    differences = rng.normal(size=(6, 3)) * 0.5
    differences *= np.sign(differences @ [0.2, 0.1, 0.7])[:, None]  # the first is preferred,
    differences[0] *= -1  # but here,
    outcomes = np.full(6, PREFERRED)
    outcomes[3] = SAME  # and here they are about equal
    everybody = sample_prior(150_000, model, mixture, rng)
    each = np.log(with_lapse(everybody, meant(everybody, differences, outcomes)))
    assert_allclose(np.exp(each[:50]), reply_likelihood(everybody, evidence_of(differences, outcomes))[:50], atol=1e-12)
    # A mind that was changed since said anything.
    whole = np.stack([each[:, start:].sum(axis=1) - start * np.log(3) for start in range(len(outcomes))])
    whole[1:] += np.log(model.change) if model.change else -np.inf
    joint = np.exp(whole - whole.max())
    chance = joint.sum(axis=0) / joint.sum()
    steps = (
        2 * CAREFUL.steps if model.change > 0.1 else CAREFUL.steps
    )  # minds that change every few answers need more steps to mix
    found = posterior(evidence_of(differences, outcomes), 3000, rng, model, mixture, steps=steps)
    assert 1 / np.sum(chance**2) > 1500  # enough to compare with
    columns = [(everybody.weights[:, j], found.weights[:, j]) for j in range(3)]
    traits = ("precision", "noise", "lapse") if model.noise else ("precision", "lapse")
    columns += [(np.log(getattr(everybody, trait)), np.log(getattr(found, trait))) for trait in traits]
    for before, after in columns:
        if np.ptp(before) < 1e-9:
            assert_allclose(after, before[0])
            continue
        expected = quantiles(before, chance, RANKS)
        assert_allclose([(after <= at).mean() for at in expected], RANKS, atol=0.06)
    assert_allclose(np.bincount(found.since, minlength=6) / 3000, joint.sum(axis=1) / joint.sum(), atol=0.04)


def test_a_reply_of_several_comparisons_is_one_answer() -> None:
    """Its noise counts for a share of each comparison, and a lapse or a changed mind for the whole of it."""
    rng = np.random.default_rng(8)
    model, mixture = MODELS["changing"], DirichletMixture((1.0,), ((1.0, 1.0, 1.0),))
    differences = rng.normal(size=(7, 3)) * 0.5
    differences *= np.sign(differences @ [0.2, 0.1, 0.7])[:, None]
    differences[1] *= -1
    outcomes = np.full(7, PREFERRED)
    outcomes[3] = NOT_WORSE
    owners = np.array([0, 1, 1, 1, 2, 3, 3])
    shares = np.array([1.0, 0.6, 0.6, 0.6, 1.0, 1.0, 1.0])
    everybody = sample_prior(150_000, model, mixture, rng)
    chances = meant(everybody, differences, outcomes)
    each, guess = [], []
    for number in range(4):
        mine = owners == number
        together = chances[:, mine].prod(axis=1) ** shares[mine][0]
        of_all = (1 - everybody.lapse) * together + everybody.lapse / WRONG_REPLIES
        each.append(of_all if mine.sum() > 1 else with_lapse(everybody, chances[:, mine])[:, 0])
        guess.append(1 / WRONG_REPLIES if mine.sum() > 1 else 1 / 3)
    evidence = evidence_of(differences, outcomes, owners, shares)
    assert_allclose(np.transpose(each)[:50], reply_likelihood(everybody, evidence)[:50], atol=1e-12)
    whole = np.stack([np.prod(each[start:], axis=0) * np.prod(guess[:start]) for start in range(4)])
    whole[1:] *= model.change
    chance = whole.sum(axis=0) / whole.sum()
    assert 1 / np.sum(chance**2) > 1500  # enough to compare with
    found = posterior(evidence, 3000, rng, model, mixture)
    for j in range(3):
        reached = [(found.weights[:, j] <= at).mean() for at in quantiles(everybody.weights[:, j], chance, RANKS)]
        assert_allclose(reached, RANKS, atol=0.06)
    assert_allclose(np.bincount(found.since, minlength=4) / 3000, whole.sum(axis=1) / whole.sum(), atol=0.04)


def test_chances_sum_to_one_and_two_sides_are_alike() -> None:
    rng = np.random.default_rng(0)
    some = sample_prior(50, PEOPLE, DirichletMixture.default(4), rng)
    differences = rng.normal(size=(9, 4)) * 0.1
    there, back = pair_chances(some, differences), pair_chances(some, -differences)
    assert_allclose(there.sum(axis=0), 1.0, atol=1e-12)
    assert_allclose(there, back[::-1], atol=1e-12)
    # The nearer two options, the likelier an error and "about equal".
    nearer = pair_chances(some, differences / 3)
    assert (nearer[1] >= there[1] - 1e-12).all() and (
        nearer[[0, 2]].max(axis=0) <= there[[0, 2]].max(axis=0) + 1e-12
    ).all()


def test_samples_of_nobody_in_particular_are_the_prior() -> None:
    rng = np.random.default_rng(0)
    unmoved = posterior(evidence_of(np.zeros((0, 5)), []), 4000, rng)
    moved = posterior(evidence_of(np.zeros((1, 5)), [SAME]), 4000, rng)  # everyone finds a thing like itself
    for w, e, *_ in (unmoved, moved):
        assert_allclose(w.sum(axis=1), 1.0, atol=1e-12)
        assert w.min() > 0.0 and e.min() >= 1e-4 and e.max() <= 1.0
        assert_allclose(w.mean(axis=0), 0.2, atol=0.025)
        second = 0.5 * 2 / 30 + 0.5 * 0.3 * 1.3 / (1.5 * 2.5)
        assert_allclose((w**2).mean(), second, rtol=0.06)
        sparse_tail = 0.5 * beta.cdf(1e-3, 1, 4) + 0.5 * beta.cdf(1e-3, 0.3, 1.2)
        assert_allclose((w < 1e-3).mean(), sparse_tail, rtol=0.1)
        assert_allclose(np.log(e).mean(), np.log(1e-4) / 2, rtol=0.05)


def answered(d: int, count: int, seed: int) -> Evidence:
    rng = np.random.default_rng(seed)
    w, differences = rng.dirichlet(np.ones(d)), rng.normal(size=(count, d))
    return evidence_of(np.sign(differences @ w)[:, None] * differences, [PREFERRED] * count)


def test_samples_go_on_from_where_they_were() -> None:
    evidence = answered(4, 9, 11)
    before = posterior(evidence.first(8), 1000, np.random.default_rng(0))
    step = posterior(evidence, 1000, np.random.default_rng(1), start=before, seen=8)
    whole = posterior(evidence, 1000, np.random.default_rng(2), steps=5 * CAREFUL.steps)
    error = whole.weights.std(axis=0) * np.sqrt(2 / 1000)
    assert (np.abs(step.weights.mean(axis=0) - whole.weights.mean(axis=0)) <= 6 * error).all()
    assert consistent(step, evidence.differences, evidence.outcomes).mean() > 0.9
    fewer = posterior(evidence, 100, np.random.default_rng(1), start=before, seen=8)
    assert fewer.weights.shape == (100, 4)


def test_samples_repeat_with_the_generator_and_leave_the_start_alone() -> None:
    evidence = evidence_of([[1.0, -1.0, 0.0], [0.2, 0.1, -0.5]], [PREFERRED, SAME])
    start = posterior(evidence.first(1), 50, np.random.default_rng(4), PEOPLE)
    copy = [array.copy() for array in start]
    one, two = (posterior(evidence, 50, np.random.default_rng(7), PEOPLE, start=start, seen=1) for _ in range(2))
    for a, b in (*zip(one, two, strict=True), *zip(start, copy, strict=True)):
        assert_array_equal(a, b)


def test_samples_of_one_weight_learn_the_precision() -> None:
    evidence = evidence_of([[0.3], [0.1]], [PREFERRED, SAME])
    found = posterior(evidence, 800, np.random.default_rng(0), ResponseModel(lapse=(0.01, 0.01)))
    assert_allclose(found.weights, 1.0)
    assert ((found.precision >= 0.1) & (found.precision <= 0.3)).mean() > 0.9


@pytest.mark.parametrize("d", [10, 100])
def test_samples_learn_with_many_weights(d: int) -> None:
    """Densities are logarithms, so that nothing underflows and samples still fit noiseless answers."""
    evidence = answered(d, 15, d)
    found = posterior(evidence, 300, np.random.default_rng(d))
    assert np.isfinite(found.weights).all() and np.isfinite(found.precision).all()
    assert consistent(found, evidence.differences, evidence.outcomes).mean() > 0.85


@pytest.mark.parametrize("bad", [{"lapse": (0.0, 0.1)}, {"lapse": (0.1, 0.7)}, {"noise": (0.2, 0.1)}, {"change": 1.0}])
def test_arguments_that_make_no_sense_are_refused(bad: dict) -> None:
    with pytest.raises(ArgumentError):
        ResponseModel(**bad)


def test_examples_in_docstrings_run() -> None:
    assert doctest.testmod(posterior_module).failed == 0
