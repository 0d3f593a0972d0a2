"""Which question to ask next: candidates, what each would tell, and which of the good ones is easiest to answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tradeoff.model import Alternative, Answer, Indices, Matrix, Question, Vector
from tradeoff.problem import dilute
from tradeoff.strategies.belief import Belief
from tradeoff.strategies.cache import Candidates
from tradeoff.strategies.certifier import Certificate

# What questions are made of. All four were chosen by hand, on random catalogues of 2 to 10 objectives.
CHALLENGERS = 5  # worst-case rivals of the recommendation
WORST_RAYS = 400  # rays of largest regret among which rivals are sought
FAVOURITES = 10  # alternatives that are best for the most particles
ALIKE = 0.1  # of the target: alternatives that differ by less to everybody are not worth a question

# The answers in the order of every array of answers here.
ANSWERS = (Answer.FIRST, Answer.SAME, Answer.SECOND)


@dataclass(frozen=True, eq=False)
class Pool:
    """Candidate questions: the differences [Q, d] of their gains, and whether real alternatives are compared."""

    questions: Sequence[Question]
    differences: Matrix
    pure: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.questions)

    @property
    def turned(self) -> Pool:
        """The same questions the other way round."""
        return Pool([Question(q.second, q.first) for q in self.questions], -self.differences, self.pure)


def candidate_questions(
    alternatives: Sequence[Alternative], relevant: Indices, belief: Belief, lotteries: bool
) -> Pool:
    """Return all pairs of the alternatives; with lotteries also the pairs made about equal by diluting the better."""
    questions: list[Question] = []
    pure: list[bool] = []
    for i, first in enumerate(alternatives):
        for second in alternatives[i + 1 :]:
            questions.append(Question(first, second))
            pure.append(True)
            if lotteries:
                question = _diluted(first, second, relevant, belief)
                if question is not None:
                    questions.append(question)
                    pure.append(False)
    differences = np.array([q.difference[relevant] for q in questions]).reshape(len(questions), len(relevant))
    return Pool(questions, differences, np.array(pure, dtype=bool))


def _diluted(first: Alternative, second: Alternative, relevant: Indices, belief: Belief) -> Question | None:
    """Return the question that splits the belief evenly: the better alternative comes only with some probability."""
    weights = belief.weights
    ratio = float(np.median((weights @ first.value[relevant]) / np.maximum(weights @ second.value[relevant], 1e-12)))
    if not 1e-6 < ratio < 1e6 or abs(ratio - 1) < 1e-3:
        return None
    return Question(first, dilute(second, ratio)) if ratio < 1 else Question(dilute(first, 1 / ratio), second)


def contenders(
    certificate: Certificate, belief: Belief, candidates: Candidates, regrets: Matrix, target: float
) -> list[int]:
    """Return the candidates that questions are made of: the recommendation, its worst-case rivals, the favourites.

    ``regrets[M, K]`` are those of every candidate to every particle.
    """
    order = np.argsort(-certificate.regrets, kind="stable")[:WORST_RAYS]
    rivals = list(dict.fromkeys(certificate.worth[order].argmax(axis=1).tolist()))[:CHALLENGERS]
    counts = np.bincount(regrets.argmin(axis=1), minlength=len(candidates.alternatives))
    favourites = [i for i in np.argsort(-counts, kind="stable")[:FAVOURITES].tolist() if counts[i]]
    chosen = list(dict.fromkeys([certificate.number, *rivals, *favourites]))
    # Without those that no particle could tell from an earlier one: questions about them stall the interview.
    worth = belief.weights @ candidates.values[chosen][:, candidates.relevant].T
    size = worth.max(axis=1, keepdims=True)
    kept: list[int] = []
    for i in range(len(chosen)):
        if (np.abs((worth[:, [i]] - worth[:, kept]) / size).max(axis=0) > ALIKE * target).all():
            kept.append(i)
    return [chosen[i] for i in kept]


def meant(belief: Belief, differences: Matrix) -> NDArray[np.bool_]:
    """Return which answer each particle means to each question: [3, M, Q], in the order of ANSWERS."""
    gains = belief.weights @ differences.T
    least = belief.precision[:, None]
    first, second = gains > least, gains < -least
    return np.stack([first, ~(first | second), second])


def entropy(probabilities: NDArray[np.float64], axis: int = 0) -> NDArray[np.float64]:
    """Return the entropy in bits along an axis."""
    safe = np.maximum(probabilities, 1e-300)
    result: NDArray[np.float64] = -np.sum(probabilities * np.log2(safe), axis=axis)
    return result


def cover(acceptable: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return a label per particle such that all particles of a label accept one alternative; as few labels as greed finds.

    ``acceptable[M, K]`` says which particle would be content with which alternative. Telling the labels apart is all
    that is needed for a good recommendation.
    """
    left = np.ones(len(acceptable), dtype=bool)
    labels = np.zeros(len(acceptable), dtype=np.int64)
    label = 0
    counts = acceptable.astype(np.float64)
    while left.any():
        best = int((left @ counts).argmax())
        taken = acceptable[:, best] & left
        if not taken.any():  # nothing known satisfies the rest
            labels[left] = label
            break
        labels[taken] = label
        left &= ~taken
        label += 1
    return labels


def information(answers: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the mutual information in bits between the answer to each question and the label.

    ``answers[3, M, Q]``: how likely each particle is to give each answer.
    """
    count = labels.max() + 1
    member = np.eye(count)[labels] / len(labels)  # [M, labels], with the particles' probability
    joint = np.einsum("ml,amq->alq", member, answers, optimize=True)
    share = member.sum(axis=0)
    conditional = entropy(joint / share[None, :, None])
    result: NDArray[np.float64] = entropy(joint.sum(axis=1)) - share @ conditional
    return result


def value_of_asking(answers: NDArray[np.float64], regrets: Matrix) -> Vector:
    """Return by how much the answer to each question is expected to lower the expected regret of the recommendation.

    ``answers[3, M, Q]`` as in :func:`information`; ``regrets[M, K]`` are those of everything that may be recommended.
    """
    flat = answers.transpose(1, 0, 2).reshape(len(regrets), -1)
    after = (regrets.T @ flat).min(axis=0).reshape(len(answers), -1).sum(axis=0) / len(regrets)
    result: Vector = np.maximum(regrets.mean(axis=0).min() - after, 0.0)
    return result


def easiest(scores: Vector, pool: Pool, belief: Belief, *, allowed: NDArray[np.bool_], nearly: float) -> int:
    """Return the question to ask: of those ``nearly`` as good as the best, a real comparison of few differing objectives."""
    usable = np.where(allowed, scores, -np.inf)
    best = float(usable.max())
    good = np.flatnonzero(usable >= best - (1 - nearly) * abs(best))
    differing = (np.abs(pool.differences[good]) > 1e-9).sum(axis=1)
    gains = np.abs(belief.weights @ pool.differences[good].T)
    clear = np.mean(gains / belief.precision[:, None] > 1.0, axis=0)
    return int(good[np.lexsort((-scores[good], -np.round(clear, 2), differing, ~pool.pure[good]))[0]])
