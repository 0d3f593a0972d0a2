"""No two modules import each other, and the drawing of the rooms is current."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("import_graph", ROOT / "tools" / "import_graph.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_modules_import_each_other() -> None:
    found = tool()
    assert found.cycles(found.imports()) == []


def test_the_architecture_page_holds_the_current_drawing() -> None:
    found = tool()
    text = found.PAGE.read_text(encoding="utf-8")
    assert found.page_with(text, found.drawing(found.imports())) == text, "run: python tools/import_graph.py --write"


def test_the_tool_sees_lazy_imports_and_cycles_but_not_types(tmp_path: Path) -> None:
    found = tool()
    files = {
        "p/__init__.py": "",
        "p/a.py": "def f():\n    from p import b\n",
        "p/b.py": "import p.c\n",
        "p/c.py": "from p.a import f\nfrom p.d import x as y\n",
        "p/d.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import p.a\nelse:\n    import p.e\nx = 1\n",
        "p/e.py": "import numpy\n",
    }
    for name, code in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(code)
    graph = found.imports(tmp_path)
    assert graph == {"p": set(), "p.a": {"p.b"}, "p.b": {"p.c"}, "p.c": {"p.a", "p.d"}, "p.d": {"p.e"}, "p.e": set()}
    assert found.cycles(graph) == [["p.a", "p.b", "p.c"]]
    assert found.without_shortcuts({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == {"a": {"b"}, "b": {"c"}, "c": set()}


def test_rooms_are_folders_and_files_of_the_package() -> None:
    found = tool()
    graph = {
        "tradeoff": {"tradeoff.model"},
        "tradeoff.apps.cli.ask": {"tradeoff.model", "tradeoff.apps.cli.keys"},
        "tradeoff.model": set(),
    }
    assert found.rooms(graph) == {"apps/cli": {"model"}, "model": set()}
    assert "apps_cli --> model" in found.drawing(graph)
