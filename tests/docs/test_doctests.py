"""Every example in a docstring runs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import tradeoff

MODULES = [m.name for m in pkgutil.walk_packages(tradeoff.__path__, "tradeoff.")]


@pytest.mark.parametrize("name", ["tradeoff", *MODULES])
def test_docstrings(name: str) -> None:
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0
