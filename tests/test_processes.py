"""How tests are started does not matter, and they leave nothing behind."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import processes

ROOT = Path(__file__).resolve().parents[1]


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", f"import signal, subprocess, sys\nfrom tests import processes\n{code}", *arguments]


def test_children_get_default_signals_from_a_parent_that_ignores_them() -> None:
    """As with ``nohup ... &`` in a script, where SIGINT and SIGHUP are ignored; the parent still ignores them."""
    code = (
        "numbers = [signal.SIGINT, signal.SIGHUP]\n"
        "for number in numbers: signal.signal(number, signal.SIG_IGN)\n"
        "ask = 'import signal; print([signal.getsignal(n) != signal.SIG_IGN for n in (signal.SIGINT, signal.SIGHUP)])'\n"
        "before = subprocess.check_output([sys.executable, '-c', ask], text=True)\n"
        "processes.restore_signals()\n"
        "after = subprocess.check_output([sys.executable, '-c', ask], text=True)\n"
        "for number in numbers: signal.raise_signal(number)\n"
        "print(before, after)"
    )
    found = processes.run(python(code), cwd=ROOT, check=True).stdout.split()
    assert found == ["[False,", "False]", "[True,", "True]"]


def test_a_child_ends_with_all_its_descendants() -> None:
    """Also with those that left its session, and whose parent is gone."""
    family = "setsid sleep 1000 & (setsid sleep 1000 &) ; echo ready; sleep 1000"
    with (
        pytest.raises(ZeroDivisionError),
        processes.Child(["sh", "-c", family], stdout=subprocess.PIPE, text=True) as child,
    ):
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        processes.until(lambda: len(processes.marked(child.mark)) == 4)
        _ = 1 / 0
    assert child.returncode == -signal.SIGKILL and processes.marked(child.mark) == []


def test_everything_ends_when_the_tests_are_killed(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    code = (
        "from pathlib import Path\n"
        "with processes.guarded():\n"
        "    processes.remove_at_the_end(Path(sys.argv[1]))\n"
        "    subprocess.Popen(['sleep', '1000'], start_new_session=True)\n"
        "    print(processes.RUN, flush=True)\n"
        "    signal.pause()"
    )
    with processes.Child(python(code, str(folder)), cwd=ROOT, stdout=subprocess.PIPE, text=True) as tests:
        assert tests.stdout is not None
        run = tests.stdout.readline().strip()
        assert len(processes.marked(run)) == 1
        tests.kill()
        tests.wait()
        processes.until(lambda: not processes.marked(run) and not folder.exists())


def test_a_process_that_is_left_behind_is_named() -> None:
    code = (
        "processes.PATIENCE = 0.1\n"
        "with processes.guarded():\n"
        "    subprocess.Popen(['sleep', '1000'], start_new_session=True)"
    )
    done = processes.run(python(code), cwd=ROOT)
    assert done.returncode == 1 and "left processes behind: ['sleep 1000']" in done.stderr


def test_a_reserved_port_is_given_once() -> None:
    ports = [processes.reserved_port() for _ in range(50)]
    assert len(set(ports)) == 50


@pytest.mark.parametrize(
    "skipping", ["def test(): pytest.skip('no browser')", "pytest.importorskip('no_such_package')"]
)
@pytest.mark.parametrize("judged", [False, True])
def test_a_skipped_test_is_never_taken_for_one_that_passed(tmp_path: Path, skipping: str, judged: bool) -> None:
    (tmp_path / "test_it.py").write_text(f"import pytest\n{skipping}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-c", "pyproject.toml", str(tmp_path)]
    others = {name: value for name, value in os.environ.items() if not name.startswith(("CI", "PYTEST"))}
    done = processes.run(command, cwd=ROOT, env=others | ({"CI": "true"} if judged else {}))
    reason = "no browser" if "browser" in skipping else "no_such_package"
    assert reason in done.stdout  # in any case it is said
    assert ("1 skipped" in done.stdout) == (not judged)
    assert ("1 failed" in done.stdout or "1 error" in done.stdout) == judged and (done.returncode in (1, 2)) == judged


def test_tests_start_processes_only_in_one_way() -> None:
    """A process that is started otherwise may outlive a test that fails."""
    allowed = {"processes.py", "postgresql.py"}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and path.name not in allowed:
                used = f"{node.value.id}.{node.attr}"
                wrong = ("subprocess.run", "subprocess.Popen", "subprocess.check_output", "subprocess.call", "os.fork")
                assert used not in wrong, f"{path}:{node.lineno}: use tests.processes instead of {used}"
