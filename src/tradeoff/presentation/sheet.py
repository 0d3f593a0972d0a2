"""A plan as one SVG file: the drawings of the page, with its stories and averages as lines of text around them."""

from __future__ import annotations

import re
from functools import cache

from tradeoff.model import Alternative, Lottery
from tradeoff.presentation import svg
from tradeoff.presentation.cards import AmountRow, Card, amounts, card
from tradeoff.presentation.maps import WIDTH as MAP_WIDTH
from tradeoff.presentation.maps import map_layout
from tradeoff.presentation.notebook import shortened
from tradeoff.presentation.sentences import plan_lead
from tradeoff.presentation.stories import common_total, heaviest_first, is_certain
from tradeoff.presentation.svg import number, text
from tradeoff.presentation.text import one_line, wrap
from tradeoff.problem import Presentable

WIDTH, MARGIN, GAP = 640.0, 16.0, 10.0
LARGE, MIDDLE, SMALL = 18.0, 14.0, 12.0  # font sizes
LINE = 1.35  # of the font size, from line to line
ARRAY = 120.0  # the width of the icon array
FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', Helvetica, Arial, sans-serif"


class Sheet:
    """What is drawn so far, and how far down the next line goes."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.y = MARGIN

    def write(
        self, words: str, *, x: float = MARGIN, size: float = MIDDLE, name: str = "ink", bold: bool = False
    ) -> None:
        """Write a paragraph, wrapped to the width of the sheet, and move below it."""
        weight = ' font-weight="bold"' if bold else ""
        for line in wrap(words, WIDTH - MARGIN - x, size, bold):
            y = self.y + 0.95 * size
            self.parts.append(
                f'<text class="{name}" x="{number(x)}" y="{number(y)}" font-size="{number(size)}"{weight}>{text(line)}</text>'
            )
            self.y += LINE * size

    def place(self, drawing: svg.Svg, x: float, width: float, height: float) -> None:
        """Put a drawing here, without moving."""
        size = f'x="{number(x)}" y="{number(self.y)}" width="{number(width)}" height="{number(height)}"'
        self.parts.append(drawing.replace("<svg ", f"<svg {size} ", 1))


def plan_svg(problem: Presentable, alternative: Alternative, lottery: Lottery) -> str:
    """Return the text of an SVG file that shows an alternative, told as a lottery: all text escaped, nothing loaded."""
    lottery = heaviest_first(lottery)
    shown, sheet = card(problem, lottery, common_total(lottery)), Sheet()
    sheet.write(problem.title, size=LARGE, bold=True)
    sheet.write(plan_lead(lottery), name="soft")
    sheet.y += GAP
    _drawings(sheet, problem, shown)
    for i, story in enumerate(shown.stories):
        if story.share:
            sheet.place(svg.icon(i), MARGIN, MIDDLE, MIDDLE + 2)
            sheet.write(story.share, x=MARGIN + 22, bold=True)
        steps = " › ".join(shortened([part.words() for part in story.parts]))
        sheet.write(f"as above, but {steps}" if story.like_above else steps, x=MARGIN + 22)
        for pairs in filter(None, (story.labels, story.amounts)):
            sheet.write(", ".join(f"{name} {value}" for name, value in pairs), x=MARGIN + 22, size=SMALL, name="soft")
        sheet.y += GAP
    sheet.write("What it comes to" if is_certain(lottery) else "On average", size=LARGE, bold=True)
    for row in amounts(problem, alternative):
        _amount(sheet, row)
    sheet.y += MARGIN
    size = f'width="{number(WIDTH)}" height="{number(sheet.y)}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {number(WIDTH)} {number(sheet.y)}" role="img" '
        f'font-family="{FONTS}">\n<title>{text(problem.title)}</title>\n<desc>{text(shown.summary)}</desc>\n'
        f'<style>{style()}</style>\n<rect class="paper" {size}/>\n' + "\n".join(sheet.parts) + "\n</svg>\n"
    )


def _drawings(sheet: Sheet, problem: Presentable, shown: Card) -> None:
    """Draw how often each story happens and where it leads, side by side."""
    layout, x, below = map_layout(problem), MARGIN, sheet.y
    words = one_line(shown.summary)
    if shown.total is not None:
        sheet.place(svg.icon_array(shown.counts, shown.total, words), x, ARRAY, ARRAY)
        x, below = x + ARRAY + 2 * GAP, sheet.y + ARRAY + GAP
    drawn = layout and svg.map_of(layout, [story.states for story in shown.stories], words)
    if layout and drawn:
        sheet.parts.append(svg.map_defs(layout))
        sheet.place(drawn, x, MAP_WIDTH, layout.height)
        below = max(below, sheet.y + layout.height + GAP)
    sheet.y = below


def _amount(sheet: Sheet, row: AmountRow) -> None:
    """Draw an amount as a bar on the scale of everything attainable."""
    sheet.y += GAP / 2
    sheet.write(f"{row.name}: {row.amount} ({row.goal})")
    sheet.place(svg.bar(row.value, row.scale, True), MARGIN, WIDTH - 2 * MARGIN, 9)
    sheet.y += 9 + GAP / 2


@cache
def style() -> str:
    """Return the style sheet of drawings with its variables filled in: few programs other than browsers know them."""
    rules = (svg.STATIC / "drawing.css").read_text(encoding="utf-8")
    values = dict(re.findall(r"--([a-z0-9]+): (#[0-9a-f]+);", rules))
    rules = re.sub(r"(?s)/\*.*?\*/|:root \{.*?\}", "", rules).strip()
    rules += "\n.paper { fill: var(--card); } .ink { fill: var(--ink); } .soft { fill: var(--faint); }"
    return re.sub(r"var\(--([a-z0-9]+)\)", lambda found: values[found[1]], rules)
