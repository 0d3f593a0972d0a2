"""Single keys from a terminal, without Enter; lines from anything else."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import TextIO, TypeAlias

# Prints the prompt with what it is given, and returns the key; None where the prompt is still there from before.
NextKey: TypeAlias = Callable[[Callable[[], None] | None], str]

# What is read when there is nothing more to read.
END = ""

# A terminal sends a special key, such as an arrow, as several characters at once: they come within this many seconds.
TOGETHER = 0.05


@contextlib.contextmanager
def answers_from(stream: TextIO) -> Iterator[NextKey]:
    """Give a function that returns the next key pressed, or the next line where the stream is no terminal.

    It takes what prints the prompt, which it calls on a terminal only, and returns END when nothing more can come.
    Keys that were pressed before the prompt are dropped, so that nobody answers a question they have not seen. The
    terminal is put back as it was on the way out, whatever happens.
    """
    if not stream.isatty():
        yield lambda prompt: _next_line(stream)
    elif sys.platform == "win32":
        yield _windows_key
    else:
        with _single_keys(stream.fileno()) as next_key:
            yield next_key


def _next_line(stream: TextIO) -> str:
    """Return the next line that is not empty, without spaces at its ends."""
    for line in stream:
        if line.strip():
            return line.strip()
    return END


if sys.platform == "win32":

    def _windows_key(prompt: Callable[[], None] | None) -> str:
        import msvcrt

        if prompt is not None:
            while msvcrt.kbhit():
                msvcrt.getwch()
            prompt()
        key = msvcrt.getwch()
        if key == "\x03":
            raise KeyboardInterrupt
        if key in "\x00\xe0":  # a special key; its second half says which
            return key + msvcrt.getwch()
        return END if key == "\x1a" else key

else:
    import select
    import termios
    import tty

    @contextlib.contextmanager
    def _single_keys(descriptor: int) -> Iterator[NextKey]:
        before = termios.tcgetattr(descriptor)

        def next_key(prompt: Callable[[], None] | None) -> str:
            # Each time anew: the program may have been stopped and continued, which gives the terminal back.
            tty.setcbreak(descriptor, termios.TCSADRAIN if prompt is None else termios.TCSAFLUSH)
            if prompt is not None:
                prompt()
            return _posix_key(descriptor)

        try:
            yield next_key
        finally:
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)

    def _posix_key(descriptor: int) -> str:
        """Return one key: a character, or the whole sequence of a special key."""
        try:
            first = os.read(descriptor, 1)
        except OSError:  # the terminal went away
            return END
        if first in (b"", b"\x04"):  # Ctrl-D
            return END
        rest = b""
        # The rest of a letter outside ASCII, or of a special key: an arrow ends with a letter that is no answer.
        while (first == b"\x1b" or first[0] >= 0x80) and select.select([descriptor], [], [], TOGETHER)[0]:
            more = os.read(descriptor, 1)
            if not more:
                break
            rest += more
            if first == b"\x1b" and len(rest) > 1 and 0x40 <= more[0] <= 0x7E:
                break
            if first[0] >= 0x80 and len(rest) >= _following(first[0]):
                break
        return (first + rest).decode("utf-8", errors="replace")

    def _following(lead: int) -> int:
        """Return how many bytes follow the first one of a character in UTF-8."""
        return 1 if lead < 0xE0 else 2 if lead < 0xF0 else 3
