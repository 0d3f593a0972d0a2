"""A store of another package, found by its entry point: the one that docs/how-to/new-store.md shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests import processes
from tests.web.servers import TOOL
from tradeoff.errors import ArgumentError
from tradeoff.stores import open_store
from tradeoff.testing import check_store

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "new-store.md"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages with the page's store in it, as pip would install it."""
    page = PAGE.read_text(encoding="utf-8")
    code, *_ = re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    (project,) = re.findall(r"^```toml\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    ((scheme, target),) = tomllib.loads(project)["project"]["entry-points"]["tradeoff.stores"].items()
    packages = tmp_path / "packages"
    info = packages / "json_file-1.0.dist-info"
    info.mkdir(parents=True)
    (packages / f"{target.partition(':')[0]}.py").write_text(code, encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: json-file\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[tradeoff.stores]\n{scheme} = {target}\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(packages))
    return packages


def test_a_store_of_another_package_is_opened_by_its_scheme(installed: Path, tmp_path: Path) -> None:
    address = f"json-file:{tmp_path / 'answers.json'}"
    check_store(lambda: open_store(address))
    with pytest.raises(ArgumentError, match="json-file:"):  # and is named among those there are
        open_store("jsonfile:answers.json")


def test_commands_use_it(installed: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{installed}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    store = ("--store", "json-file:answers.json")

    def tool(*words: str) -> subprocess.CompletedProcess[str]:
        return processes.run([str(TOOL), "study", *words], cwd=tmp_path, env=environment)

    made = tool("create", "mine", "dependent", "--strategy", "paper", "--participants", "2", *store)
    assert made.returncode == 0, made.stderr
    listed = tool("list", "--links", "mine", *store)
    assert listed.stdout == made.stdout and len(listed.stdout.splitlines()) == 2


def test_importing_stores_loads_nothing_heavy() -> None:
    code = "import sys, tradeoff.stores; print([m for m in sys.argv[1:] if m in sys.modules])"
    heavy = [
        "numba",
        "scipy",
        "sqlalchemy",
        "psycopg",
        "tradeoff.mdp.kernels",
        "tradeoff.strategies",
        "tradeoff.problems",
    ]
    done = processes.run([sys.executable, "-c", code, *heavy], check=True)
    assert done.stdout.strip() == "[]"
