from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.servers import Server


@pytest.fixture(scope="module")
def coffee(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that the tests of a module share."""
    folder: Path = tmp_path_factory.mktemp("coffee")
    with Server(folder, "serve", "coffee", "--strategy", "paper") as server:
        yield server
