import os
import random
import uuid
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from tests import nginx, postgresql, processes
from tradeoff_cuda.card import absent

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

# How the tests are started must not matter: children get the default signals, and what people set for their own programs
# (colours, proxies, limits of tradeoff) does not reach the tests. Nothing here leaves this machine.
processes.restore_signals()
COLOURS = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES")
for name in list(os.environ):
    if (
        name in (*COLOURS, "BROWSER", "PYTHONWARNINGS")
        or name.startswith("TRADEOFF_")
        or name.lower().endswith("_proxy")
    ):
        del os.environ[name]

# Examples may take long on a busy machine. Where a change is judged (CI) the same examples are drawn each time, so that a
# failure is due to the change; elsewhere they are drawn anew, and those that failed are kept in .hypothesis and tried first.
slow = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "print_blob": True}
settings.register_profile("ci", max_examples=200, derandomize=True, **slow)
settings.register_profile("dev", max_examples=50, **slow)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

# Tests of a graphics card or of Ray are not collected where there is none, and the summary says so: they have not passed.
NOT_RUN = {
    "card": "CuPy is not installed" if find_spec("cupy") is None else absent(),
    "cluster": "Ray is not installed" if find_spec("ray") is None else "",
}
collect_ignore = [folder for folder, reason in NOT_RUN.items() if reason]


# Tests that are not of the first tier, by folder or file. The first tier is what `python -m pytest` runs.
TIERS = {
    "system": (
        "web", "apps/test_serve.py", "apps/test_study.py", "apps/test_ask_on_a_terminal.py", "apps/test_simulate.py",
        "apps/test_compile.py", "studies/test_kill.py", "studies/test_compute.py", "stores/test_one_writer.py",
        "stores/test_interrupted.py", "stores/test_sql.py", "stores/test_conformance.py", "docs/test_snippets.py",
        "simulation/test_run.py", "docs/test_site.py",
        "sources/test_checkers.py", "sources/test_environments.py", "sources/test_environment_budgets.py",
        "sources/test_budgets.py", "sources/test_fuzz.py", "sources/test_hostile.py", "card", "cluster",
    ),
    "calibration": ("calibration", "laws/test_law_9_people.py", "golden/interviews"),
    "soak": ("web/test_soak.py",),
}  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that is not of the first tier; the last entry that matches counts."""
    here = Path(__file__).parent
    for item in items:
        place = item.path.relative_to(here).as_posix() if item.path.is_relative_to(here) else ""
        tiers = [tier for tier, parts in TIERS.items() if any(place == p or place.startswith(f"{p}/") for p in parts)]
        if tiers:
            item.add_marker(tiers[-1])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for folder in collect_ignore:
        terminalreporter.write_line(f"not run: tests/{folder} ({NOT_RUN[folder]})")
    if nginx.PROGRAM is None:
        terminalreporter.write_line("not run: nginx in front of several servers (nginx is not installed)")


def pytest_runtest_setup() -> None:
    """Let what draws from the global generators draw the same numbers, whichever tests came before."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return none_skipped((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return none_skipped((yield))


def none_skipped(report: Report) -> Report:
    """Return the report; where changes are judged, a test that was skipped without an excuse has failed."""
    if os.environ.get("CI") and report.skipped and processes.EXCUSE not in report.longreprtext:
        report.outcome = "failed"
        report.longrepr = f"with CI set no test may be skipped: {report.longreprtext}"
    return report


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """No process that a test has started outlives the tests, however they end."""
    with processes.guarded():
        yield


@pytest.fixture(scope="session")
def postgresql_server(_nothing_is_left: None) -> Iterator[str]:
    """A real PostgreSQL; where it is not installed its tests are skipped, but never on the machine that decides."""
    if postgresql.programs() is None and not os.environ.get("CI"):
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    with postgresql.cluster() as made:
        yield made.address


@pytest.fixture
def postgresql_address(postgresql_server: str) -> str:
    """The address of a fresh database."""
    return postgresql.new_database(postgresql_server, f"test_{uuid.uuid4().hex}")
