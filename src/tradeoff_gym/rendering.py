"""Pictures of the states of an environment, rendered by the environment on first use."""

from __future__ import annotations

import os
import struct
import threading
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class RenderedStates(Mapping[str, bytes]):
    """The picture of each state as PNG, rendered on first use.

    A state that the environment cannot render is missing (KeyError). The environment is not pickled, so a copy in another
    process has no pictures.
    """

    def __init__(self, env: Any, states: Sequence[str], saved: Sequence[dict[str, Any]]) -> None:
        """``env``: unwrapped, with render_mode "rgb_array"; ``saved``: the attributes that put it into each state."""
        self._env, self._states, self._saved = env, states, saved
        self._number: dict[str, int] = {}
        self._drawn: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[str]:
        return iter(self._states)

    def __getitem__(self, state: str) -> bytes:
        with self._lock:
            if not self._number:
                self._number = {name: i for i, name in enumerate(self._states)}
            if state not in self._drawn:
                number = self._number[state]
                try:
                    self._drawn[state] = png(self._draw(self._saved[number]))
                except Exception as error:
                    raise KeyError(f"the environment cannot draw {state!r}: {error}") from error
            return self._drawn[state]

    def __contains__(self, state: object) -> bool:
        return state in self._states

    def _draw(self, saved: dict[str, Any]) -> Any:
        """Return the environment's picture of a state, and leave the environment as it was."""
        for device in ("SDL_VIDEODRIVER", "SDL_AUDIODRIVER"):  # open no window
            os.environ.setdefault(device, "dummy")
        attributes = vars(self._env)
        before = {name: attributes[name] for name in saved if name in attributes}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                attributes.update(saved)
                return self._env.render()
            finally:
                for name in saved:
                    attributes.pop(name, None)
                attributes.update(before)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[()]]:
        return dict, ()


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Return an image [height, width, 3] as a PNG file.

    >>> png(np.zeros((2, 3, 3), dtype=np.uint8))[:4]
    b'\\x89PNG'
    """
    image = np.ascontiguousarray(pixels, dtype=np.uint8)
    if image.ndim != 3 or image.shape[2] != 3:
        raise ValueError(f"an image of shape {image.shape} is not height x width x 3 colours")
    height, width, _ = image.shape
    lines = np.zeros((height, 1 + 3 * width), dtype=np.uint8)  # each line begins with 0, "not filtered"
    lines[:, 1:] = image.reshape(height, 3 * width)
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines.tobytes(), 6)),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )
