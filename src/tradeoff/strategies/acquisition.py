"""Acquisition functions: candidate questions, how informative each is, and which of the good ones is easiest to answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray

from tradeoff.evidence import QUESTIONS
from tradeoff.model import Asks, Indices, Matrix, Option, Question, Vector
from tradeoff.numerics import worths
from tradeoff.problem import dilute
from tradeoff.strategies.elicitation import State
from tradeoff.strategies.posterior import Posterior
from tradeoff.strategies.solutions import Candidates
from tradeoff.strategies.tuning import Tuning

SCORE_DIGITS = 9  # scores that differ by less are the same: logarithms differ between processors in the last digit


@dataclass(frozen=True, eq=False)
class Pool:
    """Candidate questions with the same number of options, and how likely each sample is to give each reply."""

    options: Sequence[tuple[Option, ...]]
    asks: Asks
    values: NDArray[np.float64]  # [Q, n, d]: gains in the relevant objectives
    chances: NDArray[np.float64]  # [A, M, Q], replies in the order of ``Question.replies``
    noise_bits: Vector  # [Q]: the mean entropy of a sample's reply
    real: NDArray[np.bool_]  # [Q]: whether no option is a lottery with the reference
    clear: Vector  # [Q]: the share of samples that notice the difference of a pair

    def __len__(self) -> int:
        return len(self.options)

    def question(self, index: int) -> Question:
        """Return a candidate as a question."""
        return Question(self.options[index], self.asks)

    @cached_property
    def members(self) -> list[frozenset[bytes]]:
        """What identifies the options of each candidate in any order."""
        names = {id(option): option.value.tobytes() for options in self.options for option in options}
        return [frozenset(names[id(option)] for option in options) for options in self.options]

    def among(self, asked: Iterable[frozenset[bytes]]) -> NDArray[np.bool_]:
        """Return which candidates are about the same options as one of these questions."""
        done = set(asked)
        return np.array([members in done for members in self.members], dtype=bool)

    def easiest(self, scores: Vector, allowed: NDArray[np.bool_], nearly: float) -> int:
        """Return the question to ask: of those ``nearly`` as good as the best, one that differs in few objectives.

        Real options come before lotteries, and clear differences before small ones.
        """
        scores = np.round(scores, SCORE_DIGITS)
        usable = np.where(allowed, scores, -np.inf)
        best = float(usable.max())
        good = np.flatnonzero(usable >= best - (1 - nearly) * abs(best))
        differing = (np.ptp(self.values[good], axis=1) > 1e-9).sum(axis=1)
        clear = np.round(self.clear[good], 2)
        return int(good[np.lexsort((-scores[good], -clear, differing, ~self.real[good]))[0]])


def pair_pool(pairs: Sequence[tuple[Option, ...]], relevant: Indices, posterior: Posterior, *, noisy: bool) -> Pool:
    """Return pairs as candidate questions; ``noisy`` if replies may be wrong."""
    values = np.array([[option.value[relevant] for option in pair] for pair in pairs]).reshape(-1, 2, len(relevant))
    differences = values[:, 0] - values[:, 1]
    gains, least = worths(posterior.weights, differences), posterior.precision[:, None]
    if noisy:
        chances = posterior.pair_chances(differences)[[0, 2, 1]]  # as ``Question.replies``: about equal comes last
    else:
        first, second = gains > least, gains < -least
        chances = np.stack([first, second, ~(first | second)]).astype(np.float64)
    clear = np.mean(np.abs(gains) > least, axis=0)
    real = np.array([all(option.is_real for option in pair) for pair in pairs], dtype=bool)
    return Pool(pairs, "best", values, chances, entropy(chances).mean(axis=0), real, clear)


def all_pairs(
    options: Sequence[Option], relevant: Indices, posterior: Posterior, lotteries: bool
) -> list[tuple[Option, ...]]:
    """Return all pairs of the options; with lotteries also the pairs made about equal by diluting the better one."""
    pairs: list[tuple[Option, ...]] = []
    for pair in combinations(options, 2):
        pairs.append(pair)
        if lotteries and (diluted := _diluted(*pair, relevant, posterior)) is not None:
            pairs.append(diluted)
    return pairs


def _diluted(first: Option, second: Option, relevant: Indices, posterior: Posterior) -> tuple[Option, Option] | None:
    """Return the pair that splits the posterior evenly: the better option comes only with some probability."""
    mine, other = worths(posterior.weights, np.array([first.value[relevant], second.value[relevant]])).T
    ratio = float(np.median(mine / np.maximum(other, 1e-12)))
    if not 1e-6 < ratio < 1e6 or abs(ratio - 1) < 1e-3:
        return None
    return (first, dilute(second, ratio)) if ratio < 1 else (dilute(first, 1 / ratio), second)


def menu_pool(
    kind: str, numbers: list[int], candidates: Candidates, posterior: Posterior, *, noisy: bool
) -> Pool | None:
    """Return all menus of these candidates; None where they are too few, or pairs are asked."""
    size, asks = QUESTIONS[kind]
    if size < 3 or len(numbers) < size:
        return None
    chosen = np.array(list(combinations(numbers, size)), dtype=np.int64)
    options = [tuple(candidates.options[i] for i in menu) for menu in chosen.tolist()]
    possible = possible_menu_replies(worths(posterior.weights, candidates.gains)[:, chosen], posterior.precision)
    count = possible.sum(axis=0)  # [M, Q]
    others = len(possible) - 1
    lapse = posterior.samples.lapse if noisy else np.zeros(len(posterior.weights))
    # A sample gives each possible reply as likely, and with the probability of a lapse any other one.
    wrong = lapse / others
    right = (1 - lapse * (others + 1) / others)[:, None] / np.arange(1, others + 2) + wrong[:, None]  # [M, count - 1]
    sample = np.arange(len(count))[:, None]
    chances = np.where(possible, right[sample, count - 1], wrong[:, None])
    sizes = np.arange(1, others + 2)
    each = sizes * _bits(right) + (others + 1 - sizes) * _bits(wrong)[:, None]
    noise_bits = each[sample, count - 1].mean(axis=0)
    everything = np.ones(len(chosen), dtype=bool)
    return Pool(options, asks, candidates.gains[chosen], chances, noise_bits, everything, np.zeros(len(chosen)))


def possible_menu_replies(worth: NDArray[np.float64], precision: Vector) -> NDArray[np.bool_]:
    """Return which replies are possible for each sample and menu, [A, M, Q]; ``worth`` is [M, Q, n].

    The best is any option within the precision of the best one, the worst any within the precision of the worst one, and the
    two can be told apart. Without a noticeable difference all are about equal.
    """
    least = precision[:, None]
    high, low = worth.max(axis=2), worth.min(axis=2)
    top, bottom = worth >= (high - least)[:, :, None], worth <= (low + least)[:, :, None]
    named = [
        top[:, :, best] & bottom[:, :, worst] & (worth[:, :, best] - worth[:, :, worst] > least)
        for best, worst in permutations(range(worth.shape[2]), 2)
    ]
    return np.array([*named, high - low <= least])


def contenders(state: State, regrets: Matrix, target: float, tuning: Tuning) -> list[int]:
    """Return the candidates that questions are made of: the recommendation, its worst-case rivals, the favourites.

    ``regrets[M, K]`` are those of every candidate to every sample.
    """
    certificate, candidates = state.certificate, state.candidates
    worst = largest_first(certificate.regrets)[: tuning.challenger_rays]
    # At a ray several options are often equally good: the last digit must not decide between them.
    best_there = np.round(worths(certificate.rays[worst], candidates.gains), SCORE_DIGITS).argmax(axis=1)
    rivals = list(dict.fromkeys(best_there.tolist()))[: tuning.challengers]
    counts = np.bincount(regrets.argmin(axis=1), minlength=len(candidates.options))
    favourites = [i for i in np.argsort(-counts, kind="stable")[: tuning.favourites].tolist() if counts[i]]
    chosen = list(dict.fromkeys([certificate.number, *rivals, *favourites]))
    # Without those that no sample could tell from an earlier one: questions about them stall the interview.
    worth = worths(state.posterior.weights, candidates.gains[chosen])
    size = worth.max(axis=1, keepdims=True)
    kept: list[int] = []
    for i in range(len(chosen)):
        if (np.abs((worth[:, [i]] - worth[:, kept]) / size).max(axis=0) > tuning.alike * target).all():
            kept.append(i)
    return [chosen[i] for i in kept]


def largest_first(scores: Vector) -> Indices:
    """Return the order of scores, the largest first; what differs by rounding only counts as the same on every machine."""
    order: Indices = np.argsort(-np.round(scores, SCORE_DIGITS), kind="stable")
    return order


def _bits(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what each probability adds to an entropy, in bits."""
    result: NDArray[np.float64] = -probabilities * np.log2(np.maximum(probabilities, 1e-300))
    return result


def entropy(probabilities: NDArray[np.float64], axis: int = 0) -> NDArray[np.float64]:
    """Return the entropy in bits along an axis."""
    result: NDArray[np.float64] = _bits(probabilities).sum(axis=axis)
    return result


def information_about_respondent(pool: Pool) -> Vector:
    """Return how many bits the reply to each question tells about the respondent (mutual information)."""
    return np.maximum(entropy(pool.chances.mean(axis=1)) - pool.noise_bits, 0.0)


def set_cover(acceptable: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return a label per sample such that all samples of a label accept one option (greedy set cover).

    ``acceptable[M, K]`` says which sample is satisfied with which option. Telling the labels apart is all that is needed for a
    good recommendation.
    """
    left = np.ones(len(acceptable), dtype=bool)
    labels = np.zeros(len(acceptable), dtype=np.int64)
    label = 0
    counts = acceptable.astype(np.float64)
    while left.any():
        best = int((left @ counts).argmax())
        covered = acceptable[:, best] & left
        if not covered.any():  # nothing known satisfies the rest
            labels[left] = label
            break
        labels[covered] = label
        left &= ~covered
        label += 1
    return labels


def information_about_labels(pool: Pool, labels: NDArray[np.int64]) -> Vector:
    """Return the mutual information in bits between the reply to each question and the label of the respondent."""
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
    joint = np.add.reduceat(pool.chances[:, order], starts, axis=1) / len(labels)  # [A, labels, Q]
    share = np.diff(starts, append=len(labels)) / len(labels)
    conditional = entropy(joint / share[:, None])
    result: Vector = entropy(joint.sum(axis=1)) - np.sum(share[:, None] * conditional, axis=0)
    return result


def value_of_information(pool: Pool, regrets: Matrix, compromises: int) -> Vector:
    """Return by how much the reply to each question is expected to lower the expected regret of the recommendation.

    ``regrets[M, K]`` are those of every candidate to every sample. Only candidates that are best for some sample, and
    ``compromises`` that are good on average, are supposed to be recommended after a reply.
    """
    mean = regrets.mean(axis=0)
    likely = np.unique(np.append(regrets.argmin(axis=1), np.argsort(mean, kind="stable")[:compromises]))
    replies, samples, questions = pool.chances.shape
    flat = pool.chances.transpose(1, 0, 2).reshape(samples, replies * questions)
    after = (regrets[:, likely].T @ flat).min(axis=0).reshape(replies, questions).sum(axis=0) / samples
    result: Vector = np.maximum(mean.min() - after, 0.0)
    return result
