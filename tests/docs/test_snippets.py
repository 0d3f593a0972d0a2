"""Every snippet in the README and the docs runs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from tests import processes

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
DATA = ROOT / "docs" / "how-to" / "data"  # the files that the how-to pages speak of are there when their snippets run
TOOL = Path(sys.executable).parent / "tradeoff"


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_snippets_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(DATA, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "snippet"}
    for code in blocks(page, "python"):
        exec(compile(code, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_console_snippets_run(page: Path, tmp_path: Path) -> None:
    """Each `$ tradeoff ...` line succeeds; the lines shown under it are in its output, in that order."""
    shutil.copytree(DATA, tmp_path, dirs_exist_ok=True)
    for block in blocks(page, "console"):
        for part in block.split("$ ")[1:]:
            command, *shown = part.splitlines()
            words = shlex.split(command, comments=True)
            if words[0] != "tradeoff":
                continue
            environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "HOME": str(tmp_path)}
            done = processes.run([str(TOOL), *words[1:]], cwd=tmp_path, env=environment)
            assert done.returncode == 0, f"{command}\n{done.stderr}"
            printed = [line.rstrip() for line in done.stdout.splitlines()]
            position = 0
            for line in filter(None, map(str.rstrip, shown)):
                if line.strip() == "...":
                    continue
                assert line in printed[position:], f"{page.name}: {command}: {line!r} is not printed (any more)"
                position = printed.index(line, position) + 1


def test_internal_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_ci_calls_the_commands_of_the_readme() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    readme = (ROOT / "README.md").read_text()
    (test_command,) = re.findall(r"^python -m pip install .* && python -m pytest.*$", readme, re.MULTILINE)
    assert test_command in map(str.strip, script.splitlines())
