"""Tests of what can be loaded."""

from typing import Any


def average(result: dict[str, Any]) -> dict[str, float]:
    """Return what the plan that ``ask --json`` recommends comes to on average, by objective."""
    return {part["objective"]: part["amount"] for part in result["recommendation"]["option"]["average"]}
