"""The keys that answer a pair, with or without how much better one is, and the question of that after a menu."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from rich.console import Console

from tradeoff.apps.cli import keys
from tradeoff.apps.cli.output import cell
from tradeoff.log import PairReply, Said, Shown
from tradeoff.menus import Graded, Strength
from tradeoff.model import Answer

if TYPE_CHECKING:
    from tradeoff.apps.cli.keys import NextKey

SIDES: dict[str, Said] = {"a": "left", "b": "right", "=": "same", "e": "same", "s": "skip"}
# From one end to the other, with "about equal" in the middle.
SCALE: dict[str, tuple[Said, Strength]] = {
    "1": ("left", "a lot"),
    "2": ("left", "a little"),
    "3": ("right", "a little"),
    "4": ("right", "a lot"),
}
SCALE_PROMPT = ("1 A by a lot", "2 A by a little", "3 B by a little", "4 B by a lot")
SCALE_HELP = """
  1        A, and it is a lot better
  2        A, but it is only a little better
  3        B, but it is only a little better
  4        B, and it is a lot better"""

MUCH: dict[str, Strength | None] = {"1": "a lot", "2": "a little", "0": None}  # of the best of a menu over its worst
MUCH_KEYS = "press 1 (a lot), 2 (a little), 0 (rather not say) or u (choose again)"


def is_answer(key: str, strengths: bool) -> bool:
    """Return whether a key answers a pair."""
    return key in SIDES or (strengths and key in SCALE)


def reply_by(key: str, shown: Shown) -> PairReply:
    """Return the reply that a key gives to a pair."""
    if key in SIDES:
        return shown.reply(SIDES[key])
    side, strength = SCALE[key]
    answer = shown.reply(side)
    assert isinstance(answer, Answer)
    return Graded(answer, strength)


def possible(strengths: bool) -> str:
    """Return which keys can be pressed at a pair."""
    scale = "1 to 4 (by how much), " if strengths else ""
    return f"press a, b, {scale}= (about equal), s (skip), u (undo), d (details), ? (help) or q (quit)"


def hear_how_much(best: int, worst: int, out: Console, next_key: NextKey) -> tuple[str, Strength | None]:
    """Ask how much better one place of a menu is than another; return the key that ended it, and the strength."""
    words = f"How much better is {best + 1} than {worst + 1}? 1 a lot  2 a little  0 rather not say  u choose again"
    prompt: Callable[[], None] | None = partial(out.print, cell(words, "bold"))
    while True:
        key = next_key(prompt).lower()
        if key in MUCH or key in ("u", "q", keys.END):
            return key, MUCH.get(key)
        prompt = None
        named = repr(key) if key.isprintable() else "that key"
        out.print(cell(f"{named} is not an answer; {MUCH_KEYS}"))
