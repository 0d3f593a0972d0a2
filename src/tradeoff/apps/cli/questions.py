"""A question in a terminal: what differs on one screen, answered by single keys, and everything else behind a key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.segment import Segment, Segments
from rich.text import Text

from tradeoff.apps.cli import keys
from tradeoff.apps.cli.cards import card_block, filled, lottery_of, risk_block, shortened
from tradeoff.apps.cli.keys import NextKey
from tradeoff.apps.cli.output import cell
from tradeoff.errors import ArgumentError
from tradeoff.log import ShownQuestion
from tradeoff.model import EQUAL, SKIP, Reply
from tradeoff.presentation import sentences
from tradeoff.presentation.problems import about
from tradeoff.presentation.question import LabelRow, ObjectiveRow, QuestionTable, question_table, reply_sentence
from tradeoff.presentation.result import certificate_while_asking
from tradeoff.problem import Presentable

if TYPE_CHECKING:
    from tradeoff.apps.cli.ask import LoggedInterview

BETWEEN = 2  # columns between the columns of the table
MORE = "(d shows all)"
SHORTEST = 16  # rows; a screen with fewer scrolls
UNMEASURED = 24  # rows of a screen that is none

OTHER_KEYS = """
  = or e   they are about equal to you
  s        skip: no conclusion is drawn, and something else is asked
  u        undo the last answer
  d        details: all options in full
  q        quit, with the best option so far
"""


class QuestionScreen:
    """A question on the screen, with its details and the help a key away."""

    def __init__(self, logged: LoggedInterview, problem: Presentable, shown: ShownQuestion, out: Console) -> None:
        lotteries = [lottery_of(problem, option) for option in shown.options]
        self.problem, self.out, self.shown = problem, out, shown
        self.table = question_table(problem, shown.options, shown.question.asks, lotteries)
        recommendation = logged.interview.recommendation
        self.heading = sentences.progress(logged.number, logged.interview.at_most, recommendation.expected_left)
        self.note = sentences.ASKED_AGAIN if shown.again else ""
        self.certainty = certificate_while_asking(recommendation)

    @property
    def keys(self) -> dict[str, int]:
        """The key of each place."""
        return {name.lower(): place for place, name in enumerate(self.table.places)}

    def show(self) -> None:
        """Print the question."""
        rows = max(self.out.height, SHORTEST) if self.out.is_terminal else UNMEASURED
        lines = question_lines(self.table, self.heading, self.out.width, rows, note=self.note, certainty=self.certainty)
        for line in lines:
            self.out.print(line)

    def prompt(self, best: int | None) -> None:
        """Print which keys there are; ``best`` is the place that was chosen already."""
        for line in prompt_lines(self.table, self.out.width, best):
            self.out.print(line, style="bold")

    def help(self) -> Text:
        """Return what the keys mean, what is shown, and why it is asked."""
        first, last = self.table.places[0].lower(), self.table.places[-1].lower()
        both = "first the best, then the worst of them"
        what = "the one you would rather have" if self.table.is_pair else both
        explained = sentences.explanation(self.problem.reference_name, chance=bool(self.table.average))
        told = [*explained, *(text for _, text in about(self.problem))]
        keys_help = f"\n  {first} to {last}   {what}{OTHER_KEYS}"
        return cell("\n".join([keys_help, *(f"{paragraph}\n" for paragraph in told)]))


def ask_question(
    logged: LoggedInterview, shown: ShownQuestion, problem: Presentable, out: Console, next_key: NextKey
) -> bool:
    """Show a question and take keys until one moves the interview on; return False when it is to end here.

    Where the best and the worst are asked for, a line may have both, as in "2 4".
    """
    screen = QuestionScreen(logged, problem, shown, out)
    screen.show()
    both, prompted = screen.table.asks == "best-worst", False
    best: int | None = None
    waiting: list[str] = []  # the rest of a line that names several places
    while True:
        key = waiting.pop(0) if waiting else next_key(None if prompted else partial(screen.prompt, best)).lower()
        prompted = True
        places = key.replace(",", " ").split()
        if len(places) == 2 and both and best is None and all(place in screen.keys for place in places):
            key, waiting = places[0], places[1:]
        match key:
            case "=" | "e" | "s":
                return _record(logged, shown, SKIP if key == "s" else EQUAL, out)
            case "u" if best is not None:
                best, prompted = None, False
            case "u":
                if undo_last(logged, out, possible_keys(screen.table, best)):
                    return True
            case "d":
                open_screen(out, question_details(screen.table, out.width), next_key, screen.show)
                prompted = False
            case "?":
                open_screen(out, screen.help(), next_key, screen.show)
                prompted = False
            case "q" | keys.END:
                return False
            case _ if screen.keys.get(key, best) != best:
                place = screen.keys[key]
                if not both:
                    return _record(logged, shown, Reply(place), out)
                if best is not None:
                    return _record(logged, shown, Reply(best, place), out)
                best, prompted = place, False
            case _:
                named = repr(key) if key.isprintable() else "that key"
                out.print(cell(f"{named} is not an answer; {possible_keys(screen.table, best)}"))
                waiting = []


def _record(logged: LoggedInterview, shown: ShownQuestion, placed: Reply, out: Console) -> bool:
    """Record a reply by places, and print what it was."""
    logged.tell(shown.by_position(placed))
    out.print(reply_sentence(placed, len(shown.options)))
    return True


def undo_last(logged: LoggedInterview, out: Console, possible: str) -> bool:
    """Undo the last answer; where there is none, say so and which keys are possible, and return False."""
    try:
        logged.undo()
    except ArgumentError as error:
        out.print(cell(f"{error}; {possible}"))
        return False
    out.print("Undid the last answer.")
    return True


def possible_keys(table: QuestionTable, best: int | None = None) -> str:
    """Return which keys can be pressed."""
    if best is not None:
        return f"press the number of the worst (not {table.places[best]}), or u to choose the best again"
    which = "a, b" if table.is_pair else f"1 to {len(table.places)}"
    return f"press {which}, = (about equal), s (skip), u (undo), d (details), ? (help) or q (quit)"


def prompt_lines(table: QuestionTable, width: int, best: int | None = None) -> list[str]:
    """Return the keys in as few lines as they fit."""
    if best is None:
        which = ["a prefer A", "b prefer B"] if table.is_pair else [f"1-{len(table.places)} the best"]
        words = [*which, "= equal", "s skip", "u undo", "d details", "? help", "q quit"]
    else:
        others = ", ".join(place for i, place in enumerate(table.places) if i != best)
        words = [f"{table.places[best]} is best.", f"Which is worst? {others}", "u choose the best again", "q quit"]
    return [line.strip() for line in filled([f"{word} " for word in words], width + 1)]


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


# --- on one screen ---------------------------------------------------------------------------------------------------


def question_lines(
    table: QuestionTable, heading: str, width: int, height: int, *, note: str = "", certainty: str = ""
) -> list[Text]:
    """Return a question in lines that fit the screen with the prompt below them.

    What does not fit is in the details; of what differs, the smallest differences give way first. How sure the recommendation
    is already, and what the objectives are, stand where there is room for all of it.
    """
    head = _head(table, heading, width, note)
    prompts = [None] if table.asks == "best" else [None, 0]  # one below the other
    height -= sum(len(prompt_lines(table, width, best)) for best in prompts)
    every: list[ObjectiveRow | LabelRow] = [*table.differing, *table.differing_labels]
    largest_first: list[ObjectiveRow | LabelRow] = [
        *sorted(table.differing, key=lambda row: -row.part),
        *table.differing_labels,
    ]
    same = ", ".join(f"{name} {text}" for name, text in table.same)
    same_lines = folded(table.nearly_same, width, 2) if table.nearly_same else []
    same_lines += folded(f"same for {table.shared_by}: {same}", width, 2) if same else []
    for count in range(len(every), -1, -1):
        left_out = len(every) - count
        lines = _columns(table, [row for row in every if row in largest_first[:count]], width)
        lines += [cell(f"{left_out} more differ less {MORE}", "dim")] if left_out else []
        if len(head) + len(lines) + len(same_lines) <= height or not count:
            break
    lines = [*head, *lines, *(cell(line) for line in same_lines)]
    below = [cell(line, "dim") for line in filled(certainty.split(" "), width)] if certainty else []
    told = [f"{row.name}: {row.description}" for row in table.differing if row.description]
    legend = [cell(line, "dim") for words in told for line in filled(words.split(" "), width)]
    for extra in (below, legend):
        if len(lines) + len(extra) <= height:
            lines += extra
    if len(lines) < height:
        lines = [Text(), *lines]  # apart from what was said before
    return lines[:height]


def _head(table: QuestionTable, heading: str, width: int, note: str) -> list[Text]:
    """Return the progress, the question and the names of the options."""
    *begin, last = filled(heading.split(" "), width)
    head = [cell(line, "dim") for line in (*begin, f"{last} ".ljust(width, "-")[:width])]
    head += [cell(line, "bold") for line in filled(table.words.split(" "), width)]
    head += [cell(line) for line in filled(note.split(" "), width)] if note else []
    for place, name in zip(table.places, table.names, strict=True):
        mark = Text(f" {place} ", style="bold reverse")
        head.append(mark.append_text(cell(f" {shortened(name, width - 4)}", "not reverse")))
    return head


def folded(text: str, width: int, most: int) -> list[str]:
    """Return a text in at most so many lines; if it is cut, it says which key shows all."""
    lines = filled(text.split(" "), width)
    if len(lines) <= most:
        return lines
    last = shortened(" ".join(lines[most - 1 :]), width - len(MORE) - 1)
    return [*lines[: most - 1], f"{last} {MORE}"]


def _columns(table: QuestionTable, rows: Sequence[ObjectiveRow | LabelRow], width: int) -> list[Text]:
    """Return the options in columns, the best amounts bold; row by row where that is too wide."""
    if not rows:
        return []
    which = ["which is better"] if table.is_pair and isinstance(rows[0], ObjectiveRow) else []
    header = [table.average, *table.places, *which]
    cells = [_cells(table, row)[: len(header)] for row in rows]
    widths = [max(cell_len(text) for text in column) for column in zip(header, *cells, strict=True)]
    if sum(widths) + BETWEEN * (len(widths) - 1) > width:
        return [line for row in rows for line in _stacked(table, row, width)]
    lines = [_line(header, widths, len(table.places), frozenset(), "dim")]
    for row, texts in zip(rows, cells, strict=True):
        best = row.best if isinstance(row, ObjectiveRow) else frozenset()
        lines.append(_line(texts, widths, len(table.places), best, ""))
    return lines


def _cells(table: QuestionTable, row: ObjectiveRow | LabelRow) -> list[str]:
    if isinstance(row, LabelRow):
        return [row.name, *row.texts, ""]
    return [row.name, *row.amounts, f"{row.better}: {row.comparative}" if table.is_pair else ""]


def _line(texts: Sequence[str], widths: Sequence[int], places: int, best: frozenset[int], style: str) -> Text:
    line = Text(style=style)
    for i, (text, width) in enumerate(zip(texts, widths, strict=True)):
        padding = " " * (width - cell_len(text))
        is_amount = 1 <= i <= places
        line.append_text(cell(f"{padding}{text}" if is_amount else f"{text}{padding}", "bold" if i - 1 in best else ""))
        line.append(" " * BETWEEN if i < len(texts) - 1 else "")
    line.rstrip()
    return line


def _stacked(table: QuestionTable, row: ObjectiveRow | LabelRow, width: int) -> list[Text]:
    """Return a row in a few lines, one place after the other."""
    name, *texts, which = _cells(table, row)
    told = ", ".join(f"{place} {text}" for place, text in zip(table.places, texts, strict=True))
    lines = folded(f"{name}: {told}", width, 2)
    below = folded(which, width - 2, 2) if which else []
    return [*(cell(line) for line in lines), *(cell(f"  {line}", "dim") for line in below)]


# --- in full ---------------------------------------------------------------------------------------------------------


def question_details(table: QuestionTable, width: int) -> RenderableType:
    """Return everything there is to see of a question: every option in full, and what each objective is."""
    parts: list[RenderableType] = [cell(table.lead)] if table.lead else []
    for place, name, card in zip(table.places, table.names, table.cards, strict=True):
        parts.append(cell(f"{place}: {name}", "bold"))
        if not card.title:
            parts += [card_block(card, width), risk_block(card, width)]
    every: list[ObjectiveRow | LabelRow] = [*table.rows, *table.labels]
    for row in every:
        texts = row.amounts if isinstance(row, ObjectiveRow) else row.texts
        told = ", ".join(f"{place} {text}" for place, text in zip(table.places, texts, strict=True))
        told = told if row.differs else f"{texts[0]} for {table.shared_by}"
        if isinstance(row, LabelRow):
            parts.append(cell(f"{row.name}: {told}"))
            continue
        which = f" ({row.better}: {row.comparative})" if table.is_pair and row.differs else ""
        parts.append(cell(f"{row.name}: {told}{which}; {row.goal}"))
        parts += [cell(f"  {row.description}", "dim")] if row.description else []
    return Group(*parts)
