"""Schemathesis goes through the OpenAPI document, follows its links, and finds nothing."""

from __future__ import annotations

import sys
from pathlib import Path

from tests import processes
from tests.web.servers import Server


def test_the_api_is_what_its_document_says(coffee: Server, tmp_path: Path) -> None:
    done = processes.run(
        [
            str(Path(sys.executable).parent / "schemathesis"), "run", f"{coffee.address}/api/openapi.json",
            "--max-examples", "25", "--seed", "1", "--no-color", "--suppress-health-check", "all",
            "--request-timeout", str(processes.PATIENCE),
        ],
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "Test cases" in done.stdout or "passed" in done.stdout, done.stdout[-2000:]
