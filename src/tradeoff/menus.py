"""Questions of more than two, and what a reply to one says: which is best, and which is worst.

A pair is the menu of two. Every reply, to a pair or to a menu, comes down to comparisons of two alternatives each, and
that is all that strategies, certificates and contradictions know of it (``comparisons``).

What may be concluded from "this is the best" is a matter of what a person can tell apart. Somebody who does not notice
differences of up to their precision e says of a menu

- "about equal" if all of it lies within e: every two of them differ by at most e;
- otherwise a choice in tiers, in which nothing of a later tier is better by more than e than anything of an earlier one:
  among alternatives that they cannot tell apart, they may have taken any. Something in the first tier is better by more
  than e than something in the last; where both are single alternatives, these two are known.

For two alternatives that is the paper's comparison: the first, the second, or about equal.

Whoever prefers something may add by how much, "a lot" or "a little" (``Graded``). There is no number in these words, so
nothing is concluded from them: the comparisons are those of the answer without them. They are evidence for a belief alone,
which learns what the words mean to this person (``strengths``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations
from typing import Literal, NamedTuple, TypeAlias, cast, get_args, overload

import numpy as np
from numpy.typing import NDArray

from tradeoff.errors import ArgumentError
from tradeoff.model import Alternative, Answer, Matrix, Question, Vector, frozen_array

Asks: TypeAlias = Literal["best", "best-worst"]
ASKS: tuple[Asks, ...] = get_args(Asks)
Strength: TypeAlias = Literal["a lot", "a little"]
STRENGTHS: tuple[Strength, ...] = get_args(Strength)

# How a comparison came out: the first is noticeably better, the second is, no difference is noticed; or the first was placed
# above the second, so that the second is not noticeably better.
PREFERRED, OTHER_PREFERRED, SAME, NOT_WORSE = 1, -1, 0, 2
# Of a statement only: the first is worth more, noticeably or not, because it was said of weights and not of what was seen.
WORTH_MORE = 3
# By how much the first of a comparison, or the second, was said to be better.
UNSAID, A_LITTLE, A_LOT = 0, 1, 2
SHARPENED = 1e6  # times: a difference as large as this is noticed whenever there is one

# The kinds of question that a strategy can be told to ask: how many alternatives, and what about them.
QUESTIONS: dict[str, tuple[int, Asks]] = {
    "pairs": (2, "best"),
    "best-of-3": (3, "best"),
    "best-of-4": (4, "best"),
    "rank-3": (3, "best-worst"),  # which leaves one between them
    "best-worst-4": (4, "best-worst"),
}


def checked_questions(name: object) -> str:
    """Return the name of a kind of question, or raise an ArgumentError."""
    if not isinstance(name, str) or name not in QUESTIONS:
        raise ArgumentError(f"questions is {name!r:.80}; it must be one of {', '.join(QUESTIONS)}")
    return name


def checked_strengths(given: object) -> bool:
    """Return whether strengths may be said, or raise an ArgumentError."""
    if not isinstance(given, bool):
        raise ArgumentError(f"strengths is {given!r:.80}; it must be true or false")
    return given


@dataclass(frozen=True)
class Choice:
    """A reply to a menu: the numbers of its alternatives in tiers, the best first; one tier means "about equal".

    >>> Choice.of_best(1, 4), Choice.of_best_and_worst(1, 3, 4)
    (Choice(tiers=((1,), (0, 2, 3))), Choice(tiers=((1,), (0, 2), (3,))))
    """

    tiers: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "tiers", tuple(tuple(sorted(int(i) for i in tier)) for tier in self.tiers))

    @classmethod
    def of_best(cls, best: int, count: int) -> Choice:
        """Return that one of ``count`` alternatives is the best."""
        return cls(((best,), tuple(i for i in range(count) if i != best)))

    @classmethod
    def of_best_and_worst(cls, best: int, worst: int, count: int) -> Choice:
        """Return that one of ``count`` alternatives is the best and another the worst."""
        between = tuple(i for i in range(count) if i not in (best, worst))
        return cls(((best,), between, (worst,)) if between else ((best,), (worst,)))

    @classmethod
    def about_equal(cls, count: int) -> Choice:
        """Return that all of ``count`` alternatives are about equal."""
        return cls((tuple(range(count)),))

    @property
    def equal(self) -> bool:
        """Whether all are about equal."""
        return len(self.tiers) == 1

    @property
    def best(self) -> int | None:
        """The alternative that is placed first alone; None where all are about equal."""
        return self.tiers[0][0] if not self.equal and len(self.tiers[0]) == 1 else None

    @property
    def worst(self) -> int | None:
        """The alternative that is placed last alone, if one is."""
        return self.tiers[-1][0] if not self.equal and len(self.tiers[-1]) == 1 else None

    def renumbered(self, numbers: Sequence[int]) -> Choice:
        """Return the choice with ``numbers[i]`` in place of i."""
        return Choice(tuple(tuple(numbers[i] for i in tier) for tier in self.tiers))


@dataclass(frozen=True)
class Graded:
    """An answer with how much better the preferred one is: than the other of a pair, or the best of a menu than its worst.

    >>> Graded(Answer.FIRST, "a lot").swapped
    Graded(answer=<Answer.SECOND: 'second'>, strength='a lot')
    """

    answer: Answer | Choice
    strength: Strength

    def __post_init__(self) -> None:
        if self.strength not in STRENGTHS:
            words = " or ".join(map(repr, STRENGTHS))
            raise ArgumentError(f"{self.strength!r:.40} is not a strength; it must be {words}, or left out")
        if not has_ends(self.answer):
            raise ArgumentError(
                f"only where one alternative is preferred to another one can it be better by {self.strength!r}; leave the "
                "strength out where both are about equal, and where only the best of several was named"
            )

    @property
    def sign(self) -> int:
        """1 for the first, -1 for the second of a pair."""
        return cast(Answer, self.answer).sign

    @property
    def swapped(self) -> Graded:
        """The same preference when the two alternatives of a pair change places."""
        return Graded(cast(Answer, self.answer).swapped, self.strength)


AnyAnswer: TypeAlias = Answer | Choice | Graded


def has_ends(answer: Answer | Choice) -> bool:
    """Return whether an answer prefers one alternative to another one, so that a strength can be said."""
    if isinstance(answer, Choice):
        return answer.best is not None and answer.worst is not None
    return answer is not Answer.SAME


@overload
def plain(reply: None) -> None: ...
@overload
def plain(reply: AnyAnswer) -> Answer | Choice: ...
@overload
def plain(reply: AnyAnswer | None) -> Answer | Choice | None: ...
def plain(reply: AnyAnswer | None) -> Answer | Choice | None:
    """Return a reply without its strength."""
    return reply.answer if isinstance(reply, Graded) else reply


def strength_of(reply: AnyAnswer | None) -> Strength | None:
    """Return the strength of a reply; None where none was said."""
    return reply.strength if isinstance(reply, Graded) else None


def graded(reply: Answer | Choice, strength: Strength | None) -> AnyAnswer:
    """Return a reply with a strength, if there is one."""
    return reply if strength is None else Graded(reply, strength)


def strengths(answer: AnyAnswer, count: int) -> NDArray[np.int64]:
    """Return for each of the ``count`` comparisons of an answer by how much one is said to be better.

    Of a choice, that is known of the best and the worst, whose comparison comes first.

    >>> strengths(Graded(Choice.of_best_and_worst(1, 0, 3), "a lot"), 3).tolist(), strengths(Answer.FIRST, 1).tolist()
    ([2, 0, 0], [0])
    """
    found = np.full(count, UNSAID, dtype=np.int64)
    if isinstance(answer, Graded):
        found[0] = A_LOT if answer.strength == "a lot" else A_LITTLE
    return found


@dataclass(frozen=True, eq=False)
class Menu:
    """Three or more alternatives, and what is asked about them: which is best, or which is best and which worst."""

    alternatives: tuple[Alternative, ...]
    asks: Asks

    def __post_init__(self) -> None:
        if len(self.alternatives) < 3 or self.asks not in ASKS:
            raise ArgumentError(
                f"a menu has at least 3 alternatives and asks one of {', '.join(ASKS)}; found {len(self.alternatives)} "
                f"and {self.asks!r:.40}"
            )

    @cached_property
    def values(self) -> Matrix:
        """The gains of the alternatives, [n, k]."""
        return np.array([one.value for one in self.alternatives])

    @property
    def key(self) -> bytes:
        """What identifies this menu: the values bit for bit, and what is asked."""
        return self.asks.encode() + self.values.tobytes()

    def turned(self, places: int) -> Menu:
        """Return this menu with every alternative moved on by so many places; the last ones come first."""
        by = -places % len(self.alternatives)
        return Menu(self.alternatives[by:] + self.alternatives[:by], self.asks)


AnyQuestion: TypeAlias = Question | Menu


@dataclass(frozen=True, eq=False)
class Statement:
    """Something that a person said without being asked, as comparisons; its reply is ``Answer.FIRST``: it holds."""

    text: str
    differences: Matrix  # of gains, [q, k]
    outcomes: NDArray[np.int64]  # how each comparison came out

    def __post_init__(self) -> None:
        object.__setattr__(self, "differences", frozen_array(self.differences))

    @property
    def key(self) -> bytes:
        """What identifies this statement."""
        return b"statement" + self.differences.tobytes() + self.outcomes.tobytes()


# What an answer can belong to: a question, or nothing that was asked.
Occasion: TypeAlias = Question | Menu | Statement


def shapes(count: int, asks: Asks) -> list[Choice]:
    """Return every reply to a menu of so many alternatives, "about equal" last.

    >>> [len(shapes(*kind)) for kind in [(2, "best"), (3, "best"), (3, "best-worst"), (4, "best-worst")]]
    [3, 4, 7, 13]
    """
    return [*_named(count, asks), Choice.about_equal(count)]


def check_choice(given: object, count: int, asks: Asks) -> Choice:
    """Return what was given if it is a reply to such a menu; raise an ArgumentError otherwise."""
    if isinstance(given, str) and given == Answer.SAME.value:
        return Choice.about_equal(count)
    if isinstance(given, Choice) and given in shapes(count, asks):
        return given
    example = {
        "best": f"Choice.of_best(0, {count})",
        "best-worst": f"Choice.of_best_and_worst(0, 2, {count})",
    }[asks]
    raise ArgumentError(
        f"{given!r:.120} does not answer a menu of {count} that asks {asks!r}; answer with, for example, {example}, or with "
        f"Choice.about_equal({count})"
    )


def _named(count: int, asks: Asks) -> Iterator[Choice]:
    match asks:
        case "best":
            yield from (Choice.of_best(i, count) for i in range(count))
        case "best-worst":
            yield from (Choice.of_best_and_worst(i, j, count) for i, j in permutations(range(count), 2))


class Comparison(NamedTuple):
    """What a reply says of two alternatives, by their numbers; ``outcome`` is one of the four constants above."""

    first: int
    second: int
    outcome: int


def implied(reply: Choice | Graded) -> list[Comparison]:
    """Return what a choice says, as comparisons; those that are strict come first. A strength says nothing here.

    >>> [tuple(one) for one in implied(Choice.of_best_and_worst(1, 0, 3))]
    [(1, 0, 1), (1, 2, 2), (2, 0, 2)]
    """
    choice = cast(Choice, plain(reply))
    tiers = choice.tiers
    if choice.equal:
        return [Comparison(i, j, SAME) for i, j in combinations(tiers[0], 2)]
    found = [
        Comparison(i, j, NOT_WORSE)
        for above, below in combinations(range(len(tiers)), 2)
        for i in tiers[above]
        for j in tiers[below]
    ]
    if choice.best is not None and choice.worst is not None:  # they are told apart, or all would be about equal
        ends = (choice.best, choice.worst)
        found = [Comparison(*ends, PREFERRED), *(one for one in found if (one.first, one.second) != ends)]
    return found


def comparisons(question: Occasion, answer: AnyAnswer) -> tuple[Matrix, NDArray[np.int64]]:
    """Return what an answer says: differences of gains [q, k], and how each comparison came out [q]."""
    if isinstance(question, Statement):
        sharp = question.outcomes == WORTH_MORE
        differences = np.where(sharp[:, None], SHARPENED * question.differences, question.differences)
        return differences, np.where(sharp, PREFERRED, question.outcomes)
    if isinstance(question, Question):
        return question.difference[None, :], np.array([cast(Answer, plain(answer)).sign], dtype=np.int64)
    found = implied(cast(Choice, answer))
    values = question.values
    first, second, outcome = (np.array(column, dtype=np.int64) for column in zip(*found, strict=True))
    return values[first] - values[second], outcome


def share_of_each(question: Occasion, count: int) -> float:
    """Return how much each of an answer's ``count`` comparisons counts: n alternatives have only n - 1 independent differences.

    With noise in what each alternative seems worth, a menu's comparisons all go wrong together. Counted as independent, they
    would make a belief too sure. A statement may stand for an answer to a menu elsewhere: its independent differences are
    those from which the others follow.
    """
    felt = len(question.alternatives) - 1 if isinstance(question, Menu) else count
    if isinstance(question, Statement) and count > 1:
        felt = int(np.linalg.matrix_rank(question.differences))
    return min(1.0, felt / max(1, count))


def members(question: Occasion) -> frozenset[bytes]:
    """Return what identifies the alternatives of a question, in whatever order."""
    if isinstance(question, Statement):
        return frozenset((question.key,))
    if isinstance(question, Question):
        return question.pair
    return frozenset(one.value.tobytes() for one in question.alternatives)


def possible(worth: Vector, precision: float, asks: Asks) -> list[Choice]:
    """Return everything that a person may reply to alternatives of this worth, "about equal" or some choices.

    >>> possible(np.array([1.0, 0.99, 0.2]), 0.05, "best-worst")
    [Choice(tiers=((0,), (1,), (2,))), Choice(tiers=((1,), (0,), (2,)))]
    """
    count = len(worth)
    if np.ptp(worth) <= precision:
        return [Choice.about_equal(count)]
    return [choice for choice in _named(count, asks) if _fits(choice, worth, precision)]


def first_possible(worth: Matrix, precision: float, asks: Asks) -> NDArray[np.int64]:
    """Return the first that is ``possible`` for each row of worths, as its place in ``shapes``.

    >>> first_possible(np.array([[1.0, 0.99, 0.2], [0.2, 1.0, 0.5], [0.5, 0.5, 0.5]]), 0.05, "best").tolist()
    [0, 1, 3]
    """
    every = shapes(worth.shape[1], asks)
    found = np.full(len(worth), len(every) - 1)
    told_apart = np.ptp(worth, axis=1) > precision
    for place, choice in reversed(list(enumerate(every[:-1]))):
        found[told_apart & _fits(choice, worth, precision)] = place
    return found


def _fits(choice: Choice, worth: NDArray[np.float64], precision: float) -> NDArray[np.bool_]:
    """Return whether a choice may be made by whoever finds alternatives worth this, [..., n]."""
    tiers = [worth[..., list(tier)] for tier in choice.tiers]
    fits: NDArray[np.bool_] = tiers[0].max(axis=-1) - tiers[-1].min(axis=-1) > precision
    for one, other in combinations(tiers, 2):
        fits = fits & (one.min(axis=-1) >= other.max(axis=-1) - precision)
    return fits
