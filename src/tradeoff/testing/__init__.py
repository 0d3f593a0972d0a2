"""Checks for authors of stores, problems and strategies; each raises an AssertionError that says what is wrong."""

from tradeoff.testing.problems import check_problem
from tradeoff.testing.stores import check_store

__all__ = ["check_problem", "check_store"]
