"""A question as two columns, a recommendation as a page: what a person sees of an interview, or a program gets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import numpy as np
from rich import box
from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tradeoff.apps.cli.main import plain
from tradeoff.apps.cli.pages import cell, table
from tradeoff.interview import Interview
from tradeoff.model import Lottery, Question, Recommendation
from tradeoff.problems.catalogue import Catalogue
from tradeoff.representation.difference import ObjectiveDifference, compared
from tradeoff.representation.words import (
    Repeat,
    Step,
    fold,
    heading_words,
    heaviest_first,
    outcome_words,
    path_words,
    share_counts,
    share_words,
    steps_of,
)
from tradeoff.sources import AnyProblem
from tradeoff.users import LinearUser, relative_regret

NARROW = 76  # columns; below this A stands above B
SHORTEST, LONGEST = 24, 40  # lines a question may take, as far as the terminal has them
FEWEST = 2  # lines of a story, however many there are
ARROW = " > "
BAR = 30  # characters of a full bar


# --- stories ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Story:
    """What is done in one trajectory: its share, how it relates to the story above it, its steps, its outcome."""

    opening: str
    parts: tuple[Repeat, ...]
    outcome: tuple[str, ...]  # name and amount of each objective

    def outcome_lines(self, width: int) -> list[str]:
        """Return what it comes to, as lines whose amounts are not parted from their names."""
        return filled([f"{item}," for item in self.outcome[:-1]] + list(self.outcome[-1:]), width)

    def lines(self, width: int, most: int | None = None) -> list[str]:
        """Return what is done in at most so many lines: steps in the middle give way to their number."""
        count = len(self.parts)
        for left_out in range(max(1, count - 1)):
            head = (count - left_out + 1) // 2
            lines = self._filled(head, count - left_out - head, width)
            if most is None or len(lines) <= most:
                return lines
        lines = self._filled(1, 0, width)
        return [*lines[: most - 1], shortened(" ".join(lines[most - 1 :]), width)] if most else lines

    def _filled(self, head: int, tail: int, width: int) -> list[str]:
        """Return the lines with only so many parts at the beginning and at the end."""
        middle = self.parts[head : len(self.parts) - tail]
        steps = sum(len(part.steps) * part.times for part in middle)
        shown = [_words(part) for part in self.parts[:head]]
        shown += [f"... {steps} more {'step' if steps == 1 else 'steps'} ..."] if steps else []
        shown += [_words(part) for part in self.parts[len(self.parts) - tail :]]
        return filled(f"{self.opening}{ARROW.join(shown)}".split(" "), width)


def stories(lottery: Lottery, beside: Lottery | None) -> list[Story]:
    """Return the trajectories as stories, each told once: where one begins like the one above, only what then differs.

    A situation is named where chance decided between trajectories, and at the end; elsewhere the actions say it all.
    Where neither the lottery nor what stands beside it has several stories, there is no share and no outcome: the
    average says it.
    """
    others = [] if beside is None else [beside.weights]
    several = any(len(weights) > 1 for weights in [lottery.weights, *others])
    shares = [share.replace(" times)", ")") for share in share_words(lottery.weights, *others)]
    paths = [[_safe(step) for step in steps_of(trajectory)] for trajectory in lottery.trajectories]
    told = []
    for i, (path, amounts) in enumerate(zip(paths, outcome_words(lottery)[0], strict=True)):
        begin = _common(paths[i - 1], path) if i else 0
        steps, above = ([_told(p, t, paths) for t in range(begin, len(p))] for p in (path, paths[i - 1]))
        if begin and _within(steps, above):  # what did not happen is not seen unless all of it is told
            begin, steps = 0, [_told(path, t, paths) for t in range(len(path))]
        parts = fold(steps)
        opening = (f"{shares[i]}: " if several else "") + ("as above, but " if begin else "")
        items = [f"{plain(o.name)} {plain(text)}" for o, text in zip(lottery.objectives, amounts, strict=True)]
        told.append(Story(opening, tuple(parts), tuple(items) if several else ()))
    return told


def _safe(step: Step) -> Step:
    state, action = step
    return plain(state), None if action is None else plain(action)


def _common(path: Sequence[Step], other: Sequence[Step]) -> int:
    """Return how many steps two paths have in common from the start."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(path, other, strict=False)))


def _within(steps: Sequence[Step], others: Sequence[Step]) -> bool:
    """Return whether the steps are some of the others, in the same order."""
    left = iter(others)
    return all(step in left for step in steps)


def _told(path: Sequence[Step], t: int, paths: Iterable[Sequence[Step]]) -> Step:
    state, action = path[t]
    # A path without any action is the reference: that it begins elsewhere says nothing about this one.
    others = [p for p in paths if len(p) > t and p[:t] == path[:t] and p[0][1] is not None]
    by_chance = any(p[t][0] != state for p in others)
    return (state if by_chance or action is None else "", action)


def _words(part: Repeat) -> str:
    """Return a part of a story as a person reads it."""
    texts = [state if action is None else f"{state}: {action}" if state else action for state, action in part.steps]
    if part.times == 1:
        return ARROW.join(texts)
    return f"{ARROW.join(texts)} ({'' if len(texts) == 1 else f'these {len(texts)} steps, '}{part.times:,} times)"


def shortened(text: str, width: int) -> str:
    """Return a text that is cut to the width, with dots to show it."""
    return text if cell_len(text) <= width else chop_cells(text, max(1, width - 4))[0].rstrip() + " ..."


def filled(items: Iterable[str], width: int) -> list[str]:
    """Return the items on as few lines as they fit, none broken that fits on a line of its own."""
    lines: list[str] = []
    for item in items:
        for piece in chop_cells(item, width) or [""]:
            if lines and cell_len(lines[-1]) + 1 + cell_len(piece) <= width:
                lines[-1] += f" {piece}"
            else:
                lines.append(piece)
    return lines


# --- cards -----------------------------------------------------------------------------------------------------------


def card(lottery: Lottery, beside: Lottery | None, width: int, lines: int | None = None) -> Text:
    """Return a lottery as a block of this width, of about so many lines: each story with its share and outcome."""
    told = stories(lottery, beside)
    below = [story.outcome_lines(width - 2) for story in told]
    room = [len(story.lines(width)) for story in told]
    # The longest stories give way first, down to two lines.
    while lines is not None and sum(room) + sum(map(len, below)) > lines and max(room) > FEWEST:
        room[room.index(max(room))] -= 1
    block = Text()
    for story, most, outcome in zip(told, room, below, strict=True):
        text = "\n".join(story.lines(width, most))
        bold = text.find(":") if story.outcome else len(text)
        block.append(text[:bold], style="bold").append(f"{text[bold:]}\n")
        block.append("".join(f"  {line}\n" for line in outcome))
    block.rstrip()
    return block


def print_question(out: Console, problem: AnyProblem, question: Question, heading: str) -> None:
    """Print a question: the two alternatives beside each other (or one above the other), and how they differ."""
    first, second = (heaviest_first(problem.show(side)) for side in (question.first, question.second))
    parts = compared(problem.objectives, first.average, second.average, problem.scale)
    differing = [part for part in parts if part.better != "same"]
    lines = (min(max(out.height, SHORTEST), LONGEST) if out.is_terminal else LONGEST) - len(differing) - 11
    out.print()
    out.rule(Text(plain(heading)), align="left", style="dim", characters="-")
    out.print(Text(ask_words(first, second), style="bold"))
    if out.width < NARROW:
        for name, side, other in (("A", first, second), ("B", second, first)):
            out.print(Text(f"{name}:", style="bold reverse"))
            out.print(card(side, other, out.width, lines // 2))
    else:
        width = (out.width - 7) // 2
        columns = Table(box=box.SQUARE, show_lines=False, border_style="dim")
        for name in "AB":
            columns.add_column(name, width=width, header_style="bold reverse")
        columns.add_row(card(first, second, width, lines), card(second, first, width, lines))
        out.print(columns)
    certain = all(len(side.trajectories) == 1 and side.trajectories[0].probability == 1 for side in (first, second))
    print_differences(out, parts, differing, "" if certain else "on average")


def ask_words(first: Lottery, second: Lottery) -> str:
    """Return what is being asked, in one sentence or two."""
    if len(first.trajectories) == len(second.trajectories) == 1:
        return "Which would you rather have, A or B?"
    _, total = share_counts(first.weights, second.weights)
    return f"Which would you rather have, A or B? Imagine doing each {total:,} times; on average it comes to this:"


def print_differences(
    out: Console, parts: Sequence[ObjectiveDifference], differing: Sequence[ObjectiveDifference], heading: str
) -> None:
    """Print the average of each objective on both sides, and whose is better by how much."""
    narrow = out.width < NARROW
    made = Table(box=None, pad_edge=False, padding=(0, 2 if narrow else 3, 0, 0))
    for name in (heading, "A", "B", "which is better"):
        made.add_column(name, justify="right" if len(name) == 1 else "left")
    for part in differing:
        o, left = part.objective, part.better == "first"
        amounts = [Text(plain(o.text(amount))) for amount in (part.first, part.second)]
        amounts[0 if left else 1].stylize("bold")
        by = (o if not narrow else replace(o, unit="")).text(abs(part.amount))  # A and B have the unit
        made.add_row(
            cell(o.name), *amounts, cell(f"{'A' if left else 'B'}: {by} {'more' if o.goal == 'max' else 'less'}")
        )
    if differing:
        out.print(made)
    same = [f"{part.objective.name} {part.objective.text(part.first)}" for part in parts if part.better == "same"]
    if same:
        out.print(cell(f"same for both: {', '.join(same)}"))


# What a person is quoted as having said.
SAYS = {"first": "A", "second": "B", "same": "about equal"}


def print_answered(out: Console, problem: AnyProblem, question: Question, number: int, answer: str) -> None:
    """Print a question and its answer in a line or two: only how the two alternatives differ."""
    first, second = (problem.outcome(side.value) for side in (question.first, question.second))
    parts = compared(problem.objectives, first, second, problem.scale)
    mark = f"{number:>3}. {answer:<11} "
    for name, side in (("A", "first"), ("B", "second")):
        better = [f"{p.objective.name} {p.objective.text(abs(p.amount))}" for p in parts if p.better == side]
        if better:
            out.print(Text(plain(shortened(f"{mark} {name} better: {', '.join(better)}", out.width))))
            mark = " " * len(mark)


# --- the recommendation ----------------------------------------------------------------------------------------------


def certificate_line(recommendation: Recommendation) -> str | None:
    """Return how good the recommendation provably is, or None where nothing was proved; rounded so as not to flatter.

    >>> from tradeoff.model import NOTHING, Alternative
    >>> worst = {"regret_bound": 0.0312, "expected_left": 2.6, "target": 0.01}
    >>> certificate_line(Recommendation(Alternative([1.0], NOTHING), [1.0], 3, "", complete=False, **worst))
    'Within 4% of the best plan for you, whatever you would answer next; about 3 more questions to 1%.'
    """
    bound = recommendation.regret_bound
    if bound is None or bound >= 1:
        return None
    if bound <= 1e-9:
        return "No plan is better for you, whatever you would answer next."
    line = f"Within {percent_up(bound)} of the best plan for you, whatever you would answer next"
    likely, aim, left = recommendation.likely_worst, recommendation.target, recommendation.expected_left
    if likely is not None and likely < 0.9 * bound:
        line += f", and very likely within {percent_up(likely)}"
    if aim is not None and left is not None and bound > aim and not recommendation.complete:
        count = max(1, round(left))
        line += f"; about {count} more {'question' if count == 1 else 'questions'} to {100 * aim:g}%"
    return line + "."


def percent_up(share: float) -> str:
    """Return a share in per cent, rounded up so as not to flatter.

    >>> percent_up(0.0312), percent_up(0.0031), percent_up(0.0)
    ('4%', '0.4%', '0.1%')
    """
    tenths = max(1, math.ceil(1000 * share - 1e-9))
    return f"{tenths / 10:g}%" if tenths < 10 else f"{math.ceil(100 * share - 1e-9)}%"


def print_recommendation(out: Console, problem: AnyProblem, recommendation: Recommendation, finished: bool) -> None:
    """Print the recommended plan in words, the importance of each objective, and why the questions ended."""
    lottery = heaviest_first(problem.show(recommendation.alternative))
    out.print()
    so_far = "" if finished and recommendation.complete else ", so far"
    out.rule(f"The best plan for you{so_far}", align="left", style="dim", characters="-")
    if len(lottery.trajectories) > 1 or lottery.trajectories[0].actions:
        out.print(cell(heading_words(lottery)))
    out.print(card(lottery, None, out.width))
    if isinstance(problem, Catalogue):
        index = getattr(recommendation.alternative.plan, "index", None)
        labels = [f"{key}: {texts[index]}" for key, texts in problem.labels.items()] if index is not None else []
        out.print(cell(", ".join(labels))) if labels else None
    _, average = outcome_words(lottery)
    made = table("", ">on average", "how much it matters to you")
    for o, amount, weight, matters in zip(
        problem.objectives, average, recommendation.weights, problem.frame.matters, strict=True
    ):
        bar = f"{'#' * round(BAR * float(weight))} {100 * float(weight):.0f}%" if matters else "cannot be changed"
        made.add_row(cell(o.name), cell(amount), cell(bar.strip()))
    out.print(made)
    asked = recommendation.questions
    reason = recommendation.reason if finished else "you stopped before the end"
    out.print(cell(f"{asked} {'question' if asked == 1 else 'questions'}: {reason}."))
    certificate = certificate_line(recommendation)
    if certificate:
        out.print(Text(certificate, style="bold"))
    runner_up = runner_up_line(problem, recommendation)
    if runner_up:
        out.print(cell(runner_up))
    if recommendation.doubtful:
        places = ", ".join(map(str, recommendation.doubtful))
        out.print(cell(f"Set aside as probable slips: answer {places}."), style="yellow")
    if recommendation.unidentified:
        names = ", ".join(recommendation.unidentified)
        out.print(cell(f"How much these matter to you was left open, because it makes no difference here: {names}."))


def runner_up_line(problem: AnyProblem, recommendation: Recommendation) -> str | None:
    """Return what the next best plan would change, in units; None where there is none."""
    if recommendation.runner_up is None:
        return None
    mine = problem.outcome(recommendation.alternative.value)
    other = problem.outcome(recommendation.runner_up.value)
    changes = [
        f"{o.name} {o.text(abs(float(change)))} {'more' if change > 0 else 'less'}"
        for o, change, size in zip(problem.objectives, other - mine, np.abs(problem.scale), strict=True)
        if abs(change) > 1e-3 * size
    ]
    return f"The next best plan for you would mean: {', '.join(changes)}." if changes else None


# --- programs ---------------------------------------------------------------------------------------------------------


def finite(number: float | None) -> float | None:
    """Return a number as JSON can have it: without infinities."""
    return None if number is None or not math.isfinite(number) else float(number)


def document(problem: AnyProblem, interview: Interview, person: LinearUser | None) -> dict[str, Any]:
    """Return the recommendation and the answers as plain data."""
    names = [o.name for o in problem.objectives]

    def named(amounts: Sequence[float]) -> dict[str, float]:
        return dict(zip(names, map(float, amounts), strict=True))

    found = interview.recommendation
    lottery = heaviest_first(problem.show(found.alternative))
    result: dict[str, Any] = {
        "problem": problem.name,
        "strategy": interview.strategy,
        "finished": interview.finished,
        "recommendation": {
            "outcome": named(problem.outcome(found.alternative.value).tolist()),
            "gain": named(found.alternative.value.tolist()),
            "weights": named(found.weights.tolist()),
            "questions": found.questions,
            "reason": found.reason,
            "complete": found.complete,
            "regret_bound": finite(found.regret_bound),
            "robust_bound": finite(found.robust_bound),
            "likely_regret": finite(found.likely_regret),
            "likely_worst": finite(found.likely_worst),
            "importance": None
            if found.importance is None
            else dict(zip(names, [[finite(end) for end in pair] for pair in found.importance.tolist()], strict=True)),
            "unidentified": list(found.unidentified),
            "doubtful": [int(number) for number in found.doubtful],
            "target": finite(found.target),
            "expected_left": finite(found.expected_left),
            "trajectories": [
                {"share": float(share), "words": path_words(story), "outcome": named(story.outcome.tolist())}
                for share, story in zip(lottery.weights, lottery.trajectories, strict=True)
            ],
        },
        "answers": [
            {
                "number": number,
                "first": named(problem.outcome(question.first.value).tolist()),
                "second": named(problem.outcome(question.second.value).tolist()),
                "answer": "skip" if reply is None else reply.value,
            }
            for number, question, reply in interview.answers
        ],
    }
    if person is None:
        return result
    return result | {"relative_regret": relative_regret(problem, person, found.alternative)}
