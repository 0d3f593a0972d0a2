"""Checks for authors of stores, problems and strategies; each raises an AssertionError that says what is wrong."""

from tradeoff.testing.problems import check_problem
from tradeoff.testing.stores import check_store
from tradeoff.testing.strategies import check_strategy

__all__ = ["check_problem", "check_store", "check_strategy"]
