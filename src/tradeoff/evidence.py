"""What replies and statements say about a respondent's weights and precision: the one place that knows how each is read.

The precision e is the largest difference in worth that the respondent does not notice. A reply comes down to comparisons of
two options each:

- Of a pair, the paper's comparison: one option is better by more than e, or neither is ("about equal").
- Of three or more options, "about equal": no two of them differ by more than e.
- Of three or more options, best and worst: the best is any option within e of the best one, the worst any within e of the
  worst one. So nothing in a later place is better by more than e than anything in an earlier one. The two may be so close that
  the respondent cannot tell them apart.
- "Skip" and "none of these" say nothing about weights.

Certificates and contradictions use exactly this reading (``half_spaces``), which no respondent can break. The likelihood of
the posterior supposes a little more: most respondents name as best and worst two options that they can tell apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tradeoff.errors import ArgumentError
from tradeoff.model import EQUAL, Asks, Indices, Matrix, Option, Question, Reply, Vector, frozen_array

# How a comparison came out, for the difference of the first option over the second: it is noticeably better; no difference is
# noticed; the second is not noticeably better; or, of a statement about weights, it is worth more, noticeably or not.
PREFERRED, SAME, NOT_WORSE, EXCEEDS = 1, 0, 2, 3
OUTCOMES = (PREFERRED, SAME, NOT_WORSE, EXCEEDS)

IDENTITY_DIGITS = 10  # options whose gains agree to this many digits are one option

Outcomes: TypeAlias = NDArray[np.int64]

# The kinds of question that a strategy can be told to ask: how many options at most, and what about them.
QUESTIONS: dict[str, tuple[int, Asks]] = {"pairs": (2, "best"), "best-worst-4": (4, "best-worst")}


def check_question_kind(name: object) -> str:
    """Return the name of a kind of question, or raise an ArgumentError."""
    if not isinstance(name, str) or name not in QUESTIONS:
        raise ArgumentError(f"questions is {name!r:.80}; it must be one of {', '.join(QUESTIONS)}")
    return name


def check_reply(reply: object, count: int, asks: Asks) -> Reply:
    """Return a reply to a question with ``count`` options, or raise an ArgumentError.

    It may be a ``Reply``, the position of the best option, or a word: "equal", "skip" or "none", and "first" or "second" of a
    pair.

    >>> check_reply("second", 2, "best"), check_reply(0, 2, "best"), check_reply("equal", 4, "best-worst")
    (Reply(best=1), Reply(best=0), Reply(word='equal'))
    """
    example = "Reply(best=0, worst=2)" if asks == "best-worst" else "Reply(best=0)"
    advice = f"answer with, for example, {example}, 'equal' or 'skip'"
    if isinstance(reply, str) and reply in ("first", "second"):
        reply = Reply(("first", "second").index(reply)) if count == 2 else reply
    try:
        given = reply if isinstance(reply, Reply) else Reply(word=reply) if isinstance(reply, str) else Reply(reply)  # type: ignore[arg-type]
    except ArgumentError:
        raise ArgumentError(f"{reply!r:.80} is no reply to {count} options; {advice}") from None
    named = [place for place in (given.best, given.worst) if place is not None]
    if given.word is None and (max(named) >= count or len(named) != (2 if asks == "best-worst" else 1)):
        wanted = "the best and the worst" if asks == "best-worst" else "the best"
        raise ArgumentError(f"{given!r} does not name {wanted} of {count} options, counted from 0; {advice}")
    return given


class Comparison(NamedTuple):
    """What a reply says of two options, by their positions."""

    first: int
    second: int
    outcome: int


def comparisons(question: Question, reply: Reply) -> list[Comparison]:
    """Return what a reply says to the likelihood; best against worst comes first.

    >>> options = [Option([gain]) for gain in (0.3, 0.9, 0.6)]
    >>> [tuple(one) for one in comparisons(Question(options, "best-worst"), Reply(best=1, worst=0))]
    [(1, 0, 1), (1, 2, 2), (2, 0, 2)]
    """
    places = range(len(question.options))
    if reply == EQUAL:
        return [Comparison(i, j, SAME) for i, j in combinations(places, 2)]
    best, worst = reply.best, reply.worst
    if best is None:
        return []
    if question.is_pair:
        return [Comparison(best, 1 - best, PREFERRED)]
    others = [i for i in places if i not in (best, worst)]
    if worst is None:
        return [Comparison(best, i, NOT_WORSE) for i in others]
    above = [Comparison(best, i, NOT_WORSE) for i in others]
    return [Comparison(best, worst, PREFERRED), *above, *(Comparison(i, worst, NOT_WORSE) for i in others)]


def certain_comparisons(question: Question, reply: Reply) -> list[Comparison]:
    """Return what a reply says whoever gave it: as ``comparisons``, but best and worst of a menu may be too close to tell."""
    found = comparisons(question, reply)
    if question.is_pair or reply == EQUAL:
        return found
    return [one._replace(outcome=NOT_WORSE) for one in found]


@dataclass(frozen=True, eq=False)
class Statement:
    """Something that a respondent said without being asked, as comparisons of gains."""

    text: str
    differences: Matrix  # [q, k]
    outcomes: Outcomes  # [q]

    def __post_init__(self) -> None:
        object.__setattr__(self, "differences", frozen_array(self.differences))
        object.__setattr__(self, "outcomes", np.array(self.outcomes, dtype=np.int64))

    @cached_property
    def key(self) -> bytes:
        """Identifies this statement."""
        return b"statement" + self.differences.tobytes() + self.outcomes.tobytes()

    @property
    def about_weights(self) -> bool:
        """Whether it is about the importance of objectives itself."""
        return EXCEEDS in self.outcomes


@dataclass(frozen=True, eq=False)
class Answer:
    """A question with its reply, or a statement, under its number in the log.

    ``observed`` answers were not given to the strategy's own question: they are statements, come from elsewhere, or belong to
    questions of another version of the program. Those from ``elsewhere`` do not count as questions of this interview.
    """

    question: Question | Statement
    reply: Reply
    number: int = 0
    observed: bool = False
    elsewhere: bool = False

    @property
    def was_asked(self) -> bool:
        """Whether it answers a question of this interview."""
        return self.asked is not None and not self.elsewhere

    @property
    def statement(self) -> Statement | None:
        """The statement; None if a question was answered."""
        return self.question if isinstance(self.question, Statement) else None

    @property
    def asked(self) -> Question | None:
        """The question that was answered; None for a statement."""
        return self.question if isinstance(self.question, Question) else None

    def compared(self) -> list[tuple[Option, Option, int]]:
        """Return the options that are compared, and how each comparison came out; a statement compares none."""
        if self.asked is None:
            return []
        options = self.asked.options
        return [(options[i], options[j], outcome) for i, j, outcome in comparisons(self.asked, self.reply)]

    def likelihood_terms(self) -> tuple[Matrix, Outcomes]:
        """Return differences of gains [q, k], and how each comparison came out, as the likelihood reads the answer."""
        return self._terms(comparisons)

    def certain_terms(self) -> tuple[Matrix, Outcomes]:
        """Return differences of gains [q, k], and how each comparison came out, as certificates read the answer."""
        return self._terms(certain_comparisons)

    def _terms(self, read: Reading) -> tuple[Matrix, Outcomes]:
        if isinstance(self.question, Statement):
            return self.question.differences, self.question.outcomes
        found, values = read(self.question, self.reply), self.question.values
        first, second, outcome = np.array(found, dtype=np.int64).reshape(-1, 3).T
        return values[first] - values[second], outcome

    def share_of_each(self, count: int) -> float:
        """Return how much each of ``count`` comparisons counts in the likelihood: n options have n - 1 independent differences.

        Noise in what each option seems worth makes the comparisons of a menu go wrong together. Counted as independent, they
        would make the posterior too sure.
        """
        if isinstance(self.question, Question):
            independent = len(self.question.options) - 1
        else:
            independent = int(np.linalg.matrix_rank(self.question.differences)) if count > 1 else count
        return min(1.0, independent / max(1, count))


class Reading(Protocol):
    """How the comparisons of a reply are read."""

    def __call__(self, question: Question, reply: Reply) -> list[Comparison]:
        """Return the comparisons of a reply."""


def half_spaces(differences: Matrix, outcomes: Outcomes) -> Matrix:
    """Return the rows a with ``a @ (w, e) >= 0`` exactly where weights w and precision e are consistent with comparisons.

    "About equal" takes two rows; the second ones come last.

    >>> half_spaces(np.array([[3.0, -1.0]]), np.array([PREFERRED])).tolist()
    [[3.0, -1.0, -1.0]]
    >>> half_spaces(np.array([[3.0, -1.0]]), np.array([SAME])).tolist()
    [[3.0, -1.0, 1.0], [-3.0, 1.0, 1.0]]
    """
    times = np.array([1.0, -1.0, 1.0, 0.0])[outcomes]  # by SAME, PREFERRED, NOT_WORSE, EXCEEDS
    rows = np.column_stack([differences, times])
    other_way = np.column_stack([-differences, times])[outcomes == SAME]
    return np.vstack([rows, other_way])


@dataclass(frozen=True, eq=False)
class Evidence:
    """All answers of an interview, as the posterior and the certificate read them; never changed, ``update`` returns another.

    The arrays are those of the likelihood, comparison by comparison: ``differences`` are gains of the first option over the
    second in the objectives that can be changed, ``owners`` says which answer each comparison belongs to, and ``shares`` how
    much it counts.
    """

    relevant: Indices  # the objectives that can be changed
    answers: tuple[Answer, ...]
    differences: Matrix  # [q, d]
    outcomes: Outcomes  # [q]
    owners: NDArray[np.int64]  # [q]
    shares: Vector  # [q]

    @classmethod
    def none(cls, relevant: Indices) -> Evidence:
        """Return the evidence before any answer."""
        nothing = np.zeros(0, dtype=np.int64)
        return cls(relevant, (), np.zeros((0, len(relevant))), nothing, nothing, np.zeros(0))

    def update(self, answer: Answer) -> Evidence:
        """Return the evidence with one more answer."""
        differences, outcomes = answer.likelihood_terms()
        count = len(outcomes)
        return replace(
            self,
            answers=(*self.answers, answer),
            differences=np.vstack([self.differences, differences[:, self.relevant]]),
            outcomes=np.append(self.outcomes, outcomes),
            owners=np.append(self.owners, np.full(count, len(self.answers))),
            shares=np.append(self.shares, np.full(count, answer.share_of_each(count))),
        )

    @property
    def asked(self) -> int:
        """How many questions of this interview were answered."""
        return sum(answer.was_asked for answer in self.answers)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The position of the first comparison of each answer that makes any."""
        return np.flatnonzero(np.diff(self.owners, prepend=-1))

    def first(self, count: int) -> Evidence:
        """Return the evidence of the first answers alone."""
        end = int(np.searchsorted(self.owners, count))
        return replace(
            self,
            answers=self.answers[:count],
            differences=self.differences[:end],
            outcomes=self.outcomes[:end],
            owners=self.owners[:end],
            shares=self.shares[:end],
        )

    def of(self, answers: Sequence[int] | NDArray[np.intp]) -> tuple[Matrix, Outcomes]:
        """Return the comparisons of some answers, by their positions."""
        chosen = np.isin(self.owners, np.asarray(answers, dtype=np.int64))
        return self.differences[chosen], self.outcomes[chosen]

    def half_spaces(self, index: int) -> Matrix:
        """Return the half-spaces of an answer in weights on the relevant objectives and precision."""
        differences, outcomes = self.answers[index].certain_terms()
        return half_spaces(differences[:, self.relevant], outcomes)


# --- direct choices between options ------------------------------------------------------------------------------------


def identity(option: Option) -> bytes:
    """Return what tells an option from others: its gains, rounded."""
    return (np.round(option.value, IDENTITY_DIGITS) + 0.0).tobytes()


@dataclass(frozen=True)
class DirectChoices:
    """Which option was placed above which, in all answers so far. Options are known by their ``identity``."""

    above: dict[tuple[bytes, bytes], list[int]] = field(default_factory=dict)  # (better, worse) -> indices of answers
    latest: dict[frozenset[bytes], bytes | None] = field(default_factory=dict)  # preferred last time; None: about equal
    as_pair: dict[frozenset[bytes], int] = field(default_factory=dict)  # how often the two alone were compared

    @classmethod
    def of(cls, answers: Sequence[Answer]) -> DirectChoices:
        """Return the choices of these answers, in their order."""
        choices = cls()
        for index, answer in enumerate(answers):
            for better, worse, tie in placements(answer):
                both = frozenset((better, worse))
                choices.latest[both] = None if tie else better
                if not tie:
                    choices.above.setdefault((better, worse), []).append(index)
                if answer.asked is not None and answer.asked.is_pair:
                    choices.as_pair[both] = choices.as_pair.get(both, 0) + 1
        return choices

    @property
    def rejected(self) -> frozenset[bytes]:
        """The options that were placed below another one at least once."""
        return frozenset(worse for _, worse in self.above)

    def preferred_to(self, option: bytes) -> list[bytes]:
        """Return the options that were chosen over this one, last time too, and were never rejected themselves."""
        rejected = self.rejected
        return [
            better
            for better, worse in self.above
            if worse == option and better not in rejected and self.latest[frozenset((better, worse))] == better
        ]

    def is_repeated(self, better: bytes, worse: bytes) -> bool:
        """Return whether one option was placed above the other at least twice, and never below or level later."""
        both = frozenset((better, worse))
        times = len(self.above.get((better, worse), ()))
        return times >= 2 and (worse, better) not in self.above and self.latest[both] == better

    def is_confirmed(self, better: bytes, worse: bytes) -> bool:
        """Return whether a choice was repeated, and at least once between these two alone."""
        return self.is_repeated(better, worse) and self.as_pair.get(frozenset((better, worse)), 0) > 0


def placements(answer: Answer) -> list[tuple[bytes, bytes, bool]]:
    """Return for each comparison of an answer the better option, the worse one, and whether they are about equal."""
    return [
        (identity(better), identity(worse), outcome == SAME)
        for better, worse, outcome in answer.compared()
        if better.is_real and worse.is_real
    ]


# --- simulated respondents ---------------------------------------------------------------------------------------------


def possible_replies(worth: Vector, precision: float, asks: Asks) -> list[Reply]:
    """Return everything that a respondent may reply to options of this worth.

    >>> possible_replies(np.array([1.0, 0.99, 0.2]), 0.05, "best-worst")
    [Reply(best=0, worst=2), Reply(best=1, worst=2)]
    """
    if np.ptp(worth) <= precision:
        return [EQUAL]
    best = np.flatnonzero(worth >= worth.max() - precision).tolist()
    if asks == "best":
        return [Reply(i) for i in best] if len(worth) > 2 else [Reply(int(worth.argmax()))]
    worst = np.flatnonzero(worth <= worth.min() + precision).tolist()
    return [Reply(i, j) for i in best for j in worst if i != j]
