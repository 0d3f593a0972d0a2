from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.web import browsers
from tests.web.servers import Server


@pytest.fixture(scope="module")
def coffee(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that the tests of a module share."""
    folder: Path = tmp_path_factory.mktemp("coffee")
    with Server(folder, "serve", "coffee", "--strategy", "paper") as server:
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium that the tests of a module share; every test has a profile of its own."""
    if browsers.executable() is None and not os.environ.get("CI"):
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    with browsers.chromium() as made:
        yield made
