"""The sentences of an interview, each in one place."""

from __future__ import annotations

from collections.abc import Sequence

from tradeoff.model import Answer, Lottery
from tradeoff.presentation.numbers import counted
from tradeoff.presentation.stories import are_frequencies, is_certain

QUESTION = "Which would you rather have, A or B?"
WELCOME = "You are shown two alternatives at a time. Say which you would rather have."
NO_WRONG_ANSWERS = "There are no wrong answers."
THANKS = "Thank you for your answers."

CHOICES = {Answer.FIRST: "A", Answer.SECOND: "B", Answer.SAME: "about equal", None: "skipped"}
ANSWERED = {
    Answer.FIRST: "You preferred A.",
    Answer.SECOND: "You preferred B.",
    Answer.SAME: "About equal to you.",
    None: "Skipped.",
}
CONTRADICTION = (
    "These answers contradict each other: no set of priorities fits all of them. Which one would you change?"
)
IMPOSSIBLE_ANSWER = "This answer cannot be right: no set of priorities fits it. Would you change it?"
DOUBTFUL = "Probably slips, so we did not rely on them:"
LEFT_OPEN = "left open, because it makes no difference here"
RISK = "What really happens, how often:"
CANNOT_CHANGE = "the same whatever you do"


def progress(number: int, at_most: int | None) -> str:
    """Return which question this is and how many more can come; ``at_most`` includes this one.

    >>> progress(3, 8), progress(9, 1), progress(2, None)
    ('Question 3, at most 7 more', 'Question 9, the last one', 'Question 2')
    """
    more = "" if at_most is None else ", the last one" if at_most <= 1 else f", at most {at_most - 1:,} more"
    return f"Question {number:,}{more}"


def question_lead(left: Lottery, right: Lottery) -> str:
    """Return how the two sides of a question are to be read; "" where neither leaves anything to chance."""
    if len(left.trajectories) == len(right.trajectories) == 1:
        return ""
    if are_frequencies(left) and are_frequencies(right):
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


def explanation(reference: str) -> list[str]:
    """Return how questions are to be read and why they are asked, in paragraphs; gains are counted from the reference."""
    return [
        "What happens under a plan also depends on chance. Each plan is told as a few of the ways it can go. The weight of "
        "each says how much it counts in the plan's average, which is exact; how often exactly this happens is said beside "
        'it. How much the amounts really vary is said like this: "1 in 20 times 96 min or more".',
        "Why such questions? What you give up for what shows how much each objective matters to you. At the end you see "
        "that as percentages, counted for the whole way from the worst to the best amount of each objective.",
        f'Gains are counted from "{reference}", which is there only for comparison. "Within 4% of the best plan for you" '
        "means that at most 4% of the gain of your best plan is lost.",
    ]


def contradiction(count: int) -> str:
    """Return what to say of answers that cannot all hold."""
    return IMPOSSIBLE_ANSWER if count == 1 else CONTRADICTION


def reason(questions: int, why: str) -> str:
    """Return how many questions were asked, and why no more if none are left.

    >>> reason(3, "nothing is left to ask"), reason(1, "")
    ('3 questions: nothing is left to ask.', '1 question so far.')
    """
    asked = counted(questions, "question")
    return f"{asked}: {why}." if why else f"{asked} so far."


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence.

    >>> listed(["time"]), listed(["time", "money", "comfort"])
    ('time', 'time, money and comfort')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def times_as_much(ratio: float) -> str:
    """Return a ratio of importance, rounded as coarsely as it is known.

    >>> [times_as_much(r) for r in (1.1, 1.5, 2.2, 4.4, 30)]
    ['about as much as', 'about one and a half times as much as', 'about twice as much as', 'about 4 times as much as',\
 'more than 10 times as much as']
    """
    if ratio < 1.25:
        return "about as much as"
    if ratio < 1.75:
        return "about one and a half times as much as"
    if ratio < 2.5:
        return "about twice as much as"
    return f"about {ratio:.0f} times as much as" if ratio <= 10 else "more than 10 times as much as"


def importance_range(low: float, high: float) -> str:
    """Return which importance fits the answers, rounded outwards."""
    least, most = int(100 * low + 1e-9), -int(-100 * high // 1)
    if least <= 0 and most >= 100:
        return "your answers leave this open"
    return f"anything from {max(least, 0)}% to {min(most, 100)}% fits your answers"
