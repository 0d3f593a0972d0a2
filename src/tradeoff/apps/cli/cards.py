"""The layout of questions and recommendations in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tradeoff.apps.cli.output import cell, table
from tradeoff.model import Alternative, Lottery, Recommendation
from tradeoff.presentation import sentences
from tradeoff.presentation.cards import Card, ComparisonRow, pair
from tradeoff.presentation.numbers import counted
from tradeoff.presentation.plans import Guide
from tradeoff.presentation.result import AnswerLine, result
from tradeoff.presentation.stories import Story, heaviest_first
from tradeoff.problem import Presentable

NARROW = 76  # columns; below this A stands above B
SHORTEST, LONGEST = 24, 40  # lines a question may take, as far as the terminal has them
FEWEST = 2  # lines of a story, however many there are
ARROW = " > "
BAR = 30  # characters of a full bar


# --- stories ---------------------------------------------------------------------------------------------------------


def story_lines(story: Story, width: int, most: int | None = None) -> list[str]:
    """Return what is done in at most so many lines: steps in the middle give way to their number."""
    count = len(story.parts)
    for left_out in range(max(1, count - 1)):
        head = (count - left_out + 1) // 2
        lines = _filled(story, head, count - left_out - head, width)
        if most is None or len(lines) <= most:
            return lines
    lines = _filled(story, 1, 0, width)
    return [*lines[: most - 1], shortened(" ".join(lines[most - 1 :]), width)] if most else lines


def _filled(story: Story, head: int, tail: int, width: int) -> list[str]:
    """Return the lines with only so many parts at the beginning and at the end."""
    middle = story.parts[head : len(story.parts) - tail]
    steps = sum(len(part.steps) * part.times for part in middle)
    shown = [part.words(ARROW) for part in story.parts[:head]]
    shown += [f"... {counted(steps, 'more step')} ..."] if steps else []
    shown += [part.words(ARROW) for part in story.parts[len(story.parts) - tail :]]
    opening = (f"{story.share}: " if story.share else "") + ("as above, but " if story.like_above else "")
    return filled(f"{opening}{ARROW.join(shown)}".split(" "), width)


def outcome_lines(story: Story, width: int, whole: bool) -> list[str]:
    """Return what a story comes to, as lines that keep an amount with its name."""
    items = [f"{name} {amount}" for name, amount in story.amounts] + ([story.chance] if whole and story.chance else [])
    return filled([f"{item}," for item in items[:-1]] + items[-1:], width)


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


def card_block(card: Card, width: int, lines: int | None = None) -> Text:
    """Return a card as a block of this width, of about so many lines: each story with its share and outcome."""
    below = [outcome_lines(story, width - 2, whole=lines is None) for story in card.stories]
    room = [len(story_lines(story, width)) for story in card.stories]
    # The longest stories give way first, down to two lines.
    while lines is not None and sum(room) + sum(map(len, below)) > lines and max(room) > FEWEST:
        room[room.index(max(room))] -= 1
    block = Text()
    for story, most, outcome in zip(card.stories, room, below, strict=True):
        text = "\n".join(story_lines(story, width, most))
        bold = text.find(":") if story.share else len(text)
        block.append(text[:bold], style="bold").append(f"{text[bold:]}\n")
        block.append("".join(f"  {line}\n" for line in outcome))
    block.rstrip()
    return block


# --- questions -------------------------------------------------------------------------------------------------------


def print_question(out: Console, problem: Presentable, left: Alternative, right: Alternative, heading: str) -> None:
    """Print a question: A and B beside each other (or one above the other), and how they differ."""
    shown = pair(problem, left, right, (_lottery(problem, left), _lottery(problem, right)))
    lines = (min(max(out.height, SHORTEST), LONGEST) if out.is_terminal else LONGEST) - len(shown.differing) - 11
    out.print()
    out.rule(cell(heading), align="left", style="dim", characters="-")
    out.print(Text(f"{sentences.QUESTION} {shown.lead}".rstrip(), style="bold"))
    if out.width < NARROW:
        for letter, card in zip("AB", shown.cards, strict=True):
            out.print(Text(f"{letter}:", style="bold reverse"))
            out.print(card_block(card, out.width, lines // 2))
    else:
        width = (out.width - 7) // 2
        columns = Table(box=box.SQUARE, show_lines=False, border_style="dim")
        for letter in "AB":
            columns.add_column(letter, width=width, header_style="bold reverse")
        columns.add_row(*(card_block(card, width, lines) for card in shown.cards))
        out.print(columns)
    print_comparison(out, shown.differing, shown.average)
    if shown.same:
        out.print(cell(f"same for both: {', '.join(f'{row.name} {row.amounts[0]}' for row in shown.same)}"))


def print_comparison(out: Console, rows: Sequence[ComparisonRow], heading: str) -> None:
    """Print the amount of each objective on both sides, and which is better by how much."""
    if not rows:
        return
    narrow = out.width < NARROW
    made = Table(box=None, pad_edge=False, padding=(0, 2 if narrow else 3, 0, 0))
    for name in (heading, "A", "B", "which is better"):
        made.add_column(name, justify="right" if len(name) == 1 else "left")
    for row in rows:
        amounts = [
            cell(text, "bold" if letter == row.better else "") for letter, text in zip("AB", row.amounts, strict=True)
        ]
        made.add_row(cell(row.name), *amounts, cell(f"{row.better}: {row.number if narrow else row.gap} {row.word}"))
    out.print(made)


def print_answer(out: Console, line: AnswerLine) -> None:
    """Print an answer in a few lines: which side was preferred, and how the two differed."""
    mark = f"{line.ordinal:>3}. {line.choice:<11}  "
    for text in (text for one in line.differences for text in filled(one.split(" "), max(out.width - len(mark), 20))):
        out.print(cell(f"{mark}{text}"))
        mark = " " * len(mark)


def _lottery(problem: Presentable, alternative: Alternative) -> Lottery:
    return heaviest_first(problem.show(alternative))


# --- the recommendation ----------------------------------------------------------------------------------------------


def print_guide(out: Console, guide: Guide) -> None:
    """Print what to do when."""
    out.print(cell(guide.lead, "bold"))
    for line in guide.lines:
        for i, text in enumerate(filled(line.split(" "), max(out.width - 4, 20))):
            out.print(cell(f"{'    ' if i else '  - '}{text}"))
    if guide.covered:
        out.print(cell(guide.covered, "dim"))


def print_risks(out: Console, card: Card) -> None:
    """Print how often what really happens, a line for each objective that varies."""
    varying = [risk for risk in card.risks if not risk.always]
    if varying:
        out.print(cell(sentences.RISK, "bold"))
    for risk in varying:
        lines = filled(f"{risk.name}: {risk.words}".split(" "), max(out.width - 4, 20))
        for i, text in enumerate(lines):
            out.print(cell(f"{'    ' if i else '  - '}{text}"))
    if varying:
        out.print(cell(card.basis, "dim"))


def print_recommendation(out: Console, problem: Presentable, recommendation: Recommendation, finished: bool) -> None:
    """Print the recommended plan in words, the importance of each objective, and how certain it is."""
    found = result(problem, recommendation, _lottery(problem, recommendation.alternative), finished)
    out.print()
    out.rule(found.heading, align="left", style="dim", characters="-")
    if found.lead:
        out.print(cell(found.lead))
    out.print(card_block(found.card, out.width))
    for story in found.card.stories:
        if story.labels:
            out.print(cell(", ".join(f"{key}: {text}" for key, text in story.labels)))
    if found.guide is not None:
        print_guide(out, found.guide)
    print_risks(out, found.card)
    made = table("", f">{found.average or 'comes to'}", "how much it matters to you")
    for row, importance in zip(found.amounts, found.importance, strict=True):
        bar = f"{'#' * round(BAR * importance.share)} {importance.percent}".strip()
        made.add_row(cell(row.name), cell(row.amount), cell(bar if importance.matters else sentences.CANNOT_CHANGE))
    out.print(made)
    out.print(cell(found.reason))
    for i, sentence in enumerate(found.certainty):
        out.print(cell(sentence, "" if i else "bold"))
    for sentence in filter(None, (found.runner_up, found.left_open)):
        out.print(cell(sentence))
    if found.doubtful:
        out.print(cell(f"{sentences.DOUBTFUL} answer {', '.join(map(str, found.doubtful))}."), style="yellow")
