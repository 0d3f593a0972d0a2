"""Print the size and the shape of the code, of the working tree and optionally of another revision beside it.

python tools/counts.py            # the working tree
python tools/counts.py v0.3.0     # a revision of git and the working tree, side by side
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
QUESTIONS_AND_REPLIES = {
    "Question", "Pair", "Menu", "Reply", "Answer", "Choice", "Graded", "Statement", "Shown", "ShownMenu", "ShownQuestion",
    "Asked", "Answered", "Stated", "Observed", "Placed", "Sided", "MenuEvent", "PairEvent",
}  # fmt: skip
PROBLEMS = {
    "Catalogue", "PointSet", "MDP", "LimitedMDP", "Coverage", "Curved", "Compiled", "LimitedItems", "Network", "ScaledProblem",
}  # fmt: skip
# A second question of "careful", asked once so that everything is in the caches, and then again with the files noted.
WALK = """
import json, sys
import tradeoff
from pathlib import Path
folder = str(Path(tradeoff.__file__).parent)

def second_question(noted):
    interview = tradeoff.Interview(tradeoff.load("commute"), "careful")
    interview.ask()
    interview.tell("first")
    if noted is not None:
        sys.setprofile(lambda frame, event, argument: noted.add(frame.f_code.co_filename))
    interview.ask()
    sys.setprofile(None)

second_question(None)
noted = set()
second_question(noted)
print(json.dumps(sorted(name.removeprefix(folder + "/") for name in noted if name.startswith(folder))))
"""


def modules(root: Path, *folders: str) -> Iterator[tuple[Path, ast.Module]]:
    """Yield the modules in some folders, parsed."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            yield path.relative_to(root), ast.parse(path.read_text(encoding="utf-8"))


def lines(root: Path, *folders: str) -> int:
    """Return the number of lines of all modules in some folders."""
    return sum(
        path.read_text(encoding="utf-8").count("\n") for folder in folders for path in (root / folder).rglob("*.py")
    )


def functions(root: Path) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield all functions of the package and its plug-ins, with their names."""
    for path, module in modules(root, "src"):
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{path}:{node.lineno} {node.name}", node


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the number of parameters of a function."""
    spec = function.args
    named = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]
    return (
        sum(argument.arg not in ("self", "cls") for argument in named)
        + (spec.vararg is not None)
        + (spec.kwarg is not None)
    )


class Complexity(ast.NodeVisitor):
    """Counts the decisions of a function (McCabe), without those of functions inside it."""

    def __init__(self) -> None:
        self.count = 1

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Leave out a function inside."""

    visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = visit_FunctionDef  # type: ignore[assignment]

    def generic_visit(self, node: ast.AST) -> None:
        """Count a decision."""
        branches = (
            ast.If | ast.For | ast.AsyncFor | ast.While | ast.IfExp | ast.ExceptHandler | ast.Assert | ast.match_case
        )
        if isinstance(node, branches):
            self.count += 1
        elif isinstance(node, ast.BoolOp):
            self.count += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            self.count += 1 + len(node.ifs)
        super().generic_visit(node)


def complexity(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the cyclomatic complexity of a function."""
    visitor = Complexity()
    for statement in function.body:
        visitor.visit(statement)
    return visitor.count


def class_checks(root: Path, classes: set[str], counted: Callable[[str], bool]) -> list[str]:
    """Return where ``isinstance`` checks for one of these classes, in the modules that count."""
    return [
        f"{path}:{node.lineno}"
        for path, module in modules(root, "src/tradeoff")
        if counted(path.as_posix())
        for node in ast.walk(module)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "isinstance"
        and any(isinstance(name, ast.Name) and name.id in classes for name in ast.walk(node.args[1]))
    ]


def reads_replies_elsewhere(path: str) -> bool:
    """Return whether a module should not know the kinds of question and reply: any but evidence and log."""
    return not path.startswith(
        ("src/tradeoff/evidence", "src/tradeoff/log/", "src/tradeoff/menus", "src/tradeoff/knowledge")
    )


def constants(root: Path, folder: str) -> list[str]:
    """Return the upper-case names of the modules of a folder."""
    found = []
    for path, module in modules(root, folder):
        for node in module.body:
            targets = (
                node.targets
                if isinstance(node, ast.Assign)
                else [node.target]
                if isinstance(node, ast.AnnAssign)
                else []
            )
            names = [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
            found += [f"{path}:{node.lineno} {name}" for name in names if name.isupper()]
    return found


def classes_defined_twice(root: Path) -> list[str]:
    """Return the public class names that more than one module defines."""
    defined = Counter(
        node.name
        for _, module in modules(root, "src")
        for node in module.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return sorted(name for name, times in defined.items() if times > 1)


def walk_of_a_question(root: Path) -> list[str]:
    """Return the files that run between an answer and the next question of ``careful``; empty if that fails."""
    command = [sys.executable, "-c", WALK]
    done = subprocess.run(command, env={"PYTHONPATH": str(root / "src")}, capture_output=True, text=True, check=False)
    return list(json.loads(done.stdout)) if done.returncode == 0 else []


def counts(root: Path) -> dict[str, int | list[str]]:
    """Return all counts of a tree: a number, or the places that are counted."""
    plug_ins = [f"src/{folder.name}" for folder in (root / "src").glob("tradeoff_*")]
    everything = list(functions(root))
    return {
        "lines of src/tradeoff": lines(root, "src/tradeoff"),
        "lines of plug-ins": lines(root, *plug_ins),
        "lines of tests": lines(root, "tests"),
        "files in the walk of a careful question": walk_of_a_question(root),
        "functions with more than 12 parameters": [name for name, node in everything if parameters(node) > 12],
        "functions of complexity above 15": [name for name, node in everything if complexity(node) > 15],
        "isinstance on questions or replies outside evidence and log": class_checks(
            root, QUESTIONS_AND_REPLIES, reads_replies_elsewhere
        ),
        "isinstance on problems in apps and presentation": class_checks(
            root, PROBLEMS, lambda path: path.startswith(("src/tradeoff/apps/", "src/tradeoff/presentation/"))
        ),
        "upper-case names in strategies": constants(root, "src/tradeoff/strategies"),
        "public class names defined twice": classes_defined_twice(root),
    }


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision", nargs="?", help="a revision of git to compare with")
    parser.add_argument("--places", action="store_true", help="also print what is counted, in the working tree")
    arguments = parser.parse_args()
    columns = {"now": counts(ROOT)}
    if arguments.revision:
        with tempfile.TemporaryDirectory() as folder:
            packed = subprocess.run(["git", "archive", arguments.revision], cwd=ROOT, capture_output=True, check=True)
            subprocess.run(["tar", "-x", "-C", folder], input=packed.stdout, check=True)
            columns = {arguments.revision: counts(Path(folder)), **columns}
    print(f"{'':62}" + "".join(f"{name[:12]:>13}" for name in columns))
    for title in columns["now"]:
        cells = (column[title] for column in columns.values())
        print(f"{title:62}" + "".join(f"{cell if isinstance(cell, int) else len(cell):13,}" for cell in cells))
    if arguments.places:
        for title, cell in columns["now"].items():
            if isinstance(cell, list):
                print(f"\n{title}:", *cell, sep="\n  ")


if __name__ == "__main__":
    main()
