"""The sentences of an interview, each in one place."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tradeoff.model import Lottery
from tradeoff.presentation.stories import are_frequencies, is_certain

NO_WRONG_ANSWERS = "There are no wrong answers."
THANKS = "Thank you for your answers."

CONTRADICTION = (
    "These answers contradict each other: no set of priorities fits all of them. Which one would you change?"
)
IMPOSSIBLE_ANSWER = "This answer cannot be right: no set of priorities fits it. Would you change it?"
DOUBTFUL = "We think you may have mis-clicked here, so we did not rely on this. Is it right?"
UNEXPLAINED = "You answered this more than once, and it does not fit your other answers:"
NOT_KNOWN = "your answers do not say"
RISK = "What really happens, and how often:"
CANNOT_CHANGE = "the same whatever you do"
ASKED_AGAIN = "Asked once more, the other way round, to be sure."


def progress(number: int, at_most: int | None, expected: float | None = None) -> str:
    """Return which question this is and about how many more will come; both counts include this one.

    Where nothing is known of what to expect, the most that can come is said.

    >>> progress(1, 30, 6.3), progress(3, 28, 3.8), progress(5, 26, 1.2), progress(9, 1, 3.0), progress(3, 8), progress(2, None)
    ('Question 1 of about 6', 'Question 3, about 3 more', 'Question 5, nearly done', 'Question 9, the last one',\
 'Question 3, at most 7 more', 'Question 2')
    """
    asked = f"Question {number:,}"
    if at_most is not None and at_most <= 1:
        return f"{asked}, the last one"
    if expected is None or not math.isfinite(expected):
        return asked if at_most is None else f"{asked}, at most {at_most - 1:,} more"
    more = max(round(expected), 1) - 1
    more = more if at_most is None else min(more, at_most - 1)
    if number == 1 and more:
        return f"{asked} of about {more + 1:,}"
    return f"{asked}, about {more:,} more" if more else f"{asked}, nearly done"


def bar_length(answered: int, at_most: int | None, expected: float | None) -> int | None:
    """Return of how many questions a progress bar is: as many as are expected, or the most that can come; None: no bar."""
    if at_most is None and expected is None:
        return None
    left = [n for n in (at_most, None if expected is None else round(expected)) if n is not None]
    return answered + max(min(left), 1)


def question_lead(lotteries: Sequence[Lottery]) -> str:
    """Return how the stories of a question are to be read; "" where nothing is left to chance."""
    if all(len(lottery.trajectories) == 1 for lottery in lotteries):
        return ""
    if all(map(are_frequencies, lotteries)):
        return "These are all the ways each can go, and how often:"
    return "These are some of the ways each can go; by their weights they come to exactly its average:"


def plan_lead(lottery: Lottery) -> str:
    """Return how the stories of one plan are to be read."""
    if is_certain(lottery):
        return "This is what happens, every time:"
    if are_frequencies(lottery):
        return "These are all the ways it can go, and how often:"
    if len(lottery.trajectories) == 1:
        return "This is one of the ways it can go; the average is the same:"
    return "These are some of the ways it can go; by their weights they come to exactly its average:"


def explanation(reference: str, chance: bool) -> list[str]:
    """Return how questions are to be read and why they are asked, in paragraphs; gains are counted from the reference.

    ``chance`` says whether what happens under a plan depends on chance.
    """
    lotteries = [
        "What happens under a plan also depends on chance. Each plan is told as a few of the ways it can go. The weight of "
        "each says how much it counts in the plan's average, which is exact; how often exactly this happens is said beside "
        'it. How much the amounts really vary is said like this: "1 in 20 times 96 min or more".',
    ]
    return [
        *(lotteries if chance else []),
        "Why such questions? What you give up for what shows how much each objective matters to you. At the end you see "
        "that as percentages, counted for the whole way from the worst to the best amount of each objective.",
        f'Gains are counted from "{reference}", which is there only for comparison. "Within 4% of the best plan for you" '
        "means that at most 4% of the gain of your best plan is lost.",
    ]


def contradiction(count: int) -> str:
    """Return what to say of answers that cannot all hold."""
    return IMPOSSIBLE_ANSWER if count == 1 else CONTRADICTION


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence.

    >>> listed(["time"]), listed(["time", "money", "comfort"])
    ('time', 'time, money and comfort')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def times_as_much(ratio: float) -> str:
    """Return how many times as much something matters at least, rounded down.

    >>> [times_as_much(r) for r in (1.1, 1.5, 2.2, 4.9, 30)]
    ['more than', 'at least one and a half times as much as', 'at least twice as much as', 'at least 4 times as much as',\
 'more than 10 times as much as']
    """
    if ratio < 1.5:
        return "more than"
    if ratio < 2:
        return "at least one and a half times as much as"
    if ratio < 3:
        return "at least twice as much as"
    return f"at least {int(ratio)} times as much as" if ratio <= 10 else "more than 10 times as much as"


def importance_range(low: float, high: float) -> str:
    """Return which importance fits the answers, rounded outwards.

    >>> importance_range(0.123, 0.456), importance_range(0.001, 0.3), importance_range(0.7, 1.0)
    ('12% to 46%', 'at most 30%', 'at least 70%')
    """
    least, most = max(int(100 * low + 1e-9), 0), min(-int(-100 * high // 1), 100)
    if least <= 0:
        return f"at most {most}%"
    return f"at least {least}%" if most >= 100 else f"{least}% to {most}%"
