"""The layout of a question in a terminal: what differs on one screen, and everything else behind a key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from tradeoff.apps.cli.answering import SCALE_HELP, SCALE_PROMPT
from tradeoff.apps.cli.cards import card_block, filled, risk_block, shortened
from tradeoff.apps.cli.keys import NextKey
from tradeoff.apps.cli.output import cell
from tradeoff.errors import ArgumentError
from tradeoff.presentation import sentences
from tradeoff.presentation.cards import ComparisonRow, LabelRow, Pair
from tradeoff.presentation.menus import MenuTable
from tradeoff.presentation.problems import about
from tradeoff.problem import Presentable

if TYPE_CHECKING:
    from tradeoff.apps.cli.ask import LoggedInterview

PROMPT = ("a prefer A", "b prefer B", "= equal", "s skip", "u undo", "d details", "? help", "q quit")
BETWEEN = 2  # columns between the columns of the comparison
SIDE_BY_SIDE = 76  # columns; below this A stands above B in the details
MORE = "(d shows all)"


SHORTEST = 16  # rows; a screen with fewer scrolls
UNMEASURED = 24  # rows of a screen that is none

PAIR_KEYS = """
  a or b   the one you would rather have
  = or e   they are about equal to you
  s        skip: no conclusion is drawn, and something else is asked
  u        undo: take back the last answer
  d        details: both alternatives in full
  q        quit, with the best plan so far
"""


def screen_rows(out: Console) -> int:
    """Return how many rows a question may take."""
    return max(out.height, SHORTEST) if out.is_terminal else UNMEASURED


def help_text(problem: Presentable, keys: str = PAIR_KEYS) -> str:
    """Return what the keys mean, what is shown, and why it is asked."""
    told = [*sentences.explanation(problem.reference_name), *(text for _, text in about(problem))]
    return "\n".join([keys, *(f"{paragraph}\n" for paragraph in told)])


def open_screen(out: Console, what: RenderableType, next_key: NextKey, show: Callable[[], None]) -> None:
    """Print something else, a screen at a time, and then the question again."""
    lines = out.render_lines(what, pad=False)
    step = max(out.height, SHORTEST) - 1
    for start in range(0, len(lines), step):
        for line in lines[start : start + step]:
            out.print(Segments([*line, Segment.line()]), end="")
        last = start + step >= len(lines)
        words = "Any key: back to the question." if last else "Any key: more. q: back to the question."
        if out.is_terminal and next_key(partial(out.print, words, style="bold")).lower() == "q":
            break
    show()


def pair_keys(strengths: bool) -> str:
    """Return what the keys of a pair mean."""
    first, rest = PAIR_KEYS.lstrip("\n").split("\n", 1)
    return f"\n{first}{SCALE_HELP if strengths else ''}\n{rest}"


def prompt_lines(width: int, strengths: bool = False) -> list[str]:
    """Return the keys in as few lines as they fit."""
    prompt = (*PROMPT[:2], *SCALE_PROMPT, *PROMPT[2:]) if strengths else PROMPT
    return [line.strip() for line in filled([f"{one} " for one in prompt], width + 1)]


# --- on one screen ---------------------------------------------------------------------------------------------------


def question_lines(
    shown: Pair, heading: str, width: int, height: int, *, note: str = "", certainty: str = "", strengths: bool = False
) -> list[Text]:
    """Return a question in lines that fit the screen with the prompt below them; what does not fit is in the details."""
    *begin, last = filled(heading.split(" "), width)
    head = [cell(line, "dim") for line in (*begin, f"{last} ".ljust(width, "-")[:width])]
    head += [cell(line, "bold") for line in filled(sentences.QUESTION.split(" "), width)]
    head += [cell(line) for line in filled(note.split(" "), width)] if note else []
    for letter, name in zip("AB", shown.names, strict=True):
        mark = Text(f" {letter} ", style="bold reverse")
        head.append(mark.append_text(cell(f" {shortened(name, width - 4)}", "not reverse")))
    table = partial(_comparison, average=shown.average, width=width)
    left = height - len(prompt_lines(width, strengths))
    return fitted(head, shown, table, width, left, shared_by="both", certainty=certainty)


def fitted(
    head: list[Text],
    shown: Pair | MenuTable,
    table: Callable[[list[Any]], list[Text]],
    width: int,
    height: int,
    *,
    shared_by: str,
    certainty: str,
) -> list[Text]:
    """Return a question in at most so many lines: of what differs, the smallest differences give way first.

    ``table`` lays rows out; ``shared_by`` says who shares what is the same. How sure the recommendation is already, and
    what the objectives are, stand where there is room for all of it.
    """
    every: list[Any] = [*shown.differing, *shown.other]
    rows: list[Any] = [*sorted(shown.differing, key=lambda row: -row.part), *shown.other]
    same = ", ".join(f"{name} {text}" for name, text in shown.same)
    same_lines = folded(f"same for {shared_by}: {same}", width, 2) if same else []
    for count in range(len(rows), -1, -1):
        left_out = len(rows) - count
        lines = table([row for row in every if row in rows[:count]])
        lines += [cell(f"{left_out} more differ less {MORE}", "dim")] if left_out else []
        if len(head) + len(lines) + len(same_lines) <= height or not count:
            break
    lines = [*head, *lines, *(cell(line) for line in same_lines)]
    below = [cell(line, "dim") for line in filled(certainty.split(" "), width)] if certainty else []
    told = [f"{row.name}: {row.description}" for row in shown.differing if row.description]
    legend = [cell(line, "dim") for one in told for line in filled(one.split(" "), width)]
    for extra in (below, legend):
        if len(lines) + len(extra) <= height:
            lines += extra
    if len(lines) < height:
        lines = [Text(), *lines]  # apart from what was said before
    return lines[:height]


def took_back(logged: LoggedInterview, out: Console, possible: str) -> bool:
    """Take the last answer back; where there is none, say so and which keys are possible, and return False."""
    try:
        logged.undo()
    except ArgumentError as error:
        out.print(cell(f"{error}; {possible}"))
        return False
    out.print("Took back the last answer.")
    return True


def folded(text: str, width: int, most: int) -> list[str]:
    """Return a text in at most so many lines; if it is cut, it says which key shows all."""
    lines = filled(text.split(" "), width)
    if len(lines) <= most:
        return lines
    last = shortened(" ".join(lines[most - 1 :]), width - len(MORE) - 1)
    return [*lines[: most - 1], f"{last} {MORE}"]


def _comparison(rows: Sequence[ComparisonRow | LabelRow], average: str, width: int) -> list[Text]:
    """Return the rows as a table if it fits the width, and otherwise one below the other."""
    if not rows:
        return []
    header = (average, "A", "B", "which is better" if isinstance(rows[0], ComparisonRow) else "")
    cells = [header, *map(_cells, rows)]
    widths = [max(cell_len(text) for text in column) for column in zip(*cells, strict=True)]
    if sum(widths) + BETWEEN * 3 > width:
        return [line for row in rows for line in _stacked(row, width)]
    lines = [_line(header, widths, "dim", "")]
    for row, texts in zip(rows, cells[1:], strict=True):
        lines.append(_line(texts, widths, "", row.better if isinstance(row, ComparisonRow) else ""))
    return lines


def _cells(row: ComparisonRow | LabelRow) -> tuple[str, str, str, str]:
    if isinstance(row, LabelRow):
        return row.name, *row.texts, ""
    return row.name, *row.amounts, f"{row.better}: {row.difference}"


def _line(texts: Sequence[str], widths: Sequence[int], style: str, better: str) -> Text:
    line = Text(style=style)
    for i, (text, width) in enumerate(zip(texts, widths, strict=True)):
        padding = " " * (width - cell_len(text))
        bold = i in (1, 2) and "AB"[i - 1] == better
        line.append_text(cell(f"{padding}{text}" if i in (1, 2) else f"{text}{padding}", "bold" if bold else ""))
        line.append(" " * BETWEEN if i < 3 else "")
    line.rstrip()
    return line


def _stacked(row: ComparisonRow | LabelRow, width: int) -> list[Text]:
    """Return a row in two lines, or more where its texts are long."""
    name, a, b, which = _cells(row)
    lines = folded(f"{name}: A {a}, B {b}", width, 2)
    below = folded(which, width - 2, 2) if which else []
    return [*(cell(line) for line in lines), *(cell(f"  {line}", "dim") for line in below)]


# --- in full ---------------------------------------------------------------------------------------------------------


def question_details(shown: Pair, width: int) -> RenderableType:
    """Return everything there is to see of a question: both sides in full, every amount, what each objective is."""
    parts: list[RenderableType] = [
        cell(f"{letter}: {name}", "bold") for letter, name in zip("AB", shown.names, strict=True)
    ]
    parts += [cell(shown.lead)] if shown.lead else []
    if all(card.title for card in shown.cards):
        pass  # the names say it all
    elif width < SIDE_BY_SIDE:
        for letter, card in zip("AB", shown.cards, strict=True):
            parts += [Text(f"{letter}:", style="bold reverse"), card_block(card, width), risk_block(card, width)]
    else:
        side = (width - 7) // 2
        columns = Table(box=box.SQUARE, border_style="dim")
        for letter in "AB":
            columns.add_column(letter, width=side, header_style="bold reverse")
        columns.add_row(*(card_block(card, side) for card in shown.cards), end_section=True)
        if any(card.risks for card in shown.cards):
            columns.add_row(*(risk_block(card, side) for card in shown.cards))
        parts.append(columns)
    for row in shown.rows:
        a, b = row.amounts
        told = f"A {a}, B {b} ({row.better}: {row.difference})" if row.better else f"{a} for both"
        parts.append(cell(f"{row.name}: {told}; {row.goal}"))
        parts += [cell(f"  {row.description}", "dim")] if row.description else []
    for label in shown.labels:
        a, b = label.texts
        parts.append(cell(f"{label.name}: A {a}, B {b}" if label.differs else f"{label.name}: {a} for both"))
    return Group(*parts)
