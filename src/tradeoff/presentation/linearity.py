"""What linear preferences leave out, in words, and whether answers call for curves."""

from __future__ import annotations

from collections.abc import Sequence

from tradeoff.evidence import NOT_WORSE, PREFERRED, Answer
from tradeoff.model import Item
from tradeoff.problem import Presentable
from tradeoff.problems.catalogue import Catalogue
from tradeoff.problems.curves import Shape, curved, fits, never_best

CURVES = {
    "concave": "a gain counts less, the more of it there is",
    "monotone": "a gain counts differently in each part of its range",
}


def linear_words(problem: Presentable) -> str:
    """Return in plain words that preferences are taken to be linear, and how many items can therefore never win.

    It is "" where every item that nothing beats can win. Of concave curves it says what they assume.
    """
    shape = getattr(problem, "shape", None)
    if shape == "concave":
        return (
            "We assume diminishing returns: each further unit counts no more than the one before. If for you something counts "
            "only above some amount, this result may be wrong; use monotone curves, which do not assume that."
        )
    table = problem.items
    if not isinstance(table, Catalogue) or problem.original is not problem:
        return ""
    lost = never_best(table)
    if not lost:
        return ""
    items = "1 item" if lost == 1 else f"{lost:,} items"
    return (
        f"We assume that each unit counts the same, however much there is. So {items} that nothing beats can never win."
    )


def curves_that_fit(problem: Presentable, answers: Sequence[Answer]) -> Shape | None:
    """Return the simplest curves that agree with all answers, if no fixed weights do; None if some do, or no curves.

    An option that was placed above another without being told apart may be worse by less than the respondent notices. So fixed
    weights need not agree with that, and curves are offered only where they do.
    """
    if not isinstance(problem, Catalogue) or problem.original is not problem:
        return None
    compared = [one for answer in answers for one in answer.compared()]
    preferred, placed = (
        [
            (better.plan.index, worse.plan.index)
            for better, worse, came_out in compared
            if came_out == outcome and isinstance(better.plan, Item) and isinstance(worse.plan, Item)
        ]
        for outcome in (PREFERRED, NOT_WORSE)
    )
    if fits(problem.gains, preferred):
        return None
    shapes: tuple[Shape, ...] = ("concave", "monotone")
    return next((shape for shape in shapes if fits(curved(problem, shape).gains, preferred + placed)), None)
