"""The immutable values that the packages exchange: objectives, options, plans, questions and replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from functools import cached_property
from itertools import permutations
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.objective import Objective as Objective

Vector: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.integer]


def frozen_array(values: ArrayLike) -> NDArray[np.float64]:
    """Return a read-only copy of the values as an array of floats."""
    array = np.array(values, dtype=np.float64, order="C")
    array.flags.writeable = False
    return array


@dataclass(frozen=True)
class Reference:
    """The outcome that gains are measured from, with a name that people understand.

    ``outcome`` gives an amount per objective in the person's units; without it the reference is the worst attainable
    expected value of each objective on its own. It may be hypothetical: no plan need lead there.
    """

    name: str = "the worst of everything"
    outcome: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        if self.outcome is not None:
            try:
                amounts = {str(name): float(amount) for name, amount in dict(self.outcome).items()}
            except (TypeError, ValueError, OverflowError):
                raise ProblemError(
                    f"the outcome of the reference {self.name!r} must give a number for each objective; "
                    f"it is {self.outcome!r:.120}"
                ) from None
            object.__setattr__(self, "outcome", amounts)

    def check(self, objectives: Sequence[Objective]) -> None:
        """Raise a ProblemError unless the outcome, if there is one, is about exactly these objectives."""
        names = [o.name for o in objectives]
        if self.outcome is not None and sorted(self.outcome) != sorted(names):
            raise ProblemError(
                f"the reference {self.name!r} must give one amount for each of the objectives {names}; "
                f"it gives {dict(self.outcome)!r:.120}"
            )


class Nothing(Enum):
    """The plan of the reference itself: the paper's "do nothing" policy, worth exactly zero gain. Or no known plan at all."""

    NOTHING = "nothing"
    UNKNOWN = "unknown"  # of an option from elsewhere, of which only the gains are known

    def __repr__(self) -> str:
        return self.name


NOTHING, UNKNOWN = Nothing.NOTHING, Nothing.UNKNOWN


@dataclass(frozen=True)
class Item:
    """The plan "take this item of the catalogue"."""

    index: int
    name: str


@dataclass(frozen=True, eq=False)
class OptimalPolicy:
    """The policy that is optimal for these weights on the gains; the MDP solves for it again when needed.

    Storing k numbers instead of a table of H x S actions makes it possible to keep thousands of options.
    """

    weights: Vector

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", frozen_array(self.weights))
        object.__setattr__(self, "_content", self.weights.tobytes())  # plans are looked up often

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OptimalPolicy) and vars(self)["_content"] == vars(other)["_content"]

    def __hash__(self) -> int:
        return hash(vars(self)["_content"])


@dataclass(frozen=True, eq=False)
class Policy:
    """What to do in each state at each step: ``actions[step, state]``, -1 where the state is an end."""

    actions: Indices

    def __post_init__(self) -> None:
        actions = np.array(self.actions)
        if actions.ndim != 2 or not np.issubdtype(actions.dtype, np.integer):
            raise ArgumentError(
                f"a policy is an integer array [steps, states] of action numbers, but an array of shape "
                f"{actions.shape} and type {actions.dtype} was given"
            )
        actions.flags.writeable = False
        object.__setattr__(self, "actions", actions)


@dataclass(frozen=True, eq=False)
class StochasticPolicy:
    """How likely each action is in each state at each step: ``probabilities[step, state, action]``."""

    probabilities: NDArray[np.float64]

    def __post_init__(self) -> None:
        probabilities = frozen_array(self.probabilities)
        if probabilities.ndim != 3:
            raise ArgumentError(
                "a stochastic policy is an array [steps, states, actions] of probabilities, "
                f"but an array of shape {probabilities.shape} was given"
            )
        object.__setattr__(self, "probabilities", probabilities)


@dataclass(frozen=True)
class Mixture:
    """Draw one of several plans once, at the start, and keep to it (the paper's alpha*pi + (1-alpha)*pi_0)."""

    probabilities: tuple[float, ...]
    plans: tuple[Plan, ...]

    def __post_init__(self) -> None:
        if not self.plans or len(self.probabilities) != len(self.plans):
            raise ArgumentError(
                f"a mixture needs as many probabilities as plans and at least one; "
                f"{len(self.probabilities)} probabilities and {len(self.plans)} plans were given"
            )
        # Plain Python, because a search creates thousands of mixtures and arrays of two numbers are slow.
        total = sum(self.probabilities)
        if not (min(self.probabilities) >= 0 and abs(total - 1) <= 1e-9):
            raise ArgumentError(
                f"the probabilities of a mixture must not be negative and must sum to 1, "
                f"but {self.probabilities} sum to {total:.9g}"
            )


Plan: TypeAlias = Item | OptimalPolicy | Policy | StochasticPolicy | Mixture | Nothing


@dataclass(frozen=True, eq=False)
class Option:
    """Something that can be chosen: its k gains over the reference, and the plan that leads to them."""

    value: Vector
    plan: Plan = UNKNOWN

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", frozen_array(self.value))

    @property
    def is_real(self) -> bool:
        """Whether it can be recommended; an option that comes only with some probability is only asked about."""
        return not (isinstance(self.plan, Mixture) and NOTHING in self.plan.plans)


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One way a plan can turn out: the states, the actions taken between them, and the outcome.

    ``probability`` is that of exactly this trajectory under the plan; ``outcome`` is in the person's units. A trajectory
    ends early if nothing more happens. An item of a catalogue is one state without actions.
    """

    states: tuple[str, ...]
    actions: tuple[str, ...]
    probability: float
    outcome: Vector
    through: tuple[str, ...] = ()  # all places passed, if the states are only some of them

    def __post_init__(self) -> None:
        object.__setattr__(self, "outcome", frozen_array(self.outcome))

    def same_as(self, other: Trajectory) -> bool:
        """Return whether both have the same states, actions and outcome."""
        return (
            self.states == other.states
            and self.actions == other.actions
            and bool((np.abs(self.outcome - other.outcome) <= 1e-12 * np.abs(other.outcome)).all())
        )


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The distribution of a plan's outcomes: ``points[m, k]`` in the person's units, and how likely each is."""

    points: Matrix
    probabilities: Vector
    rollouts: int | None = None  # the number it was estimated from; None if it is exact
    range: Matrix | None = None  # [2, k]: the least and the greatest possible; None if only rollouts were seen

    @cached_property
    def mean(self) -> Vector:
        """The mean of each objective."""
        result: Vector = self.probabilities @ self.points
        return result

    @cached_property
    def spread(self) -> Vector:
        """The standard deviation of each objective; exactly 0 if only rounding varies."""
        deviation: Vector = np.sqrt(self.probabilities @ np.square(self.points - self.mean))
        return np.where(deviation > 1e-12 * np.abs(self.points).max(axis=0), deviation, 0.0)

    def quantiles(self, objective: int, shares: ArrayLike) -> Vector:
        """Return, for each share, the smallest outcome that is not exceeded with at least this probability.

        >>> Outcomes(np.arange(1.0, 7.0)[:, None], np.full(6, 1 / 6)).quantiles(0, [0.5, 0.95]).tolist()
        [3.0, 6.0]
        """
        order = np.argsort(self.points[:, objective], kind="stable")
        reached = np.cumsum(self.probabilities[order])
        at = np.searchsorted(reached, np.asarray(shares, dtype=float) - 1e-12)
        result: Vector = self.points[order[np.minimum(at, len(order) - 1)], objective]
        return result

    @property
    def error(self) -> float:
        """The largest half-width of a 95% interval around an estimated chance; 0 if the distribution is exact."""
        return 0.0 if self.rollouts is None else 0.98 / self.rollouts**0.5


@dataclass(frozen=True, eq=False)
class Lottery:
    """A plan in readable form: at most k + 1 trajectories, weighted to give exactly the plan's average outcome.

    The weights sum to 1. They are not the trajectories' own probabilities: a few trajectories represent all of them.
    ``truth`` is the true distribution of the plan's outcomes, if it was computed.
    """

    objectives: tuple[Objective, ...]
    weights: Vector
    trajectories: tuple[Trajectory, ...]
    truth: Outcomes | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", frozen_array(self.weights))
        if len(self.weights) != len(self.trajectories) or not len(self.weights):
            raise ArgumentError(
                f"a lottery needs one weight for each of its trajectories and at least one; "
                f"{len(self.weights)} weights and {len(self.trajectories)} trajectories were given"
            )
        if not np.all(self.weights > 0) or abs(self.weights.sum() - 1) > 1e-9:
            raise ArgumentError(
                f"the weights of a lottery must be positive and sum to 1, but {self.weights.tolist()} "
                f"sum to {self.weights.sum():.9g}"
            )

    @property
    def outcomes(self) -> Matrix:
        """The outcome of each trajectory, one row each, in the person's units."""
        return np.array([trajectory.outcome for trajectory in self.trajectories])

    @property
    def average(self) -> Vector:
        """The average outcome, in the person's units."""
        result: Vector = self.weights @ self.outcomes
        return result


class Situation(NamedTuple):
    """What a policy does in one state at one step (counted from 0), and how likely that situation is."""

    step: int
    state: str
    action: str
    probability: float
    free: bool = True  # whether other actions are available there


@dataclass(frozen=True)
class Details:
    """Details of a plan: an item has labels, a solution has lines of text, a policy has situations."""

    labels: Mapping[str, str] = field(default_factory=dict)  # texts to show beside an item
    lines: tuple[str, ...] = ()  # what to do
    situations: tuple[Situation, ...] = ()  # in order of time: all that a policy leads to, or the likeliest of many
    complete: bool = True  # whether these are all that can be reached


Asks: TypeAlias = Literal["best", "best-worst"]
ASKS: tuple[Asks, ...] = get_args(Asks)


@dataclass(frozen=True, eq=False)
class Question:
    """Two or more options, and what is asked about them: which is best, or which is best and which is worst.

    A pair is a question about two options; people see them as A and B.
    """

    options: tuple[Option, ...]
    asks: Asks = "best"

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", tuple(self.options))
        if len(self.options) < 2 or self.asks not in ASKS or (self.is_pair and self.asks != "best"):
            raise ArgumentError(
                "a question has at least 2 options and asks for the best one, or of 3 or more options for best-worst; "
                f"found {len(self.options)} options and {self.asks!r:.40}"
            )

    @property
    def is_pair(self) -> bool:
        """Whether two options are compared."""
        return len(self.options) == 2

    @cached_property
    def values(self) -> Matrix:
        """The gains of the options, [n, k]."""
        return np.array([option.value for option in self.options])

    @property
    def difference(self) -> Vector:
        """The gains of the first option of a pair over the second."""
        result: Vector = self.values[0] - self.values[1]
        return result

    @cached_property
    def key(self) -> bytes:
        """Identifies this question: the values of its options bit for bit, in their order, and what is asked."""
        return self.asks.encode() + self.values.tobytes()

    @cached_property
    def members(self) -> frozenset[bytes]:
        """Identifies the options in any order."""
        return frozenset(option.value.tobytes() for option in self.options)

    def rotated(self, places: int) -> Question:
        """Return the question with every option moved on by so many places; the last ones come first."""
        by = -places % len(self.options)
        return Question(self.options[by:] + self.options[:by], self.asks)

    @property
    def replies(self) -> list[Reply]:
        """Every reply that names options, then "about equal".

        >>> some = [Option([0.0], NOTHING)] * 4
        >>> len(Question(some[:2]).replies), len(Question(some, "best-worst").replies)
        (3, 13)
        """
        places = range(len(self.options))
        if self.asks == "best":
            return [*(Reply(best) for best in places), EQUAL]
        return [*(Reply(best, worst) for best, worst in permutations(places, 2)), EQUAL]


ReplyWord: TypeAlias = Literal["equal", "skip", "none"]
REPLY_WORDS: tuple[ReplyWord, ...] = get_args(ReplyWord)


@dataclass(frozen=True)
class Reply:
    """What a respondent says to a question: the best option, the best and the worst, or a word.

    ``best`` and ``worst`` are positions among the question's options, counted from 0. The words are "equal" (all are about
    equal), "skip" (no answer; something else is asked) and "none" (none of these will do).

    >>> Reply(1), Reply(best=1, worst=3), Reply(word="equal") == EQUAL
    (Reply(best=1), Reply(best=1, worst=3), True)
    """

    best: int | None = None
    worst: int | None = None
    word: ReplyWord | None = None

    def __post_init__(self) -> None:
        named = [place for place in (self.best, self.worst) if place is not None]
        whole = all(type(place) is int and place >= 0 for place in named)
        if self.word is not None:
            valid = not named and self.word in REPLY_WORDS
        else:
            valid = self.best is not None and whole and self.best != self.worst
        if not valid:
            raise ArgumentError(
                f"a reply names the best option, or two different ones as best and worst, or is one of "
                f"{', '.join(map(repr, REPLY_WORDS))}; found best={self.best!r:.40}, worst={self.worst!r:.40}, "
                f"word={self.word!r:.40}"
            )

    def __repr__(self) -> str:
        parts = ((name, getattr(self, name)) for name in ("best", "worst", "word"))
        return f"Reply({', '.join(f'{name}={value!r}' for name, value in parts if value is not None)})"

    def renumbered(self, numbers: Sequence[int]) -> Reply:
        """Return the reply with ``numbers[i]`` in place of position i."""
        if self.best is None:
            return self
        return Reply(numbers[self.best], None if self.worst is None else numbers[self.worst])


EQUAL, SKIP, NONE = (Reply(word=word) for word in REPLY_WORDS)
FIRST, SECOND = Reply(best=0), Reply(best=1)  # replies to a pair


class Reason(StrEnum):
    """Why the strategy stopped asking; ``presentation`` puts it into words. A custom strategy may give any other text.

    "Very likely" has the meaning of ``likely_worst``; "probably" is the view of the belief that chose the questions.
    """

    PROVED = "proved to be within the target"
    UNNOTICEABLE = "nothing could be better by as much as the person would notice"
    INEXACT = "no answer could prove more: the problem's own solutions are not more exact than this"
    CONTRADICTION = "the answers contradict each other; take one of them back to go on"
    VERY_LIKELY_WITHIN = "very likely within the target"
    VERY_LIKELY_UNNOTICED = "very likely nothing is better by more than the person would notice"
    VERY_LIKELY_EITHER = "very likely nothing is better by more than the target or by more than the person would notice"
    PROBABLY_WITHIN = "probably within the target"
    PROBABLY_UNNOTICED = "probably nothing is better by more than the person would notice"
    PROBABLY_EITHER = "probably nothing is better by more than the target or by more than the person would notice"
    NOTHING_TO_ASK = "there is nothing new left to ask"
    CONFIRMED = "the respondent preferred it to the option that the other answers favour"
    NOT_SURER = "not sure, but further questions would probably help little"
    NO_FIT = "no one set of weights explains the answers"
    TOO_MANY = "that many questions were not enough to be sure"
    EARLY = "stopped early"


class Certainty(StrEnum):
    """How certain a recommendation is, in three steps; ``CertaintyRule`` says when each holds."""

    SURE = "sure"
    FAIRLY_SURE = "fairly sure"
    NOT_SURE = "not sure"


@dataclass(frozen=True)
class CertaintyRule:
    """What "sure" and "fairly sure" mean: how likely a recommendation may lose more than a share of the best possible gain.

    The probabilities are those of the posterior, which allows for errors.
    """

    sure_loss: float = 0.02
    sure_probability: float = 0.05
    fairly_sure_loss: float = 0.05
    fairly_sure_probability: float = 0.2

    @property
    def losses(self) -> tuple[float, float]:
        """The losses whose probabilities decide."""
        return self.sure_loss, self.fairly_sure_loss

    def level(self, probabilities: tuple[float, float]) -> Certainty:
        """Return the level, given how likely each of ``losses`` is exceeded.

        >>> CertaintyRule().level((0.04, 0.0)), CertaintyRule().level((0.4, 0.1)), CertaintyRule().level((0.9, 0.5))
        (<Certainty.SURE: 'sure'>, <Certainty.FAIRLY_SURE: 'fairly sure'>, <Certainty.NOT_SURE: 'not sure'>)
        """
        if probabilities[0] <= self.sure_probability:
            return Certainty.SURE
        return Certainty.FAIRLY_SURE if probabilities[1] <= self.fairly_sure_probability else Certainty.NOT_SURE


CERTAINTY = CertaintyRule()


@dataclass(frozen=True, eq=False)
class Criterion:
    """How a strategy compares options: by their mean, or their largest, relative regret over some weights.

    It decides what is recommended, and it orders every ranking.
    """

    weights: Matrix  # [n, k]: posterior samples, or the extreme points of all weights that fit the answers
    best: Vector  # [n]: the gain of the best option for each
    worst_case: bool = False

    @cached_property
    def _scaled(self) -> Matrix:
        """The weights for which the best option is worth 1; 0 where no option gains anything, and none loses."""
        result: Matrix = np.divide(
            self.weights, self.best[:, None], out=np.zeros_like(self.weights), where=self.best[:, None] > 1e-12
        )
        return result

    @property
    def _attainable(self) -> Vector:
        """What the best option is worth to the scaled weights: 1, or 0 where no option gains anything."""
        return (self.best > 1e-12).astype(np.float64)

    @cached_property
    def mean_weights(self) -> Vector:
        """The weights w for which an option x loses ``1 - w @ x`` on average."""
        result: Vector = self._scaled.mean(axis=0)
        return result

    def losses(self, values: Matrix) -> Vector:
        """Return what each of some options loses, given their gains [m, k]: a share of the best possible gain."""
        if not self.worst_case:
            mean: Vector = np.maximum(self._attainable.mean() - values @ self.mean_weights, 0.0)
            return mean
        blocks = np.array_split(values, max(1, len(values) * len(self.weights) // 1_000_000))  # bounds the memory
        worst: Vector = np.concatenate([(self._attainable - block @ self._scaled.T).max(axis=1) for block in blocks])
        return np.maximum(worst, 0.0)


@dataclass(frozen=True, eq=False)
class Recommendation:
    """A recommendation, and how certain it is.

    Three levels of certainty are kept apart. ``likely_regret`` is the mean relative regret of a person with these answers.
    ``likely_worst`` is very likely not exceeded: at most 5% of the people with one linear preference, noise and slips
    allowed for, lose more. ``regret_bound`` is the certificate: the largest share of the best possible gain that may be lost,
    for any preference consistent with the answers (without the ``doubtful`` and ``unexplained`` ones). ``robust_bound`` is
    the same if one more of the answers is wrong. Each is None if a strategy does not provide it. All regrets are relative to
    gains over the reference.

    The respondent's own choices come first. ``model_choice`` is set where they preferred ``option`` to what the other
    answers favour, and confirmed it. ``contested_by`` is set where they chose another option over ``option`` and were
    not asked again.

    ``importance`` is what can be said of how much each objective matters, None where no priorities fit. If
    ``importance_if_right`` differs, it is very likely: it is wrong for at most 5% of the respondents with one linear
    preference, also if they err. Otherwise it holds if the answers are right. The pieces of a curve count together.
    """

    option: Option
    weights: Vector  # the estimated importance of each gain, summing to 1
    questions: int
    reason: str  # why the strategy stopped: a Reason, or a text of its own
    complete: bool = True  # whether the strategy asked everything it needed
    regret_bound: float | None = None
    robust_bound: float | None = None
    likely_regret: float | None = None
    likely_worst: float | None = None
    importance: Matrix | None = None  # [k, 2]: between which ends the importance of each objective is
    unidentified: tuple[str, ...] = ()  # objectives of any importance in this interval: the target is met all the same
    runner_up: Option | None = None
    doubtful: tuple[int, ...] = ()  # which answers are probably wrong, by their numbers
    unexplained: tuple[int, ...] = ()  # answers that were confirmed, but do not fit the others, by their numbers
    model_choice: Option | None = None
    contested_by: Option | None = None
    criterion: Criterion | None = None
    fits: bool = True  # whether some weights, however noisily applied, explain the answers; else nothing is likely
    target: float | None = None  # the relative regret that the strategy aims for
    expected_left: float | None = None  # about how many questions are left, including this one
    importance_if_right: Matrix | None = None  # [k, 2]: which importance fits the answers that are trusted, exactly
    loss_probabilities: tuple[float, float] | None = None  # of losing more than each of ``CERTAINTY.losses``

    @property
    def certainty(self) -> Certainty:
        """How certain it is, for a respondent who may err; without probabilities, what is proved decides.

        It is not sure where no weights fit the answers, or where the respondent chose otherwise than the model.
        """
        if not self.fits or self.model_choice is not None or self.contested_by is not None:
            return Certainty.NOT_SURE
        if self.loss_probabilities is not None:
            return CERTAINTY.level(self.loss_probabilities)
        bound = 1.0 if self.regret_bound is None else self.regret_bound
        first, second = CERTAINTY.losses
        return CERTAINTY.level((float(bound > first), float(bound > second)))

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", frozen_array(self.weights))

    def __repr__(self) -> str:
        plan = self.option.plan
        name = repr(plan.name) if isinstance(plan, Item) else type(plan).__name__
        return f"<Recommendation {name}: {self.questions} question{'' if self.questions == 1 else 's'}, {self.reason}>"
