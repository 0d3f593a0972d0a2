"""A small run of the fuzzer over every format; ``python tools/fuzz_files.py`` is the long one."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from tests import processes

TOOL = Path(__file__).resolve().parents[2] / "tools" / "fuzz_files.py"
FORMATS = ("csv", "tsv", "xlsx", "parquet", "toml", "json", "npz", "graphml", "log", "umb", "prism", "jani", "drn", "explicit",
           "answers")  # fmt: skip
NEEDED = {"xlsx": "openpyxl", "parquet": "pyarrow", "graphml": "defusedxml", "umb": "stormpy", "prism": "stormpy",
          "jani": "stormpy", "drn": "stormpy", "explicit": "stormpy"}  # fmt: skip
RUN = """
import importlib.util, json, sys
sys.path[:0] = {path!r}
spec = importlib.util.spec_from_file_location("fuzz_files", {tool!r})
tool = sys.modules["fuzz_files"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)
tool.prepare()
{what}
"""


def in_a_process_of_its_own(what: str) -> list[list[str]]:
    """Return what a program that uses the tool prints; it forks, which a process with threads must not."""
    program = RUN.format(path=[folder for folder in sys.path if folder], tool=str(TOOL), what=what)
    done = processes.run([sys.executable, "-c", program])
    assert done.returncode == 0, done.stderr
    found: list[list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="limits are set as on Linux")
@pytest.mark.parametrize("name", FORMATS)
def test_damaged_files_are_read_or_refused(name: str) -> None:
    if name in NEEDED:
        pytest.importorskip(NEEDED[name])
    found = in_a_process_of_its_own(f"print(json.dumps([[o.what, o.said] for o in tool.fuzz({name!r}, 25, seed=1)]))")
    assert len(found) == 25 and found[0][0] == "read"
    assert [said for what, said in found if what not in ("read", "refused")] == []


@pytest.mark.skipif(sys.platform != "linux", reason="limits are set as on Linux")
def test_the_fuzzer_sees_what_is_bad(tmp_path: Path) -> None:
    """A traceback, endless computing and a waste of memory: each in a module that a ``python:`` source imports."""
    for name, code in {
        "spins": "while True: pass",
        "wastes": "import os\ntry: bytearray(3 << 30)\nexcept MemoryError: os.write(2, b'MemoryError'), os._exit(1)",
        "fails": "import os\nos._exit(1)",
        "breaks": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
    }.items():
        (tmp_path / f"{name}.py").write_text(code)
    found = in_a_process_of_its_own(
        "from pathlib import Path\n"
        "print(json.dumps([[o.what, str(o.bad)] for o in ("
        f"tool.run(['show', 'python:' + name + ':P'], Path({str(tmp_path)!r}), seconds=2) "
        "for name in ('spins', 'wastes', 'fails', 'breaks'))]))"
    )
    assert found == [["time", "True"], ["memory", "True"], ["traceback", "True"], ["signal 11", "True"]]


def test_the_formats_are_those_of_the_tool() -> None:
    spec = importlib.util.spec_from_file_location("fuzz_files", TOOL)
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    sys.modules["fuzz_files"] = tool
    try:
        spec.loader.exec_module(tool)
    finally:
        del sys.modules["fuzz_files"]
    assert tuple(tool.FORMATS) == FORMATS
