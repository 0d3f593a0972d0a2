"""The protocols of problems: what strategies need (the best plan for any weights), and what an app needs in addition."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.model import (
    NOTHING,
    Details,
    Lottery,
    Matrix,
    Mixture,
    Objective,
    Option,
    Plan,
    Question,
    Reference,
    Vector,
)
from tradeoff.wording import Wording

# Two expected values that differ by less than this share of their size count as equal: the difference is rounding.
SAME = 1e-12
# Every bound is exact to about this much, because of rounding; a smaller slack is reported as 0.
ROUNDING = 1e-9
# An objective with a smaller range counts as constant, since its range cannot be divided by.
SMALLEST_RANGE = 1e-300


class Problem(Protocol):
    """A decision problem as strategies see it; ``best`` is all they need to compute with it.

    ``outcome in the person's units = origin + scale * value``, with ``scale < 0`` for objectives to be minimised.
    ``best`` may be called from several threads at once.
    """

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """The k objectives, in the order of every value vector."""

    @property
    def origin(self) -> Vector:
        """The reference's outcome, in the person's units."""

    @property
    def scale(self) -> Vector:
        """One unit of gain in the person's units, per objective."""

    @property
    def nothing(self) -> Option | None:
        """The reference as an option worth exactly zero: the paper's pi_0."""

    @property
    def fingerprint(self) -> str:
        """A string that identifies this problem, and is written to logs."""

    @property
    def slack(self) -> float:
        """How far ``best`` may be from the optimum, in gains: ``w @ best(w) >= optimum - slack * sum(abs(w))``.

        It is 0 if the optimum is exact. Read it with ``slack_of``, which treats a problem without the attribute as exact.
        """
        return 0.0

    def best(self, weights: ArrayLike) -> list[Option]:
        """Return one optimal, never dominated option per row of weights."""


class Items(Protocol):
    """Named items, of which one is chosen."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the items."""

    @property
    def gains(self) -> Matrix:
        """The gains of the items [n, k]."""

    @property
    def values(self) -> Matrix:
        """The amounts of the items [n, k], in the person's units."""

    @property
    def beaten(self) -> Mapping[str, Sequence[float]]:
        """The amounts of the items that were left out because others beat them, by name."""

    def option(self, item: int | str) -> Option:
        """Return an item, given by number or name."""

    def left_out(self, name: str) -> Option:
        """Return one of the items that others beat."""


class Presentable(Problem, Protocol):
    """A problem that an app can present: names, texts, sizes, and plans in readable form.

    Derive from ``ScaledProblem``, which implements everything but ``gain_scale``, ``fingerprint``, ``best`` and ``show``.
    """

    name: str
    title: str
    about: str
    noun: str  # what one option is called, such as "flat"; "" where nobody said

    @property
    def kind(self) -> str:
        """The kind of problem, as written in files and JSON: "catalogue", "points", "mdp" or another word."""

    @property
    def extent(self) -> Mapping[str, int]:
        """The size of the problem, by name, such as ``{"items": 300}``."""

    @property
    def notes(self) -> Sequence[str]:
        """What was estimated, left out or assumed when the problem was created, one sentence each."""

    @property
    def irrelevant(self) -> tuple[Objective, ...]:
        """The objectives whose outcome is the same for every plan."""

    @property
    def matters(self) -> Sequence[bool]:
        """Whether the choice of plan changes each objective."""

    @property
    def ideal(self) -> Vector:
        """The best attainable expected value of each objective, in the person's units."""

    @property
    def nadir(self) -> Vector:
        """The worst attainable expected value of each objective, in the person's units."""

    @property
    def reference_name(self) -> str:
        """The name of the reference."""

    @property
    def original(self) -> Presentable:
        """The problem in the objectives that people read: this one, or where these are pieces of curves, that without."""

    @property
    def items(self) -> Items | None:
        """The named items that can be chosen; None for plans and solutions."""

    @property
    def has_paths(self) -> bool:
        """Whether a plan unfolds over time; ``show`` then has the argument ``method``."""

    @property
    def storable(self) -> bool:
        """Whether the problem can be written to a file."""

    @property
    def places(self) -> Mapping[str, tuple[float, float]]:
        """The map coordinates of states, by name; empty without a map."""

    @property
    def roads(self) -> Sequence[tuple[str, str]]:
        """Pairs of places that the map joins, the start and end of all routes first; empty if the model itself tells."""

    @property
    def pictures(self) -> Mapping[str, bytes]:
        """PNG pictures of states, by name; empty without pictures."""

    @property
    def wording(self) -> Wording:
        """How states are described."""

    def outcome(self, value: ArrayLike) -> Vector:
        """Return a value vector (gains) in the person's units."""

    def as_read(self, option: Option) -> Option:
        """Return an option as one of ``original``."""

    def show(self, option: Option) -> Lottery:
        """Return an option as at most k+1 weighted trajectories whose mean is exactly its value."""

    def details(self, plan: Plan) -> Details:
        """Return details of a plan that its lottery does not show."""

    def labels_of(self, name: str) -> Mapping[str, str]:
        """Return the texts to show beside the item of this name."""

    def worse_than(self, option: Option) -> Option | None:
        """Return a real option that this one clearly beats in every objective, or None if none is known."""


class GainScale:
    """Converts outcomes in the person's units to gains over a reference, and back; no other class does.

    Gains are ``(outcome - origin) / scale``: larger is better, never negative, and at most 1 for attainable outcomes, so
    that objectives measured in minutes and in euros can be compared. An objective that is the same for every plan has a
    scale of one unit.
    """

    def __init__(
        self,
        objectives: Sequence[Objective],
        lowest: Vector,
        highest: Vector,
        reference: Reference,
        noise: ArrayLike = 0.0,
    ) -> None:
        """``lowest`` and ``highest`` attainable expectation per objective; ``noise``: how much rounding may change them."""
        self.objectives = tuple(objectives)
        self.reference = reference
        sign = np.array([o.sign for o in objectives])
        with np.errstate(over="ignore", invalid="ignore"):
            broken = np.flatnonzero(~np.isfinite(highest - lowest))
        if len(broken):
            raise ProblemError(
                f"the amounts of {objectives[broken[0]].name!r} are too large to add up; use a larger unit"
            )
        worst, best = np.where(sign > 0, lowest, highest), np.where(sign > 0, highest, lowest)
        noise = np.broadcast_to(np.maximum(noise, SMALLEST_RANGE), worst.shape)
        self.matters = np.abs(best - worst) > np.maximum(SAME * np.maximum(np.abs(best), np.abs(worst)), noise)
        self.ideal, self.nadir = best, worst
        # A value within rounding of zero becomes exactly zero, and never -0.0, which people would read as an amount.
        self.origin: Vector = np.where(np.abs(worst) <= noise, 0.0, worst + 0.0)
        if reference.outcome is not None:
            self.origin = self._given_reference(reference.outcome, worst, sign, noise)
        span = (best - self.origin) * sign
        self.scale: Vector = np.where(self.matters, span, 1.0) * sign
        for array in (self.matters, self.origin, self.scale, self.ideal, self.nadir):
            array.flags.writeable = False

    def _given_reference(self, outcome: Mapping[str, float], worst: Vector, sign: Vector, noise: Vector) -> Vector:
        """Return the given reference, after checking that it is no better than anything attainable."""
        origin = np.array([outcome[o.name] for o in self.objectives])
        for j, objective in enumerate(self.objectives):
            slack = max(SAME * max(1.0, abs(worst[j])), noise[j])
            if not np.isfinite(origin[j]) or (origin[j] - worst[j]) * sign[j] > slack:
                raise ProblemError(
                    f"the reference {self.reference.name!r} has {objective.name} = {objective.text(origin[j])}, but "
                    f"the worst that can happen is {objective.text(worst[j])}; a reference must not be better than "
                    "that: lower it, or leave out the outcome to use the worst"
                )
            if not self.matters[j]:
                origin[j] = worst[j]
        return origin

    def gains(self, outcomes: Matrix) -> Matrix:
        """Return the gains of outcomes given in the person's units (rows or one row)."""
        values = (outcomes - self.origin) / self.scale
        # Nothing attainable is below the reference, so a negative value is rounding.
        return np.where(self.matters, np.maximum(values, 0.0), 0.0)

    def outcomes(self, gains: Matrix) -> Matrix:
        """Return the outcomes, in the person's units, for gains (rows or one row)."""
        result: Matrix = self.origin + self.scale * gains
        return result

    def raw_weights(self, weights: Matrix) -> Matrix:
        """Return weights on outcomes that order plans in the same way as these weights on gains."""
        result: Matrix = np.where(self.matters, weights / self.scale, 0.0)
        return result


class ScaledProblem(ABC):
    """A base class for problems: the parts of ``Presentable`` that follow from a scale of gains.

    A subclass sets ``objectives``, ``name``, ``title`` and ``about`` and implements ``gain_scale``, ``fingerprint``,
    ``best`` and ``show``.
    """

    objectives: tuple[Objective, ...]
    name: str = "problem"
    title: str = ""
    about: str = ""
    noun: str = ""
    notes: Sequence[str] = ()
    kind: str = "other"
    has_paths: bool = False
    storable: bool = False
    slack: float = 0.0
    places: Mapping[str, tuple[float, float]] = {}
    roads: Sequence[tuple[str, str]] = ()
    pictures: Mapping[str, bytes] = {}
    wording: Wording = Wording()
    limiter: str = ""  # the function that puts limits on the problem
    threads: int = 1  # how many threads one call may use; only MDPs use more than one
    why_not_storable: str = "it exists only in the program that made it"

    @property
    @abstractmethod
    def gain_scale(self) -> GainScale:
        """The reference and the scale of each gain, computed on first use."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A string that identifies this problem; see ``fingerprint_of``."""

    @abstractmethod
    def best(self, weights: ArrayLike) -> list[Option]:
        """Return one optimal, never dominated option per row of weights."""

    @abstractmethod
    def show(self, option: Option) -> Lottery:
        """Return an option as at most k+1 weighted trajectories whose mean is exactly its value."""

    @property
    def origin(self) -> Vector:
        """The reference's outcome, in the person's units."""
        return self.gain_scale.origin

    @property
    def scale(self) -> Vector:
        """One unit of gain in the person's units, per objective; negative for objectives to be minimised."""
        return self.gain_scale.scale

    @property
    def ideal(self) -> Vector:
        """The best attainable expected value of each objective, in the person's units."""
        return self.gain_scale.ideal

    @property
    def nadir(self) -> Vector:
        """The worst attainable expected value of each objective, in the person's units."""
        return self.gain_scale.nadir

    @property
    def matters(self) -> Sequence[bool]:
        """Whether the choice of plan changes each objective."""
        return tuple(self.gain_scale.matters.tolist())

    @property
    def irrelevant(self) -> tuple[Objective, ...]:
        """The objectives whose outcome is the same for every plan, so that their weights cannot matter."""
        return tuple(o for o, matters in zip(self.objectives, self.matters, strict=True) if not matters)

    @property
    def original(self) -> ScaledProblem:
        """The problem in the objectives that people read."""
        return self

    def as_read(self, option: Option) -> Option:
        """Return an option as one of ``original``."""
        return option

    @property
    def items(self) -> Items | None:
        """The named items that can be chosen; None for plans and solutions."""
        return None

    @property
    def reference_name(self) -> str:
        """The name of the reference."""
        return self.gain_scale.reference.name

    @property
    def nothing(self) -> Option:
        """The reference as an option worth exactly zero gain: the paper's pi_0."""
        return Option(np.zeros(len(self.objectives)), NOTHING)

    @property
    def extent(self) -> Mapping[str, int]:
        """The size of the problem, by name."""
        return {}

    def outcome(self, value: ArrayLike) -> Vector:
        """Return a value vector (gains) in the person's units."""
        return self.gain_scale.outcomes(np.asarray(value, dtype=float))

    def details(self, plan: Plan) -> Details:
        """Return details of a plan that its lottery does not show."""
        return Details()

    def limited(self, *limits: str) -> ScaledProblem:
        """Return the problem in which only what keeps these limits can be chosen: ``limited("price <= 500")``."""
        if not self.limiter:
            raise ArgumentError(f"limits cannot be put on {self.name!r}; build them into the optimiser or the model")
        module, _, function = self.limiter.rpartition(".")
        made: ScaledProblem = getattr(import_module(module), function)(self, limits)
        return made

    def labels_of(self, name: str) -> Mapping[str, str]:
        """Return the texts to show beside the item of this name."""
        return {}

    def worse_than(self, option: Option) -> Option | None:
        """Return a real option that this one clearly beats in every objective, or None if none is known."""
        return None


def slack_of(problem: object) -> float:
    """Return the slack of a problem; 0 if it does not state one.

    >>> slack_of(object())
    0.0
    """
    return float(getattr(problem, "slack", 0.0))


def items_of(problem: Problem) -> Items | None:
    """Return the named items that can be chosen; None if what is chosen are plans, or a problem does not say."""
    found: Items | None = getattr(problem, "items", None)
    return found


def pieces_of(problem: Problem) -> Matrix:
    """Return a matrix [k, m] with 1 where an objective is a piece of one of the m objectives that people read.

    It is the identity unless a problem has ``pieces``, as one with curves does.
    """
    pieces: Matrix | None = getattr(problem, "pieces", None)
    return np.eye(len(problem.objectives)) if pieces is None else pieces


def gains_at(problem: Problem, amounts: Vector) -> Vector:
    """Return the gains of amounts that people read, in their units; they may be below 0.

    A problem with curves has ``cut``, which returns the amounts of its pieces.
    """
    cut = getattr(problem, "cut", None)
    result: Vector = ((amounts if cut is None else cut(amounts)) - problem.origin) / problem.scale
    return result


def question_about(problem: Problem, options: Sequence[object]) -> Question:
    """Return a question about options of a problem, which asks for the best one.

    Each option is an ``Option``, the name of an item, or an outcome in the respondent's units: a number per objective, or
    amounts by name. Objectives that no option names count as the same for all of them.
    """
    if isinstance(options, str) or len(options) < 2:
        raise ArgumentError(f"a question is about two or more options; {options!r:.80} was given")
    mappings = [option for option in options if isinstance(option, Mapping)]
    names = {frozenset(option) for option in mappings}
    if len(names) > 1:
        raise ArgumentError(
            "give amounts of the same objectives for each option; those left out count as the same for all"
        )
    return Question(tuple(_option_from(problem, option) for option in options))


def _option_from(problem: Problem, option: object) -> Option:
    if isinstance(option, Option):
        return option
    if isinstance(option, str):
        items = items_of(problem)
        if items is None:
            raise ArgumentError(f"{option!r:.60} cannot be found: the options of this problem have no names")
        return items.left_out(option) if option in items.beaten else items.option(option)
    original = getattr(problem, "original", problem)
    names = [o.name for o in original.objectives]
    if isinstance(option, Mapping):
        unknown = [name for name in option if name not in names]
        if unknown:
            raise ArgumentError(f"there is no objective {unknown[0]!r:.60}; there are {', '.join(map(repr, names))}")
        given: object = [option.get(name, origin) for name, origin in zip(names, original.origin, strict=True)]
    else:
        given = option
    try:
        amounts = np.array(given, dtype=float)
    except (TypeError, ValueError, OverflowError):
        amounts = np.zeros(0)
    if amounts.shape != (len(names),) or not np.isfinite(amounts).all():
        raise ArgumentError(f"an outcome is {len(names)} numbers ({', '.join(names)}); {option!r:.80} was given")
    return Option(gains_at(problem, amounts))


def with_items(problem: Problem, question: Question) -> Question:
    """Return a question whose options are only known by their gains, with the items of the problem that they are."""
    items = items_of(problem)
    if items is None:
        return question
    options = []
    for option in question.options:
        near = np.flatnonzero(np.abs(items.gains - option.value).max(axis=1) <= ROUNDING)
        options.append(items.option(int(near[0])) if len(near) else option)
    return Question(tuple(options), question.asks)


def with_share(weights: Vector, members: Vector, shares: Vector) -> Matrix:
    """Return the weights with other shares for some objectives together, one row each; all others keep their proportions.

    ``members`` is 1 for these objectives, which keep their proportions too, and 0 for the others.

    >>> with_share(np.array([0.2, 0.2, 0.6]), np.array([1.0, 0.0, 0.0]), np.array([0.2, 0.6])).round(2).tolist()
    [[0.2, 0.2, 0.6], [0.6, 0.1, 0.3]]
    """
    inside, outside = weights * members, weights * (1 - members)
    inside = members / members.sum() if inside.sum() <= 0 else inside / inside.sum()
    outside = outside if outside.sum() <= 0 else outside / outside.sum()
    result: Matrix = np.outer(shares, inside) + np.outer(1 - shares, outside)
    return result


def fingerprint_of(*parts: object) -> str:
    """Return a short string that identifies these parts (arrays, strings, numbers, objectives) bit for bit.

    Logs on disk contain it, so the way each part is hashed must never change.
    """
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(f"{part.dtype.str}{part.shape}".encode())
            digest.update(np.ascontiguousarray(part).data)
        else:
            digest.update(_written(part).encode())
        digest.update(b"|")
    return digest.hexdigest()[:32]


def _written(part: object) -> str:
    """Return a part as a string: the identifying fields of an objective, or the literal of a plain value."""
    match part:
        case Objective():
            return f"Objective(name={part.name!r}, unit={part.unit!r}, goal={part.goal!r})"
        case tuple():
            return f"({', '.join(map(_written, part))}{',' if len(part) == 1 else ''})"
        case list():
            return f"[{', '.join(map(_written, part))}]"
        case None | bool() | int() | float() | str():
            return repr(part)
        case _:
            raise TypeError(f"a fingerprint is made of arrays, texts and numbers, not of {type(part).__name__}")


def weight_rows(weights: ArrayLike, objectives: Sequence[Objective]) -> Matrix:
    """Return the weights as rows [B, k], after checking their shape and that they are finite."""
    try:
        rows = np.asarray(weights, dtype=float)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"the weights are not numbers: {error}") from None
    if rows.ndim != 2 or rows.shape[1] != len(objectives):
        raise ArgumentError(
            f"weights are rows of {len(objectives)} numbers, one per objective "
            f"({', '.join(o.name for o in objectives)}), but an array of shape {rows.shape} was given; "
            "a single weight vector w is the one row [w]"
        )
    if not np.isfinite(np.abs(rows).max(initial=0.0)):
        row, column = np.argwhere(~np.isfinite(rows))[0]
        raise ArgumentError(
            f"the weight of {objectives[column].name} in row {row} is {rows[row, column]}; weights must be finite"
        )
    return np.ascontiguousarray(rows)


def unit_rows(rows: Matrix) -> Matrix:
    """Return rows of weights, each scaled by a power of two to a size near 1: the optimum is the same, and no sum overflows.

    >>> unit_rows(np.array([[1e308, 1e308], [3e-310, 0.0], [0.0, 0.0]])).round(3).tolist()
    [[0.556, 0.556], [0.863, 0.0], [0.0, 0.0]]
    """
    sizes = np.abs(rows).max(axis=1, initial=0.0)
    if sizes.min(initial=1.0) > 1e-100 and sizes.max(initial=1.0) < 1e100:
        return rows  # scaling by a power of two would not change any digit
    exponents = np.frexp(sizes)[1]
    result: Matrix = np.ldexp(rows, -exponents[:, None])
    return result


def dilute(option: Option, share: float) -> Option:
    """Return the mixture of a plan, with probability ``share``, and the reference.

    Its value is ``share`` times the option's, because the reference is worth exactly zero.
    """
    if not 0 <= share <= 1:
        raise ArgumentError(f"the share of a dilution is a probability, but {share} was given")
    plan: Plan = Mixture((float(share), 1.0 - float(share)), (option.plan, NOTHING))
    return Option(share * option.value, plan)


def objectives_from(objectives: Sequence[Objective | str] | None, count: int) -> tuple[Objective, ...]:
    """Return the objectives, after checking that there are ``count`` with distinct names; by default they are numbered."""
    if objectives is None:
        return tuple(Objective(f"objective {j + 1}") for j in range(count))
    found = tuple(o if isinstance(o, Objective) else Objective(o) for o in objectives)
    if len(found) != count:
        raise ProblemError(f"{len(found)} objectives are named, but the values have {count} columns; name each column")
    check_distinct("objective", [o.name for o in found])
    return found


def check_distinct(what: str, names: Sequence[str]) -> None:
    """Raise a ProblemError about the first name that is empty, begins or ends with a space, or is used twice."""
    seen: dict[str, int] = {}
    for position, name in enumerate(names):
        if name != name.strip() or not name:
            raise ProblemError(
                f"the {what} name {name!r}, at position {position + 1}, is empty or has spaces at its ends"
            )
        if name in seen:
            raise ProblemError(
                f"the {what} name {name!r} is used twice, at positions {seen[name] + 1} and {position + 1}; "
                f"give each {what} its own name"
            )
        seen[name] = position
