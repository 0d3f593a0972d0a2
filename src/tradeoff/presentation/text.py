"""Texts that are safe to show wherever they come from, and the room that they take in a drawing."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

BOLD = 1.12  # how much wider bold letters are
UNKNOWN = "\ufffd"
LONGEST = 120  # characters of a name that are shown

# Widths in em that no common sans-serif letter exceeds (the widest of them are Verdana's and DejaVu's).
_NARROW = dict.fromkeys("ijlI.,:;'|!-()[]/\\ tfr·", 0.46)
_WIDE = dict.fromkeys("mwMW%@…—œæŒÆ", 1.08) | dict.fromkeys("ABCDEFGHKLNOPQRSTUVXYZ+=<>#~&^−→", 0.85)
_WIDTHS = {chr(code): 0.66 for code in range(32, 127)} | _NARROW | _WIDE


def one_line(text: str) -> str:
    """Return a text on one line, with white space as spaces and without control characters, which XML cannot hold."""
    if text.isprintable():
        return text
    return "".join(" " if c.isspace() else c if c.isprintable() else UNKNOWN for c in text)


def without_controls(text: str) -> str:
    """Return a text, lines kept, without the characters that could steer a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else UNKNOWN for c in text)


def clipped(text: str, longest: int = LONGEST) -> str:
    """Return a text on one line of at most so many characters, with an ellipsis where it was cut."""
    return one_line(text if len(text) <= longest else f"{text[: longest - 1]}…")


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text, which are separated by empty lines."""
    return [one_line(part.strip()) for part in text.replace("\r\n", "\n").split("\n\n") if part.strip()]


# --- in drawings -----------------------------------------------------------------------------------------------------


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Return the width that a line of text needs at most, in any common sans-serif font of this size."""
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
    for word in one_line(text).split():
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
