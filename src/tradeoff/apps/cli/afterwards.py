"""After the last question: the ranking, why not another one, and what if something mattered more, a key each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from rich.console import Console, Group, RenderableType
from rich.segment import Segment, Segments
from rich.text import Text

from tradeoff.apps.cli import keys
from tradeoff.apps.cli.cards import filled, shortened
from tradeoff.apps.cli.keys import NextKey
from tradeoff.apps.cli.output import cell, working
from tradeoff.decisions import Ranking, ranking, what_if, why_not
from tradeoff.errors import ArgumentError
from tradeoff.interview import Interview
from tradeoff.presentation.answers import lines_of
from tradeoff.presentation.ranking import RankingRow, WhyNot, ordinals, ranking_table, why_not_words
from tradeoff.presentation.result import what_ifs
from tradeoff.presentation.text import one_line
from tradeoff.problem import Presentable

LAST_PROMPT = "r ranking   w why not another one   i what if   u undo   any other key: end"
WHICH = "Which one? Type its name, or its place in the ranking, and press Enter:"
SHORTEST = 16  # rows; a screen with fewer scrolls


def look_around(interview: Interview, problem: Presentable, out: Console, next_key: NextKey) -> bool:
    """Let a person look at the result from all sides; return whether the last answer is to be taken back."""
    found: Ranking | None = None
    undoable = bool(interview.answers)
    while True:
        words = LAST_PROMPT if undoable else LAST_PROMPT.replace("u undo   ", "")
        lines = [words] if len(words) <= out.width else filled(words.split("   "), max(out.width, 20))
        prompt = Text("\n".join(lines), style="bold")
        match next_key(partial(out.print, prompt)).lower():
            case "r" | "w" as pressed:
                if found is None:
                    with working("Comparing ..."):
                        found = ranking(interview)
                if pressed == "r":
                    page(out, ranking_block(problem, interview, found, out.width), next_key)
                    continue
                name = typed(out, next_key)
                if name:
                    try:
                        page(out, why_not_block(problem, interview, name, found, out.width), next_key)
                    except ArgumentError as error:
                        out.print(cell(f"{error}"))
            case "i":
                page(out, what_if_block(problem, interview, out.width), next_key)
            case "u" if undoable:
                return True
            case _:
                return False


def page(out: Console, what: RenderableType, next_key: NextKey) -> None:
    """Print something, a screen at a time."""
    lines = out.render_lines(what, pad=False)
    step = max(out.height, SHORTEST) - 2
    for start in range(0, len(lines), step):
        for line in lines[start : start + step]:
            out.print(Segments([*line, Segment.line()]), end="")
        if start + step < len(lines):
            words = partial(out.print, "Any key: more. q: enough.", style="bold")
            if next_key(words).lower() == "q":
                break


def typed(out: Console, next_key: NextKey) -> str:
    """Return a line that is typed key by key, shown as it is typed; "" if nothing was."""
    line = ""
    prompt: Callable[[], None] | None = partial(out.print, WHICH, style="bold")
    while True:
        key = next_key(prompt)
        prompt = None
        if key in ("\n", "\r", keys.END, "\x1b"):
            out.print()
            return "" if key == "\x1b" else line.strip()
        if key in ("\x7f", "\b"):
            line = line[:-1]
            out.file.write("\b \b")
        elif key.isprintable():
            line += key
            out.file.write(key)
        out.file.flush()


# --- what is printed -------------------------------------------------------------------------------------------------


def ranking_block(problem: Presentable, interview: Interview, ranked: Ranking, width: int) -> Group:
    """Return the ranking as a block of this width."""
    told = ranking_table(problem, ranked, ordinals(interview))
    parts: list[RenderableType] = []
    for row in told.rows:
        parts += _row_lines(row, width)
    said = [line for words in (told.order, told.basis) for line in filled(words.split(" "), width)]
    return Group(*parts, *(cell(line, "dim") for line in said))


def _row_lines(row: RankingRow, width: int) -> Iterator[Text]:
    """Return an option in a few lines: its name and shares, then what is better and worse about it."""
    right = f"{row.best}, loses {row.loss}"
    name = f"{row.place}. {row.name}{f' ({row.note})' if row.note else ''}"
    if len(name) + len(right) + 3 <= width:
        yield Text.assemble(cell(name.ljust(width - len(right)), "bold"), cell(right))
    else:
        yield cell(shortened(name, width), "bold")
        yield from (cell(f"   {line}") for line in filled(right.split(" "), width - 3))
    yield from _sides(row.wins, row.loses, width)


def _sides(wins: Sequence[str], loses: Sequence[str], width: int) -> Iterator[Text]:
    for word, found in (("better", wins), ("worse", loses)):
        items = [f"{one}," for one in found[:-1]] + list(found[-1:])
        for i, line in enumerate(filled(items, max(width - 11, 20))):
            yield cell(f"   {f'{word}:' if i == 0 else '':<7} {line}")


def why_not_block(problem: Presentable, interview: Interview, name: str, ranked: Ranking, width: int) -> Group:
    """Return why something is not what is recommended; the answers that say so are quoted."""
    numbers = ordinals(interview)
    found = why_not_words(problem, why_not(interview, name, ranked), ranked, numbers, interview.recommendation.weights)
    return Group(*why_not_lines(problem, interview, found, width))


def why_not_lines(problem: Presentable, interview: Interview, found: WhyNot, width: int) -> Iterator[Text]:
    """Return the facts, then the sentences, then the answers that they name."""
    yield cell(shortened(f"Why not {found.name}?", width), "bold")
    yield from _sides(found.wins, found.loses, width)
    for sentence in found.sentences:
        yield from map(cell, filled(sentence.split(" "), width))
    for line in lines_of(problem, interview):
        if line.ordinal in found.answers:
            told = f"Answer {line.ordinal}. {line.sentence} {'; '.join(line.differences)}"
            yield from (cell(f"   {text}", "dim") for text in filled(told.split(" "), max(width - 3, 20)))


def what_if_block(problem: Presentable, interview: Interview, width: int) -> Group:
    """Return what would be recommended for each share of importance of each objective."""
    recommendation = interview.recommendation
    changed = what_ifs(problem, recommendation, what_if(problem, recommendation))
    parts: list[RenderableType] = []
    for change in changed:
        name = one_line(change.name)
        if len(change.switches) == 1:
            parts.append(cell(f"However much {name} mattered, nothing would change.", "bold"))
            continue
        parts.append(cell(f"Best for each share that {name} could have of all importance:", "bold"))
        for switch in change.switches:
            told = [f"{one_line(row.amount.name)} {row.change}" for row in switch.rows if row.change]
            details = " (as recommended)" if switch.recommended else f" ({', '.join(told)})" if told else ""
            words = f"{switch.share}: {switch.plan}{details}"
            parts += [cell(f"   {line}") for line in filled(words.split(" "), max(width - 3, 20))]
    return Group(*parts)
