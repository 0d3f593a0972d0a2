"""A tiny picture language: rectangles, lines, circles and texts on a sheet, drawn as SVG or as PNG.

Lengths are pixels, x to the right and y downwards. The SVG is written here, with every text escaped, no scripts, no
style sheets and nothing that is loaded from elsewhere; the PNG needs matplotlib.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias
from xml.sax.saxutils import escape, quoteattr

from tradeoff.errors import ArgumentError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Anchor: TypeAlias = Literal["start", "middle", "end"]
Box: TypeAlias = tuple[float, float, float, float]  # left, top, right, bottom

FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', Helvetica, Arial, sans-serif"
ASCENT, DESCENT, LEADING = 0.95, 0.25, 1.35  # of the font size: above and below the baseline, and from line to line
BOLD = 1.12  # how much wider bold letters are
WIDEST_PNG = 30_000  # pixels either way; matplotlib draws nothing beyond 65,535

# Widths in em that no common sans-serif letter exceeds (the widest of them are Verdana's and DejaVu's).
_NARROW = dict.fromkeys("ijlI.,:;'|!-()[]/\\ tfr·", 0.46)
_WIDE = dict.fromkeys("mwMW%@…—œæŒÆ", 1.08) | dict.fromkeys("ABCDEFGHKLNOPQRSTUVXYZ+=<>#~&^−→", 0.85)
_WIDTHS = {chr(code): 0.66 for code in range(32, 127)} | _NARROW | _WIDE


@dataclass(frozen=True)
class Rectangle:
    """A rectangle by its upper left corner, filled, with an outline where a stroke is given."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    stroke: str = "none"


@dataclass(frozen=True)
class Line:
    """A line through points."""

    points: tuple[tuple[float, float], ...]
    stroke: str
    width: float = 1.0


@dataclass(frozen=True)
class Circle:
    """A circle by its middle, filled, with an outline of two pixels where a stroke is given."""

    x: float
    y: float
    radius: float
    fill: str
    stroke: str = "none"


@dataclass(frozen=True)
class Text:
    """One line of text; y is its baseline. Characters that could steer anything are shown as a question mark box."""

    x: float
    y: float
    text: str
    size: float = 14.0
    fill: str = "#000000"
    bold: bool = False
    anchor: Anchor = "start"

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", inert(self.text))

    @property
    def box(self) -> Box:
        """The room the text takes at most: left, top, right, bottom."""
        width = text_width(self.text, self.size, self.bold)
        left = self.x - {"start": 0.0, "middle": width / 2, "end": width}[self.anchor]
        return left, self.y - ASCENT * self.size, left + width, self.y + DESCENT * self.size


Shape: TypeAlias = Rectangle | Line | Circle | Text


@dataclass(frozen=True)
class Picture:
    """A sheet with shapes, the later ones on top, and what it shows in words for those who cannot see it."""

    width: float
    height: float
    shapes: tuple[Shape, ...]
    title: str
    description: str = ""
    background: str = "#ffffff"

    @property
    def texts(self) -> tuple[Text, ...]:
        """The lines of text, in reading order."""
        return tuple(shape for shape in self.shapes if isinstance(shape, Text))

    def svg(self) -> str:
        """Return the picture as the text of an SVG file."""
        size = f'width="{_number(self.width)}" height="{_number(self.height)}"'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {_number(self.width)} '
                f'{_number(self.height)}" role="img" font-family={quoteattr(FONTS)}>',
                f"<title>{escape(inert(self.title))}</title>",
                f"<desc>{escape(inert(self.description))}</desc>",
                _svg(Rectangle(0, 0, self.width, self.height, self.background)),
                *map(_svg, self.shapes),
                "</svg>\n",
            ]
        )

    def png(self, path: str | Path, zoom: float = 2.0) -> None:
        """Write the picture as a PNG file, ``zoom`` dots to a pixel; this needs matplotlib."""
        try:
            from matplotlib import rc_context
            from matplotlib.figure import Figure
        except ImportError as error:
            raise ArgumentError(
                "drawing a PNG needs matplotlib, which is not installed; install the extra 'plot' "
                "(in a clone: pip install '.[plot]'), or write an SVG, which needs nothing"
            ) from error
        import warnings

        zoom = min(zoom, WIDEST_PNG / max(self.width, self.height))
        about = {"Title": inert(self.title), "Description": inert(self.description)}
        # Settings of the person's own that would crop the sheet, or hand the names to LaTeX, do not count here.
        with rc_context({"savefig.bbox": None, "text.usetex": False}), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            figure = Figure(figsize=(self.width / 72, self.height / 72))
            axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
            axes.set_xlim(0, self.width)
            axes.set_ylim(self.height, 0)
            axes.set_axis_off()
            for order, shape in enumerate(self.shapes):
                _paint(axes, shape, order)
            figure.savefig(path, format="png", dpi=72 * zoom, facecolor=self.background, metadata=about)


# --- texts -----------------------------------------------------------------------------------------------------------


def inert(text: str) -> str:
    """Return a text with white space as single characters and without control characters, which XML cannot hold."""
    return "".join(" " if c.isspace() else c if c.isprintable() else "\ufffd" for c in text)


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Return the width in pixels that a line of text needs at most, in any common sans-serif font."""
    return sum(map(_em, text)) * size * (BOLD if bold else 1.0)


@lru_cache(maxsize=4096)
def _em(character: str) -> float:
    if character in _WIDTHS:
        return _WIDTHS[character]
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.25  # Chinese, Japanese, Korean, emoji
    # Accented letters are as wide as the letter below the accent.
    base = unicodedata.normalize("NFD", character)[0]
    return _WIDTHS.get(base, 1.25)


def wrap(text: str, width: float, size: float, bold: bool = False) -> list[str]:
    """Return the text in lines that fit the width; a word that is too long by itself is broken."""
    lines: list[str] = []
    line = ""
    for word in inert(text).split():
        joined = f"{line} {word}" if line else word
        if text_width(joined, size, bold) <= width:
            line = joined
            continue
        if line:
            lines.append(line)
        *full, line = _pieces(word, width, size, bold)
        lines += full
    return [*lines, line] if line or not lines else lines


def _pieces(word: str, width: float, size: float, bold: bool) -> list[str]:
    pieces, piece, used = [], "", 0.0
    for character in word:
        needed = text_width(character, size, bold)
        if piece and used + needed > width:
            pieces.append(piece)
            piece, used = "", 0.0
        piece, used = piece + character, used + needed
    return [*pieces, piece]


# --- backends --------------------------------------------------------------------------------------------------------


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _svg(shape: Shape) -> str:
    match shape:
        case Rectangle():
            place = _attributes(x=shape.x, y=shape.y, width=shape.width, height=shape.height)
            return f"<rect {place} {_attributes(fill=shape.fill, stroke=shape.stroke)}/>"
        case Line():
            points = " ".join(f"{_number(x)},{_number(y)}" for x, y in shape.points)
            look = _attributes(stroke=shape.stroke, stroke_width=shape.width, stroke_linejoin="round")
            return f'<polyline points={quoteattr(points)} fill="none" {look}/>'
        case Circle():
            look = _attributes(fill=shape.fill, stroke=shape.stroke, stroke_width=2)
            return f"<circle {_attributes(cx=shape.x, cy=shape.y, r=shape.radius)} {look}/>"
        case Text():
            look = _attributes(x=shape.x, y=shape.y, font_size=shape.size, fill=shape.fill)
            look += ' font-weight="bold"' * shape.bold
            if shape.anchor != "start":
                look += f" {_attributes(text_anchor=shape.anchor)}"
            return f"<text {look}>{escape(shape.text)}</text>"


def _attributes(**values: str | float) -> str:
    return " ".join(
        f"{name.replace('_', '-')}={quoteattr(value if isinstance(value, str) else _number(value))}"
        for name, value in values.items()
    )


def _paint(axes: Axes, shape: Shape, order: int) -> None:
    """Draw a shape with matplotlib. There are 72 pixels to the inch, so that a pixel is a point."""
    from matplotlib import patches

    match shape:
        case Rectangle():
            size = (shape.width, shape.height)
            axes.add_patch(
                patches.Rectangle(
                    (shape.x, shape.y), *size, facecolor=shape.fill, edgecolor=shape.stroke, linewidth=1, zorder=order
                )
            )
        case Line():
            xs, ys = zip(*shape.points, strict=True)
            axes.plot(
                xs, ys, color=shape.stroke, linewidth=shape.width, solid_joinstyle="round", zorder=order, clip_on=False
            )
        case Circle():
            middle = (shape.x, shape.y)
            axes.add_patch(
                patches.Circle(
                    middle, shape.radius, facecolor=shape.fill, edgecolor=shape.stroke, linewidth=2, zorder=order
                )
            )
        case Text():
            axes.text(
                shape.x, shape.y, shape.text, fontsize=shape.size, color=shape.fill, zorder=order,
                fontweight="bold" if shape.bold else "normal", fontfamily="DejaVu Sans", va="baseline",
                ha={"start": "left", "middle": "center", "end": "right"}[shape.anchor], parse_math=False,
            )  # fmt: skip
