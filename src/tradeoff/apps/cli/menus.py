"""A menu in a terminal: the alternatives in columns on one screen, answered by the keys of their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.text import Text

from tradeoff.apps.cli import keys
from tradeoff.apps.cli.answering import hear_how_much
from tradeoff.apps.cli.cards import card_block, filled, lottery_of, risk_block, shortened
from tradeoff.apps.cli.output import cell
from tradeoff.apps.cli.questions import BETWEEN, fitted, help_text, open_screen, screen_rows, took_back
from tradeoff.log import ShownMenu
from tradeoff.menus import Choice, Strength, graded
from tradeoff.presentation.menus import MenuLabels, MenuRow, MenuTable, menu_table, said_words
from tradeoff.presentation.result import certificate_while_asking
from tradeoff.presentation.sentences import progress
from tradeoff.problem import Presentable

if TYPE_CHECKING:
    from tradeoff.apps.cli.ask import LoggedInterview
    from tradeoff.apps.cli.keys import NextKey

KEYS_HELP = """
  1 to {count}   {what}
  = or e   they are all about equal to you
  s        skip: no conclusion is drawn, and something else is asked
  u        undo: choose the best again, or take back the last answer
  d        details: all alternatives in full
  q        quit, with the best plan so far
"""


class MenuScreen:
    """A menu on the screen, with its details and the help a key away."""

    def __init__(self, logged: LoggedInterview, problem: Presentable, shown: ShownMenu, out: Console) -> None:
        lotteries = [lottery_of(problem, one) for one in shown.alternatives]
        self.problem, self.out = problem, out
        self.table = menu_table(problem, shown.alternatives, shown.question.asks, lotteries)
        found = logged.interview.recommendation
        self.heading = progress(logged.number, logged.interview.at_most, found.expected_left)
        self.certainty = certificate_while_asking(found)

    @property
    def count(self) -> int:
        """How many alternatives there are."""
        return len(self.table.names)

    def show(self) -> None:
        """Print the menu."""
        for line in menu_lines(
            self.table, self.heading, self.out.width, screen_rows(self.out), certainty=self.certainty
        ):
            self.out.print(line)

    def prompt(self, best: int | None) -> None:
        """Print which keys there are; ``best`` is the place that was chosen already."""
        for line in prompt_lines(self.count, self.out.width, best):
            self.out.print(line, style="bold")


def hear_menu(logged: LoggedInterview, shown: ShownMenu, problem: Presentable, out: Console, next_key: NextKey) -> bool:
    """Show a menu and take keys until one moves the interview on; return False when it is to end here.

    The first number is the best and the second the worst; a line may have both, as in "2 4".
    """
    screen = MenuScreen(logged, problem, shown, out)
    screen.show()
    both, asked = screen.table.asks == "best-worst", False
    best: int | None = None
    waiting: list[str] = []  # numbers of a line that are still to be taken
    while True:
        key = waiting.pop(0) if waiting else next_key(None if asked else partial(screen.prompt, best)).lower()
        asked = True
        numbers = key.replace(",", " ").split() if " " in key.strip() or "," in key else [key]
        if len(numbers) == 2 and both and best is None and all(map(str.isdecimal, numbers)):
            key, waiting = numbers[0], numbers[1:]
        match key:
            case "=" | "e" | "s":
                choice = None if key == "s" else Choice.about_equal(screen.count)
                return _told(logged, out, shown, choice)
            case "u" if best is not None:
                best, asked = None, False
            case "u":
                if took_back(logged, out, possible_keys(screen.count, best)):
                    return True
            case "d":
                open_screen(out, menu_details(screen.table, out.width), next_key, screen.show)
                asked = False
            case "?":
                what = "first the best, then the worst of them" if both else "the best of them"
                told = KEYS_HELP.format(count=screen.count, what=what)
                open_screen(out, cell(help_text(problem, told)), next_key, screen.show)
                asked = False
            case "q" | keys.END:
                return False
            case _ if key.isdecimal() and 1 <= int(key) <= screen.count and int(key) - 1 != best:
                place = int(key) - 1
                if not both:
                    return _told(logged, out, shown, Choice.of_best(place, screen.count))
                if best is None:
                    best, asked = place, False
                    continue
                strength: Strength | None = None
                if logged.interview.state.strengths:
                    ended, strength = hear_how_much(best, place, out, next_key)
                    if ended in ("q", keys.END):
                        return False
                    if ended == "u":
                        best, asked = None, False
                        continue
                return _told(logged, out, shown, Choice.of_best_and_worst(best, place, screen.count), strength)
            case _:
                named = repr(key) if key.isprintable() else "that key"
                out.print(cell(f"{named} is not an answer; {possible_keys(screen.count, best)}"))
                waiting = []


def _told(
    logged: LoggedInterview, out: Console, shown: ShownMenu, placed: Choice | None, strength: Strength | None = None
) -> bool:
    """Record a choice of places, and say what it was."""
    logged.tell(None if placed is None else graded(shown.by_number(placed), strength))
    out.print(said_words(placed, strength))
    return True


def possible_keys(count: int, best: int | None) -> str:
    """Return which keys can be pressed."""
    if best is None:
        return f"press 1 to {count}, = (about equal), s (skip), u (undo), d (details), ? (help) or q (quit)"
    return f"press the number of the worst (not {best + 1}), or u to choose the best again"


def prompt_lines(count: int, width: int, best: int | None = None) -> list[str]:
    """Return the keys in as few lines as they fit."""
    if best is None:
        words = [f"1-{count} the best", "= equal", "s skip", "u undo", "d details", "? help", "q quit"]
    else:
        others = ", ".join(str(i + 1) for i in range(count) if i != best)
        words = [f"{best + 1} is best.", f"Which is worst? {others}", "u choose the best again", "q quit"]
    return [line.strip() for line in filled([f"{one} " for one in words], width + 1)]


# --- on one screen ---------------------------------------------------------------------------------------------------


def menu_lines(shown: MenuTable, heading: str, width: int, height: int, *, certainty: str = "") -> list[Text]:
    """Return a menu in lines that fit the screen with the prompt below them; what does not fit is in the details."""
    *begin, last = filled(heading.split(" "), width)
    head = [cell(line, "dim") for line in (*begin, f"{last} ".ljust(width, "-")[:width])]
    head += [cell(line, "bold") for line in filled(shown.question.split(" "), width)]
    for number, name in enumerate(shown.names, start=1):
        mark = Text(f" {number} ", style="bold reverse")
        head.append(mark.append_text(cell(f" {shortened(name, width - 4)}", "not reverse")))
    prompt = sum(len(prompt_lines(len(shown.names), width, best)) for best in (None, 0))  # one below the other
    table = partial(_columns, average=shown.average, width=width)
    return fitted(head, shown, table, width, height - prompt, shared_by="all", certainty=certainty)


def _columns(rows: Sequence[MenuRow | MenuLabels], average: str, width: int) -> list[Text]:
    """Return the alternatives in columns, the best amounts bold; row by row where that is too wide."""
    if not rows:
        return []
    cells = [(row.name, *(row.amounts if isinstance(row, MenuRow) else row.texts)) for row in rows]
    header = (average, *(str(i) for i in range(1, len(cells[0]))))
    widths = [max(cell_len(text) for text in column) for column in zip(header, *cells, strict=True)]
    if sum(widths) + BETWEEN * (len(widths) - 1) > width:
        lines = []
        for row, texts in zip(rows, cells, strict=True):
            told = "; ".join(f"{i} {text}" for i, text in enumerate(texts[1:], start=1))
            lines += [cell(line) for line in filled(f"{row.name}: {told}".split(" "), width)]
        return lines
    lines = [_line(header, widths, frozenset(), "dim")]
    for row, texts in zip(rows, cells, strict=True):
        lines.append(_line(texts, widths, row.best if isinstance(row, MenuRow) else frozenset(), ""))
    return lines


def _line(texts: Sequence[str], widths: Sequence[int], best: frozenset[int], style: str) -> Text:
    line = Text(style=style)
    for i, (text, width) in enumerate(zip(texts, widths, strict=True)):
        padding = " " * (width - cell_len(text))
        padded = f"{text}{padding}" if i == 0 else f"{padding}{text}"
        line.append_text(cell(padded, "bold" if i - 1 in best else ""))
        line.append(" " * BETWEEN if i < len(texts) - 1 else "")
    line.rstrip()
    return line


def menu_details(shown: MenuTable, width: int) -> RenderableType:
    """Return everything there is to see of a menu: every alternative in full, and what each objective is."""
    parts: list[RenderableType] = []
    for number, (name, card) in enumerate(zip(shown.names, shown.cards, strict=True), start=1):
        parts.append(cell(f"{number}: {name}", "bold"))
        if not card.title:
            parts += [card_block(card, width), risk_block(card, width)]
    for row in shown.rows:
        told = ", ".join(f"{i} {text}" for i, text in enumerate(row.amounts, start=1))
        parts.append(cell(f"{row.name}: {told if row.differs else f'{row.amounts[0]} for all'}; {row.goal}"))
        parts += [cell(f"  {row.description}", "dim")] if row.description else []
    for label in shown.labels:
        told = ", ".join(f"{i} {text}" for i, text in enumerate(label.texts, start=1))
        parts.append(cell(f"{label.name}: {told if label.differs else f'{label.texts[0]} for all'}"))
    return Group(*parts)
