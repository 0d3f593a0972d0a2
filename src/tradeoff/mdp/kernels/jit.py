"""Compile kernels for exactly the given types, and cache them on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from numba import njit

P = ParamSpec("P")
R = TypeVar("R")


@cache
def _edition() -> str:
    """Return a name for the current source of all kernels."""
    text = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        text.update(path.read_bytes())
    return text.hexdigest()[:12]


def compiled(signature: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that compiles a kernel for exactly this signature, through the cache on disk if there is one."""

    def compile_now(function: Callable[..., Any]) -> Callable[..., Any]:
        # numba's cache notices changes to the file with the kernel, but not to those with its helpers: after an upgrade,
        # old code could run. So the name in the cache depends on all of them.
        function.__qualname__ += f"_{_edition()}"
        options: dict[str, Any] = {"nogil": True, "boundscheck": False, "error_model": "numpy"}
        try:
            kernel: Callable[..., Any] = njit(signature, cache=True, **options)(function)
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
            # No writable folder, neither beside this file nor in a home directory: starting is slower, nothing else.
            kernel = njit(signature, **options)(function)
        return kernel

    return compile_now


def compiled_when_called(signature: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator like ``compiled`` for a kernel that is compiled, or loaded, on its first call."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @cache
        def kernel() -> Callable[..., Any]:
            return compiled(signature)(function)

        @wraps(function)
        def call(*given: P.args, **_: P.kwargs) -> R:
            result: R = kernel()(*given)
            return result

        return call

    return decorate
