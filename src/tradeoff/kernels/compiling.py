"""Compilation: at first use, for exactly the given types, and kept on disk for the next time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit


@cache
def _edition() -> str:
    """Return a name for the present text of all kernels."""
    text = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        text.update(path.read_bytes())
    return text.hexdigest()[:12]


def compiled(signature: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that compiles a kernel for exactly this signature, through the cache on disk if there is one."""

    def compile_now(function: Callable[..., Any]) -> Callable[..., Any]:
        # numba's cache notices changes of the file with the kernel, but not of those with its helpers: an upgrade could
        # run old code. So the name under which it is kept changes with all of them.
        function.__qualname__ += f"_{_edition()}"
        options: dict[str, Any] = {"nogil": True, "boundscheck": False, "error_model": "numpy"}
        try:
            kernel: Callable[..., Any] = njit(signature, cache=True, **options)(function)
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
            # Nowhere to write, neither beside this file nor in a home directory: slower to start, otherwise the same.
            kernel = njit(signature, **options)(function)
        return kernel

    return compile_now
