"""A choice for several people in words: what is chosen, who keeps what, and what choosing together costs each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tradeoff.decisions.group import ROUNDING, Choice, Group
from tradeoff.model import Mixture, Option
from tradeoff.presentation.data import Data, by_name, named_data, value_data
from tradeoff.presentation.numbers import chance, counted, percent
from tradeoff.presentation.plans import plan_name
from tradeoff.presentation.sentences import listed
from tradeoff.presentation.text import clipped, one_line
from tradeoff.problem import Presentable

NAME = 60
BASIS = (
    "Percentages are of what each one's own best plan gains them, by our estimate of what matters to each from their answers. "
    "What is missing to 100% is what choosing together costs them."
)


@dataclass(frozen=True)
class ChoiceWords:
    """One way to choose together."""

    title: str
    sentence: str
    shares: tuple[str, ...]  # what each person keeps


@dataclass(frozen=True)
class GroupWords:
    """Everything that is said of a group."""

    people: tuple[str, ...]
    own: tuple[str, ...]  # what would be best for each alone
    choices: tuple[ChoiceWords, ...]
    basis: str


def group_words(problem: Presentable, group: Group, choices: Sequence[tuple[str, Choice]]) -> GroupWords:
    """Return what is said of some choices, each with its title."""
    return GroupWords(
        tuple(map(one_line, group.names)),
        tuple(clipped(plan_name(problem, one), NAME) for one in group.own),
        tuple(ChoiceWords(title, _sentence(problem, group, one), _shares(one)) for title, one in choices),
        BASIS,
    )


def _name(problem: Presentable, option: Option) -> str:
    """Return what is chosen: a plan by its name, a lot by all it may come to."""
    plan = option.plan
    if not isinstance(plan, Mixture):
        return f"“{clipped(plan_name(problem, option), NAME)}”"
    # Only the plan of a part is named, so that its value does not matter here.
    parts = [
        f"{chance(share)} “{clipped(plan_name(problem, Option(option.value, part)), NAME)}”"
        for share, part in zip(plan.probabilities, plan.plans, strict=True)
    ]
    return f"a lot, drawn once: {listed(parts)}"


def _shares(choice: Choice) -> tuple[str, ...]:
    return tuple(chance(float(share)) for share in choice.shares)


def _sentence(problem: Presentable, group: Group, choice: Choice) -> str:
    names = [_name(problem, one) for one in choice.plans]
    if len(names) == 1 and len(group.names) == 1:
        return f"{names[0]}. {one_line(group.names[0])} keeps {chance(choice.least)}."
    if len(names) == 1:
        least = [one_line(group.names[i]) for i, s in enumerate(choice.shares.tolist()) if s <= choice.least + 1e-9]
        return (
            f"{names[0]}. People keep {percent(choice.average)} on average; {listed(least)} "
            f"{'keep' if len(least) > 1 else 'keeps'} least, {chance(choice.least)}."
        )
    parts = []
    for i, name in enumerate(names):
        who = [one_line(group.names[p]) for p, plan in enumerate(choice.served) if plan == i]
        if who:
            parts.append(f"{name} for {listed(who)}")
    kept = "all of it" if choice.least > 1 - ROUNDING else f"at least {chance(choice.least)}"
    return f"{'; '.join(parts)}. Everybody keeps {kept}."


def group_data(problem: Presentable, group: Group, choices: Sequence[tuple[str, Choice]]) -> Data:
    """Return a group as plain data."""
    words = group_words(problem, group, choices)
    return {
        "people": [
            {"name": name, "weights": by_name(problem, row), "own": own}
            for name, row, own in zip(group.names, group.weights, words.own, strict=True)
        ],
        "choices": [
            {
                "title": title,
                "plans": [value_data(problem, one) | named_data(problem, one) for one in choice.plans],
                "shares": choice.shares.tolist(),
                "served": list(choice.served),
                "average": choice.average,
                "least": choice.least,
                "words": told.sentence,
            }
            for (title, choice), told in zip(choices, words.choices, strict=True)
        ],
        "basis": words.basis,
    }


def choices_of(group: Group, problem: Presentable, menu: int, within: float | None) -> list[tuple[str, Choice]]:
    """Return the ways to choose together that people are told of."""
    fairest = group.fairest()
    found = [("most on average", group.on_average()), ("fairest", fairest)]
    lot = group.by_lot() if problem.kind == "catalogue" else fairest
    if lot.least > fairest.least + 0.01:
        found.append(("fairest by lot", lot))
    if within is not None:
        chosen = group.smallest_menu(within)
        found.append((f"the fewest with which nobody loses more than {chance(within)}", chosen))
    else:
        chosen = group.menu(menu)
        found.append((f"a menu of {counted(len(chosen.plans), 'plan')}", chosen))
    return found
