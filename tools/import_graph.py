"""Draw which room of the house imports which, and find modules that import each other.

    python tools/import_graph.py            print the drawing, as Mermaid
    python tools/import_graph.py --write    put it into docs/architecture.md
    python tools/import_graph.py --check    fail if modules import each other, or if the page holds another drawing

Imports inside functions count; imports for type checkers alone do not. An arrow that follows from others is left out.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE, PAGE = ROOT / "src", ROOT / "docs" / "architecture.md"
PACKAGE = "tradeoff"
BEGIN, END = "<!-- import graph: python tools/import_graph.py --write -->", "<!-- end of the import graph -->"

Graph = dict[str, set[str]]


def imports(source: Path = SOURCE) -> Graph:
    """Return the modules under a folder, each with the modules that it imports."""
    files = {_name(path, source): path for path in sorted(source.rglob("*.py"))}
    return {name: set(_imported(path, files)) - {name} for name, path in files.items()}


def _name(path: Path, source: Path) -> str:
    return ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")


def _imported(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    guarded = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if id(node) in guarded:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name if name in known else node.module for name in names if node.module in known)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)


def cycles(graph: Graph) -> list[list[str]]:
    """Return the sets of modules that import each other, directly or through others."""
    found = {frozenset(_cycle(graph, name)) for name in graph}
    return sorted(sorted(cycle) for cycle in found if len(cycle) > 1)


def _cycle(graph: Graph, name: str) -> set[str]:
    """Return the modules that both lead to a module and are reached from it."""
    return {name} | {other for other in reached(graph, name) if name in reached(graph, other)}


def reached(graph: Graph, start: str) -> set[str]:
    """Return what is reached from a module by one import or more."""
    found: set[str] = set()
    waiting = list(graph.get(start, ()))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += graph.get(name, ())
    return found


def rooms(graph: Graph) -> Graph:
    """Return the rooms of the package, each with the rooms that its modules import."""
    found: Graph = {}
    for name, imported in graph.items():
        room = room_of(name)
        if room:
            found.setdefault(room, set()).update({room_of(other) for other in imported} - {room, ""})
    return found


def room_of(module: str) -> str:
    """Return the room a module belongs to; "" for the front door, ``tradeoff/__init__.py``, and for ``apps`` itself.

    >>> room_of("tradeoff.apps.cli.ask"), room_of("tradeoff.model"), room_of("tradeoff")
    ('apps/cli', 'model', '')
    """
    parts = module.split(".")[1:]
    depth = 2 if parts[:1] == ["apps"] else 1
    return "/".join(parts[:depth]) if len(parts) >= depth else ""


def without_shortcuts(graph: Graph) -> Graph:
    """Return a graph without cycles, less the arrows that follow from others."""
    return {
        name: {other for other in targets if not any(other in reached(graph, via) for via in targets - {other})}
        for name, targets in graph.items()
    }


def drawing(graph: Graph) -> str:
    """Return the rooms as a Mermaid flow chart."""
    arrows = without_shortcuts(rooms(graph))
    lines = [f"  {name.replace('/', '_')}[{name}]" for name in sorted(arrows)]
    lines += [
        f"  {name.replace('/', '_')} --> {other.replace('/', '_')}"
        for name in sorted(arrows)
        for other in sorted(arrows[name])
    ]
    return "\n".join(["```mermaid", "flowchart TD", *lines, "```"])


def page_with(text: str, drawn: str) -> str:
    """Return the page with this drawing between its marks."""
    if BEGIN not in text or END not in text:
        raise SystemExit(f"{PAGE} lacks the marks {BEGIN!r} and {END!r}; put them where the drawing belongs")
    return re.sub(rf"(?s){re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: f"{BEGIN}\n\n{drawn}\n\n{END}", text)


def main(arguments: list[str]) -> int:
    """Print, write or check the drawing; return the exit code."""
    graph = imports()
    drawn, text = drawing(graph), PAGE.read_text(encoding="utf-8")
    wrong = [f"{len(cycle)} modules import each other: {', '.join(cycle)}" for cycle in cycles(graph)]
    if "--write" in arguments:
        PAGE.write_text(page_with(text, drawn), encoding="utf-8")
    elif "--check" not in arguments:
        print(drawn)
    elif page_with(text, drawn) != text:
        wrong.append(f"{PAGE.name} holds another drawing; run: python tools/import_graph.py --write")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
