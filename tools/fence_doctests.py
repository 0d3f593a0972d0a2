"""A Griffe extension for the documentation site: shows doctests in docstrings as code instead of block quotes."""

from __future__ import annotations

import re
from typing import Any

import griffe

# A paragraph that begins with a prompt, up to the next blank line.
DOCTEST = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)


class FenceDoctests(griffe.Extension):
    """Put a fence around each doctest when an object with a docstring is read."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of one object."""
        if obj.docstring and ">>> " in obj.docstring.value:
            obj.docstring.value = DOCTEST.sub(lambda found: f"```pycon\n{found[0]}\n```", obj.docstring.value)
