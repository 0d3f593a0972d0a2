"""The layout of questions and recommendations in a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.text import Text

from tradeoff.apps.cli.output import cell, table
from tradeoff.interview import Interview
from tradeoff.model import Lottery, Option
from tradeoff.presentation import sentences
from tradeoff.presentation.answers import AnswerLine, lines_of
from tradeoff.presentation.cards import Card
from tradeoff.presentation.linearity import CURVES, curves_that_fit
from tradeoff.presentation.plans import Guide
from tradeoff.presentation.result import result
from tradeoff.presentation.stories import Story, heaviest_first
from tradeoff.problem import Presentable

ARROW = " > "
BAR = 20  # characters of a full bar


# --- stories ---------------------------------------------------------------------------------------------------------


def story_lines(story: Story, width: int) -> list[str]:
    """Return what is done, in lines."""
    opening = (f"{story.share}: " if story.share else "") + ("as above, but " if story.like_above else "")
    return filled(f"{opening}{ARROW.join(part.words(ARROW) for part in story.parts)}".split(" "), width)


def outcome_lines(story: Story, width: int) -> list[str]:
    """Return what a story comes to, as lines that keep an amount with its name."""
    items = [f"{name} {amount}" for name, amount in story.amounts] + ([story.chance] if story.chance else [])
    return filled([f"{item}," for item in items[:-1]] + items[-1:], width)


def shortened(text: str, width: int) -> str:
    """Return a text that is cut to the width, with dots to show it."""
    return text if cell_len(text) <= width else chop_cells(text, max(1, width - 4))[0].rstrip() + " ..."


def filled(items: Iterable[str], width: int) -> list[str]:
    """Return the items on as few lines as they fit, none broken that fits on a line of its own."""
    lines: list[str] = []
    for item in items:
        words = item.split(" ") if cell_len(item) > width else [item]
        for piece in filled(words, width) if len(words) > 1 else chop_cells(item, width) or [""]:
            if lines and cell_len(lines[-1]) + 1 + cell_len(piece) <= width:
                lines[-1] += f" {piece}"
            else:
                lines.append(piece)
    return lines


def card_block(card: Card, width: int) -> Text:
    """Return a card as a block of this width: each story with its share and outcome."""
    block = Text()
    for story in card.stories:
        text = "\n".join(story_lines(story, width))
        bold = text.find(":") if story.share else len(text)
        block.append(text[:bold], style="bold").append(f"{text[bold:]}\n")
        block.append("".join(f"  {line}\n" for line in outcome_lines(story, width - 2)))
    block.rstrip()
    return block


# --- answers ---------------------------------------------------------------------------------------------------------


def print_answer(out: Console, line: AnswerLine) -> None:
    """Print an answer in a few lines: which side was preferred, and how the two differed."""
    mark = f"{line.ordinal:>3}. {line.reply:<11}  "
    for text in (text for one in line.differences for text in filled(one.split(" "), max(out.width - len(mark), 20))):
        out.print(cell(f"{mark}{text}"))
        mark = " " * len(mark)


def lottery_of(problem: Presentable, option: Option) -> Lottery:
    """Return what the problem shows of an option, in the order a person reads it."""
    return heaviest_first(problem.show(option))


# --- the recommendation ----------------------------------------------------------------------------------------------


def print_guide(out: Console, guide: Guide) -> None:
    """Print what to do when."""
    out.print(cell(guide.lead, "bold"))
    for line in guide.lines:
        for i, text in enumerate(filled(line.split(" "), max(out.width - 4, 20))):
            out.print(cell(f"{'    ' if i else '  - '}{text}"))
    if guide.covered:
        out.print(cell(guide.covered, "dim"))


def risk_block(card: Card, width: int) -> Text:
    """Return what really happens and how often, for each objective that varies; empty where nothing does."""
    block = Text()
    varying = [risk for risk in card.risks if not risk.always]
    if varying:
        block.append(f"{sentences.RISK}\n", style="bold")
    for risk in varying:
        for i, text in enumerate(filled(f"{risk.name}: {risk.words}".split(" "), max(width - 4, 16))):
            block.append(f"{'    ' if i else '  - '}{text}\n")
    if varying:
        block.append("\n".join(filled(card.basis.split(" "), width)), style="dim")
    return block


def print_recommendation(out: Console, problem: Presentable, interview: Interview) -> None:
    """Print the recommended plan in words, the importance of each objective, how certain it is, and answers that do not fit."""
    recommendation = interview.recommendation
    found = result(problem, recommendation, lottery_of(problem, recommendation.option), interview.finished)
    out.print()
    out.rule(found.heading, align="left", style="dim", characters="-")
    if found.guide is not None:
        print_guide(out, found.guide)
    if found.lead:
        out.print(cell(found.lead))
    out.print(card_block(found.card, out.width))
    for story in found.card.stories:
        if story.labels:
            out.print(cell(", ".join(f"{key}: {text}" for key, text in story.labels)))
    if risk := risk_block(found.card, out.width):
        out.print(risk)
    made = table("", f">{found.average or 'comes to'}", "how much it matters to you")
    for row, importance in zip(found.amounts, found.importance, strict=True):
        made.add_row(cell(row.name), cell(row.amount), cell(f"{band_bar(importance.band)}{importance.words}"))
    out.print(made)
    if found.premise:
        out.print(cell(f"How much it matters: {found.premise}"))
    if found.own_choice:
        out.print(cell(found.own_choice, "bold"))
    out.print(cell(found.reason))
    for i, sentence in enumerate(found.certainty):
        out.print(cell(sentence, "" if i else "bold"))
    for sentence in filter(None, (found.runner_up, found.left_open, found.linear)):
        out.print(cell(sentence))
    if shape := curves_that_fit(problem, interview.answers):
        out.print(
            cell(f"No fixed weights fit all your answers, but curves do: {CURVES[shape]}. To go on with curves, add:")
        )
        out.print(cell(f"  --curves {shape}"))
    lines = lines_of(problem, interview)
    for words, chosen in (
        (sentences.DOUBTFUL, [line for line in lines if line.doubtful]),
        (sentences.UNEXPLAINED, [line for line in lines if line.unexplained]),
    ):
        if chosen:
            out.print(words, style="yellow")
        for line in chosen:
            print_answer(out, line)


def band_bar(band: tuple[float, float] | None) -> str:
    """Return a band of importance as a bar: from 0 to 100%, with what fits the answers marked.

    >>> band_bar((0.5, 0.75)), band_bar(None)
    ('|..........=====.....| ', '')
    """
    if band is None:
        return ""
    low = min(int(BAR * band[0]), BAR - 1)
    high = max(min(-int(-BAR * band[1] // 1), BAR), low + 1)
    return f"|{'.' * low}{'=' * (high - low)}{'.' * (BAR - high)}| "
