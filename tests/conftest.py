import os
import uuid
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests import postgresql

settings.register_profile("ci", deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("dev", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci" if os.environ.get("CI") else "dev")


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """A real PostgreSQL; where it is not installed its tests are skipped, but never on the machine that decides."""
    if postgresql.programs() is None and not os.environ.get("CI"):
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    with postgresql.server() as address:
        yield address


@pytest.fixture
def postgresql_address(postgresql_server: str) -> str:
    """The address of a fresh database."""
    return postgresql.new_database(postgresql_server, f"test_{uuid.uuid4().hex}")
