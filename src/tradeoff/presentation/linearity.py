"""What linear preferences leave out, in words, and whether answers call for curves."""

from __future__ import annotations

from collections.abc import Sequence

from tradeoff.model import Alternative, Answer, Item
from tradeoff.problem import Presentable
from tradeoff.problems.catalogue import Catalogue
from tradeoff.problems.curves import CurvedCatalogue, Shape, curved, fits, never_best

CURVES = {
    "concave": "a gain counts less, the more of it there is",
    "monotone": "a gain counts differently in each part of its range",
}


def linear_words(problem: Presentable) -> str:
    """Return in plain words that preferences are taken to be linear, and how many items can therefore never win.

    It is "" where every item that nothing beats can win.
    """
    if not isinstance(problem, Catalogue) or isinstance(problem, CurvedCatalogue):
        return ""
    lost = never_best(problem)
    if not lost:
        return ""
    items = "1 item" if lost == 1 else f"{lost:,} items"
    return (
        f"We assume that each unit counts the same, however much there is. So {items} that nothing beats can never win."
    )


def curves_that_fit(
    problem: Presentable,
    given: Sequence[tuple[Alternative, Alternative, Answer | None]],
    not_worse: Sequence[tuple[Alternative, Alternative]] = (),
) -> Shape | None:
    """Return the simplest curves that agree with all answers, if no fixed weights do; None if some do, or no curves.

    What was placed above another without being told apart (``not_worse``) may be worse by less than the person notices. So
    fixed weights need not agree with it, and curves are offered only where they do.
    """
    if not isinstance(problem, Catalogue) or isinstance(problem, CurvedCatalogue):
        return None
    pairs = [
        (a.plan.index, b.plan.index, answer)
        for a, b, answer in given
        if answer is not None and isinstance(a.plan, Item) and isinstance(b.plan, Item)
    ]
    if fits(problem.gains, pairs):
        return None
    pairs += [
        (a.plan.index, b.plan.index, Answer.FIRST)
        for a, b in not_worse
        if isinstance(a.plan, Item) and isinstance(b.plan, Item)
    ]
    shapes: tuple[Shape, ...] = ("concave", "monotone")
    return next((shape for shape in shapes if fits(curved(problem, shape).gains, pairs)), None)
