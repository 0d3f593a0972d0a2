"""Single keys from a terminal, without Enter; lines from any other stream."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import TextIO, TypeAlias

# Calls the function that prints the prompt, and returns the key; None where the prompt is already there.
NextKey: TypeAlias = Callable[[Callable[[], None] | None], str]

# What is returned at the end of the input.
END = ""

# A terminal sends a special key, such as an arrow, as several characters within this many seconds.
KEY_GAP = 0.05


@contextlib.contextmanager
def answers_from(stream: TextIO) -> Iterator[NextKey]:
    """Yield a function that returns the next key pressed, or the next line where the stream is not a terminal.

    It takes the function that prints the prompt, which it calls on a terminal only, and returns END at the end of the
    input. Keys pressed before the prompt are dropped, so that they cannot answer a question that was not seen. On exit,
    the terminal's settings are always restored.
    """
    if not stream.isatty():
        yield lambda prompt: _next_line(stream)
    elif sys.platform == "win32":
        yield _windows_key
    else:
        with _single_keys(stream.fileno()) as next_key:
            yield next_key


def _next_line(stream: TextIO) -> str:
    """Return the next line that is not empty, stripped."""
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
    import signal
    import termios
    import tty

    @contextlib.contextmanager
    def _single_keys(descriptor: int) -> Iterator[NextKey]:
        before = termios.tcgetattr(descriptor)

        def next_key(prompt: Callable[[], None] | None) -> str:
            tty.setcbreak(descriptor, termios.TCSADRAIN if prompt is None else termios.TCSAFLUSH)
            if prompt is not None:
                prompt()
            _wait_for_key(descriptor, signalled)
            return _posix_key(descriptor)

        # A shell sets the terminal as it likes it when the program is stopped and continued, while a key is waited for.
        # The system may hand the signal to any thread, and Python runs its handler in the main one: the pipe wakes it.
        signalled, wake = os.pipe()
        os.set_blocking(wake, False)
        waking_before = signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        continued = signal.signal(signal.SIGCONT, lambda *_: tty.setcbreak(descriptor, termios.TCSADRAIN))
        try:
            yield next_key
        finally:
            signal.signal(signal.SIGCONT, continued)
            signal.set_wakeup_fd(waking_before)
            os.close(signalled)
            os.close(wake)
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)

    def _wait_for_key(descriptor: int, signalled: int) -> None:
        """Return when there is something to read, after the handlers of all signals that came meanwhile."""
        while True:
            ready = select.select([descriptor, signalled], [], [])[0]
            if signalled in ready:
                os.read(signalled, 1024)
            elif ready:
                return

    def _posix_key(descriptor: int) -> str:
        """Return one key: a character, or the whole sequence of a special key."""
        try:
            first = os.read(descriptor, 1)
        except OSError:  # the terminal went away
            return END
        if first in (b"", b"\x04"):  # Ctrl-D
            return END
        rest = b""
        # The rest of a letter outside ASCII, or of a special key: an arrow ends with a letter that must not count.
        while (first == b"\x1b" or first[0] >= 0x80) and select.select([descriptor], [], [], KEY_GAP)[0]:
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
