"""Alternatives as cards, and two of them compared row by row: the values that the templates lay out.

What is drawn of an alternative depends on the problem and on how its shares are counted, not on who looks at it: it is
drawn once and kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from markupsafe import Markup

from tradeoff.apps.cli.cards import Story as Told
from tradeoff.apps.cli.cards import stories
from tradeoff.apps.web import drawings
from tradeoff.apps.web.ground import ground_of
from tradeoff.model import Alternative, Lottery, Objective, Plan, Recommendation, Trajectory
from tradeoff.problems.catalogue import Catalogue
from tradeoff.representation.difference import ObjectiveDifference, compared
from tradeoff.representation.picture import inert
from tradeoff.representation.words import heaviest_first, is_certain, share_counts, share_words
from tradeoff.sensitivity import Change, what_if
from tradeoff.sources import AnyProblem

PROBLEMS, KEPT = 16, 2048  # problems, and cards of each, that are kept drawn
LONGEST = 120  # characters of a name that are shown
SHORT = 40  # and where there is little room
STEPS = 7  # of a path that are told at once; the middle of a longer one unfolds
FRAMES = 8  # pictures of a path
DIGITS = 3


@dataclass(frozen=True)
class Story:
    """One way things can go, as the page tells it."""

    icon: Markup
    share: str  # "" where nothing is left to chance
    like_above: bool  # only what differs from the story above is told
    head: tuple[str, ...]
    middle: tuple[str, ...]  # steps that unfold on demand
    tail: tuple[str, ...]
    labels: tuple[tuple[str, str], ...]
    outcome: tuple[tuple[str, str], ...]  # objective and amount; empty where the average says it
    frames: tuple[str, ...]  # states to show pictures of, as they are called


@dataclass(frozen=True)
class Card:
    """One alternative: its stories, and drawings of how often and where."""

    title: str  # what it is called, where one name says it all
    stories: tuple[Story, ...]
    array: Markup | None
    total: int  # times that the shares are counted out of
    map: Markup | None


@dataclass(frozen=True)
class Row:
    """One objective on both sides; bars are on the scale of everything attainable."""

    name: str
    goal: str
    amounts: tuple[str, str]
    bars: tuple[Markup, Markup]
    better: str  # "A", "B", or "" if both are the same
    difference: str  # "12 min less"


class Sketches:
    """The drawings of one problem: its ground, and the cards drawn so far."""

    def __init__(self, problem: AnyProblem) -> None:
        self.problem = problem
        self.ground = ground_of(problem)
        self.definition = None if self.ground is None else drawings.ground_definition(self.ground)
        frame = problem.frame
        self.low = np.minimum(np.minimum(frame.nadir, frame.ideal), 0.0)
        self.high = np.maximum(np.maximum(frame.nadir, frame.ideal), 0.0)
        self.numbers = {name: i for i, name in enumerate(problem.names)} if isinstance(problem, Catalogue) else {}
        self._lottery = lru_cache(KEPT)(self._shown)
        self._card = lru_cache(KEPT)(self._drawn)
        self._changes = lru_cache(64)(self._tried)
        self._pages: OrderedDict[Hashable, Markup] = OrderedDict()
        self._lock = threading.Lock()

    def has(self, key: Hashable) -> bool:
        """Return whether a part of a page was made before."""
        return key in self._pages

    def once(self, key: Hashable, make: Callable[[], Markup]) -> Markup:
        """Return a part of a page that was made before, or make it now."""
        with self._lock:
            found = self._pages.get(key)
            if found is not None:
                self._pages.move_to_end(key)
                return found
        found = make()
        with self._lock:
            self._pages[key] = found
            while len(self._pages) > KEPT:
                self._pages.popitem(last=False)
        return found

    def lottery(self, alternative: Alternative) -> Lottery:
        """Return the alternative as trajectories, the heaviest first."""
        return self._lottery(alternative.value.tobytes(), alternative.plan)

    def _shown(self, value: bytes, plan: Plan) -> Lottery:
        return heaviest_first(self.problem.show(Alternative(np.frombuffer(value), plan)))

    def card(self, alternative: Alternative, beside: Alternative | None = None) -> Card:
        """Return the card of an alternative; its shares are counted like those of the one beside it."""
        mine = self.lottery(alternative)
        lotteries = [mine] if beside is None else [mine, self.lottery(beside)]
        _, total = share_counts(*(lottery.weights for lottery in lotteries))
        several = any(len(lottery.trajectories) > 1 for lottery in lotteries)
        return self._card(alternative.value.tobytes(), alternative.plan, total, several)

    def _drawn(self, value: bytes, plan: Plan, total: int, several: bool) -> Card:
        lottery = self._lottery(value, plan)
        # What stands beside it matters only for how shares are counted: two shares, one of them that fine.
        beside = [1 - 1 / total, 1 / total]
        counts, _ = share_counts(lottery.weights, beside)
        shares = [share.replace(" times)", ")") for share in share_words(lottery.weights, beside)]
        told = stories(lottery, _two_sided(lottery) if several else None)
        words = "; ".join(f"{share}: {_line(story)}" for share, story in zip(shares, told, strict=True))
        made = tuple(
            self._story(i, trajectory, story, shares[i] if several else "", lottery.objectives)
            for i, (trajectory, story) in enumerate(zip(lottery.trajectories, told, strict=True))
        )
        only = lottery.trajectories[0] if len(lottery.trajectories) == 1 else None
        title = shown(only.states[0]) if only is not None and len(only.states) == 1 else ""
        array = drawings.icon_array(counts, total, f"How often: {words}") if several else None
        return Card(title, made, array, total, self._map(lottery, words))

    def _story(
        self, place: int, trajectory: Trajectory, told: Told, share: str, objectives: Sequence[Objective]
    ) -> Story:
        steps = [shown(part.words()) for part in told.parts]
        cut = len(steps) > STEPS + 1
        head, middle, tail = (steps[:4], steps[4:-2], steps[-2:]) if cut else (steps, [], [])
        amounts = _amounts(trajectory, objectives) if share else ()
        return Story(
            drawings.icon(place), share, told.opening.endswith("but "), tuple(head), tuple(middle), tuple(tail),
            self._labels(trajectory), amounts, evenly(trajectory.states, FRAMES),
        )  # fmt: skip

    def _labels(self, trajectory: Trajectory) -> tuple[tuple[str, str], ...]:
        item = self.numbers.get(trajectory.states[0])
        if item is None or not isinstance(self.problem, Catalogue):
            return ()
        return tuple((shown(key), shown(texts[item])) for key, texts in self.problem.labels.items())

    def _map(self, lottery: Lottery, words: str) -> Markup | None:
        if self.ground is None:
            return None
        ways = [self.ground.way(trajectory.states) for trajectory in lottery.trajectories]
        if not any(ways):
            return None
        ends = [self.ground.spot_of.get(trajectory.states[-1]) for trajectory in lottery.trajectories]
        return drawings.map_of(self.ground, ways, ends, f"Where it goes: {words}")

    # --- amounts ------------------------------------------------------------------------------------------------------

    def differences(self, left: Alternative, right: Alternative) -> tuple[ObjectiveDifference, ...]:
        """Return how two alternatives differ on average."""
        problem = self.problem
        return compared(problem.objectives, problem.outcome(left.value), problem.outcome(right.value), problem.scale)

    def rows(self, left: Alternative, right: Alternative) -> list[Row]:
        """Return how the two compare on average, objective by objective."""
        parts = self.differences(left, right)
        return [self._row(j, part) for j, part in enumerate(parts)]

    def _row(self, j: int, part: ObjectiveDifference) -> Row:
        o, better = part.objective, {"first": "A", "second": "B", "same": ""}[part.better]
        amounts = (part.first, part.second)
        scale = float(min(self.low[j], *amounts)), float(max(self.high[j], *amounts))
        bars = [
            drawings.bar(amount, *scale, "better" if letter == better else "other")
            for letter, amount in zip("AB", amounts, strict=True)
        ]
        words = "" if not better else f"{gap_words(o, *amounts)} {'more' if o.goal == 'max' else 'less'}"
        return Row(shown(o.name, SHORT), goal_words(o), amounts_words(o, *amounts), (bars[0], bars[1]), better, words)

    def bar(self, j: int, amount: float) -> Markup:
        """Return an amount of one objective as a bar on the scale of everything attainable."""
        low, high = float(min(self.low[j], amount)), float(max(self.high[j], amount))
        return drawings.bar(amount, low, high, "better")

    def changes(self, recommendation: Recommendation) -> tuple[Change, ...]:
        """Return what would be recommended if one objective mattered more; worked out once."""
        found = recommendation.alternative
        return self._changes(recommendation.weights.tobytes(), found.value.tobytes(), found.plan)

    def _tried(self, weights: bytes, value: bytes, plan: Plan) -> tuple[Change, ...]:
        alternative = Alternative(np.frombuffer(value), plan)
        return what_if(self.problem, Recommendation(alternative, np.frombuffer(weights), 0, ""))


@lru_cache(PROBLEMS)
def sketches(problem: AnyProblem) -> Sketches:
    """Return the drawings of a problem, the same every time."""
    return Sketches(problem)


def both_certain(left: Lottery, right: Lottery) -> bool:
    """Return whether neither side leaves anything to chance, so that an average says what happens."""
    return is_certain(left) and is_certain(right)


def shown(text: str, longest: int = LONGEST) -> str:
    """Return a text as the page shows it: without characters that steer, and cut where it is longer than anyone reads."""
    short = text if len(text) <= longest else f"{text[: longest - 1]}…"
    return short if short.isprintable() else inert(short)  # nearly all are, and looking at each letter takes time


def amount_words(objective: Objective, amount: float) -> str:
    """Return an amount in its unit, with three digits: people compare, they do not compute."""
    rounded = float(f"{amount:.{DIGITS}g}") if abs(amount) < 1000 else amount
    return shown(objective.text(rounded), SHORT)


def amounts_words(objective: Objective, one: float, other: float) -> tuple[str, str]:
    """Return two amounts that stand side by side; they get another digit if they would look equal and are not."""
    texts = amount_words(objective, one), amount_words(objective, other)
    if texts[0] == texts[1] and one != other:
        return shown(objective.text(one), SHORT), shown(objective.text(other), SHORT)
    return texts


def gap_words(objective: Objective, one: float, other: float) -> str:
    """Return the difference of two amounts as it follows from what is shown of them, rounded as they are.

    >>> gap_words(Objective("time", "min", "min"), 42.94, 53.26)
    '10.4 min'
    """
    seen = [float(f"{amount:.{DIGITS}g}") if abs(amount) < 1000 else round(amount) for amount in (one, other)]
    if seen[0] == seen[1]:  # then they are shown with more digits
        return amount_words(objective, abs(one - other))
    places = max((len(f"{amount:.10g}".partition(".")[2]) for amount in seen), default=0)
    return shown(objective.text(round(abs(seen[0] - seen[1]), places)), SHORT)


def goal_words(objective: Objective) -> str:
    """Return which direction is better."""
    return "more is better" if objective.goal == "max" else "less is better"


def evenly(states: Sequence[str], most: int) -> tuple[str, ...]:
    """Return at most so many of the states: the first, the last, and some evenly between; repeats count once."""
    changed = [state for i, state in enumerate(states) if i == 0 or state != states[i - 1]]
    if len(changed) <= most:
        return tuple(changed)
    return tuple(changed[round(i * (len(changed) - 1) / (most - 1))] for i in range(most))


def _amounts(trajectory: Trajectory, objectives: Sequence[Objective]) -> tuple[tuple[str, str], ...]:
    pairs = zip(objectives, trajectory.outcome.tolist(), strict=True)
    return tuple((shown(o.name, SHORT), amount_words(o, amount)) for o, amount in pairs)


def _line(story: Told) -> str:
    return shown(", ".join(part.words() for part in story.parts), 2 * LONGEST)


def _two_sided(lottery: Lottery) -> Lottery:
    """Return a lottery that has two sides: beside it, even a single story is told with its share."""
    one = lottery.trajectories[0]
    return Lottery(lottery.objectives, np.array([0.5, 0.5]), (one, one))
