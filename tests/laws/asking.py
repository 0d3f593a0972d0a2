"""The strategies and problems that laws 3, 4, 6 and 7 are tested on: what people get, on fresh problem objects."""

from __future__ import annotations

from typing import Any

from tradeoff.testing.strategies import small_problems

ASKING: dict[str, tuple[str, dict[str, Any]]] = {
    "paper": ("paper", {}),
    "spanner": ("paper", {"basis": "spanner"}),
    "certified": ("certified", {}),
    "careful": ("careful", {}),
}
PROBLEMS = small_problems()
