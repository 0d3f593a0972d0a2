"""Error messages by what they name, not by how they say it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def refused(error: type[Exception], *facts: object) -> Iterator[None]:
    """Fail unless this error is raised with a message that holds each of these facts: names, values, files, remedies."""
    with pytest.raises(error) as caught:
        yield
    missing = [fact for fact in map(str, facts) if fact not in str(caught.value)]
    assert not missing, f"{str(caught.value)!r} does not name {missing}"
