"""The documentation site builds without a warning, and what its pages name exists."""

from __future__ import annotations

import os
import re
import shlex
import sys
from importlib import import_module
from pathlib import Path
from urllib.request import urlopen

import tradeoff
from tests import processes

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def resolve(name: str) -> object:
    """Return the module or object of a dotted name."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        parent, _, last = name.rpartition(".")
        return getattr(resolve(parent), last)


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = processes.run(command, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tradeoff.Interview" in (tmp_path / "site" / "reference" / "python.html").read_text()


def test_names_in_the_paper_page_exist() -> None:
    names = set(re.findall(r"`(tradeoff(?:\.\w+)+)`", (DOCS / "paper.md").read_text()))
    assert len(names) >= 12
    for name in names:
        resolve(name)


def test_every_public_name_is_in_the_reference() -> None:
    listed = re.findall(
        r"^(?:::: |### `)tradeoff\.(\w+)`?$", (DOCS / "reference" / "python.md").read_text(), re.MULTILINE
    )
    assert sorted(listed) == sorted(tradeoff.__all__)


def test_new_names_in_the_upgrade_table_exist() -> None:
    rows = re.findall(r"^\| (.*?) \| (.*?) \|$", (DOCS / "upgrading.md").read_text(), re.MULTILINE)
    for _, new in rows:
        for name in re.findall(r"`(tradeoff(?:_\w+)?(?:\.\w+)*)`", new):
            resolve(name)


def test_the_container_starts_a_server(tmp_path: Path) -> None:
    """The command of the container, with its folder and port replaced, replies."""
    recipe = (ROOT / "Containerfile").read_text()
    words = [
        w.strip(' "') for part in re.findall(r"^(?:ENTRYPOINT|CMD) \[(.*)\]$", recipe, re.M) for w in part.split(",")
    ]
    port = str(processes.reserved_port())
    command = [word.replace("/data", str(tmp_path)).replace("8321", port) for word in words]
    command[0] = str(Path(sys.executable).parent / command[0])
    with processes.Child([*command, "--no-browser"], cwd=tmp_path):

        def healthy() -> bool:
            try:
                with urlopen(f"http://localhost:{port}/healthz", timeout=5) as reply:
                    return bool(reply.status == 200)
            except OSError:
                return False

        assert processes.until(healthy, shlex.join(command))
    assert (tmp_path / "answers.sqlite").exists()
