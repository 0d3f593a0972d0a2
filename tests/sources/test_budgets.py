"""What reading a problem may cost: time and memory have budgets, and what would exceed them is refused with a reason."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import textwrap
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest

import tradeoff
from tests import processes
from tests.messages import refused
from tradeoff import memory as ram
from tradeoff.errors import ArgumentError, ProblemError, TooLargeError
from tradeoff.sources.files.documents import read_document
from tradeoff.sources.markup import LONGEST, check_markup
from tradeoff.sources.progress import reported_to
from tradeoff.sources.tables.cells import Kind, amount, kind_of, plain_numbers

ROBOT = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "data" / "robot.prism"

COUNTER = """
mdp
const int SIZE = {size};
module counter
  x : [0..SIZE] init 0;
  [up] x < SIZE -> (x' = x + 1);
  [back] x > 0 -> 0.5 : (x' = 0) + 0.5 : true;
endmodule
rewards "steps" [up] true : 1; endrewards
rewards "rest" [back] true : 2; endrewards
"""

MANY_STATES = """@type: MDP
@parameters

@reward_models
steps
@nr_states
4000000000
@nr_choices
1
@model
state 0 [1] init
\taction 0
\t\t0 : 1
"""


# --- the memory there is ---------------------------------------------------------------------------------------------


def cgroup(folder: Path, **files: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(f"{content}\n")


@pytest.mark.parametrize(
    ("membership", "under", "limit", "usage", "stat"),
    [
        ("0::/jobs/mine", "", "memory__max", "memory__current", "inactive_file"),
        ("4:cpu:/x\n3:memory:/jobs/mine\n0::/", "memory", "memory__limit_in_bytes", "memory__usage_in_bytes",
         "total_inactive_file"),
    ],
)  # fmt: skip
def test_limits_of_containers_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, membership: str, under: str, limit: str, usage: str, stat: str
) -> None:
    """The tightest of the group and those above it; files that are only cached do not count as used."""
    monkeypatch.delenv("TRADEOFF_MEMORY", raising=False)
    (tmp_path / "cgroup").write_text(membership + "\n")
    root = tmp_path / "fs" / under
    cgroup(root / "jobs" / "mine", **{limit: 600 << 20, usage: 100 << 20, "memory__stat": f"anon 1\n{stat} 0"})
    cgroup(root / "jobs", **{limit: 1000 << 20, usage: 900 << 20, "memory__stat": f"anon 1\n{stat} {100 << 20}"})
    cgroup(root, **{limit: "max" if not under else 9223372036854771712, usage: 5})
    found = ram.limited_cgroups(tmp_path / "cgroup", tmp_path / "fs")
    assert [entry[0] for entry in found] == [600 << 20, 1000 << 20]
    monkeypatch.setattr(ram, "limited_cgroups", lambda: found)
    assert ram.memory_limit() == int(0.9 * (200 << 20))
    with pytest.raises(TooLargeError):
        ram.check_fits(200 << 20, "a model")


def test_a_container_that_shows_only_its_own_group(tmp_path: Path) -> None:
    (tmp_path / "cgroup").write_text("0::/kubepods/on-the-host-only\n")
    cgroup(tmp_path / "fs", memory__max=1 << 30, memory__current=0)
    assert [entry[0] for entry in ram.limited_cgroups(tmp_path / "cgroup", tmp_path / "fs")] == [1 << 30]
    assert ram.limited_cgroups(tmp_path / "none", tmp_path / "fs") == []


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
sys.path[:0] = {path!r}
"""


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the modules of this one."""
    program = LIMITED.format(path=sys.path) + textwrap.dedent(code)
    return processes.run([sys.executable, "-c", program], env=os.environ | environment)


def test_the_limit_of_address_space_counts() -> None:
    done = python("from tradeoff.memory import memory_limit; print(memory_limit())")
    assert 0 < int(done.stdout) < 3 << 30, done.stderr


# --- Storm -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2_000_000_000, 4294967296])
def test_a_program_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    pytest.importorskip("stormpy")
    (tmp_path / "endless.prism").write_text(COUNTER.format(size=size))
    monkeypatch.setenv("TRADEOFF_SECONDS", "2")
    with refused(ProblemError, "endless.prism", "2 seconds", "TRADEOFF_SECONDS"):
        tradeoff.load(tmp_path / "endless.prism", horizon=3)


def test_a_drn_file_that_says_it_is_huge_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("stormpy")
    (tmp_path / "huge.drn").write_text(MANY_STATES)
    with refused(TooLargeError, "huge.drn", "2 GiB", "TRADEOFF_MEMORY"):
        tradeoff.load(tmp_path / "huge.drn", horizon=3)


def test_storm_works_below_a_limit_of_address_space() -> None:
    pytest.importorskip("stormpy")
    done = python(f"""
        import tradeoff
        print(tradeoff.load({str(ROBOT)!r}, horizon=3, constants="slip=0.1").horizon)
    """)
    assert done.stdout == "3\n", done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_storm_ends_with_the_program_that_started_it(tmp_path: Path, number: signal.Signals) -> None:
    pytest.importorskip("stormpy")
    (tmp_path / "endless.prism").write_text(COUNTER.format(size=2_000_000_000))
    program = f"""
        import signal, sys
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.path[:0] = {sys.path!r}
        import tradeoff
        tradeoff.load({str(tmp_path / "endless.prism")!r}, horizon=3)
    """
    environment = os.environ | {"TRADEOFF_SECONDS": "100"}
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with processes.Child(command, env=environment, stderr=subprocess.PIPE) as parent:
        worker = processes.until(lambda: storm_of(parent.pid))
        parent.send_signal(number)
        parent.communicate()
        assert parent.returncode != 0
        processes.until(lambda: not is_running(worker))


def storm_of(pid: int) -> int | None:
    """Return the process that a process started for Storm, once it computes."""
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            if (
                "storm_worker" in Path(f"/proc/{child}/cmdline").read_text()
                and "stormpy" in Path(f"/proc/{child}/maps").read_text()
            ):
                return int(child)
        except OSError:
            continue
    return None


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("text", ["", "soon", "0", "-1", "inf", "nan"])
def test_a_number_of_seconds_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    pytest.importorskip("stormpy")
    monkeypatch.setenv("TRADEOFF_SECONDS", text)
    with refused(ArgumentError, "TRADEOFF_SECONDS"):
        tradeoff.load(ROBOT, horizon=3, constants="slip=0.1")


# --- XML -------------------------------------------------------------------------------------------------------------

LONG = 3 * LONGEST


@pytest.mark.parametrize(
    "part",
    [
        f'<a b="{"x" * LONG}"/>',
        f'<a b="{">" * LONG}"/>',
        f"<a{' ' * LONG}/>",
        f"<!--{'<' * LONG}-->",
        f"<!--{'<a/>' * LONG}-->",
        f"<?{'<a/>' * (LONG // 4)}?>",
        f"<![CDATA[{'<!---->' * (LONG // 7)}]]>",
        f"<!--{' -> ' * LONG}",
    ],
    ids=["attribute", "attribute of tag ends", "spaces", "comment", "comment of tags", "instruction", "data", "no end"],
)
@pytest.mark.parametrize("before", [0, 1, LONGEST - 3, LONGEST - 1, LONGEST])
def test_a_part_of_a_document_that_never_ends_is_refused(part: str, before: int) -> None:
    """Wherever it begins: documents are looked at in blocks."""
    document = "<r>" + ("<p/>" * (before // 4 + 1))[:before].replace("<p/", "<p ") + part + "</r>"
    with refused(ProblemError, "tag", "comment"):
        check_markup(io.BytesIO(document.encode()), "a.xml")


def test_long_documents_of_short_parts_are_fine() -> None:
    for part in ('<a b="x>y">text</a>', "<!-- < -- > <? ]]> -->", "<?p <!-- ?>", "<![CDATA[<!-- ]] > ]]>", "<a/>\n\n"):
        check_markup(io.BytesIO(f"<r>{part * (LONG // len(part))}</r>".encode()), "a.xml")
    with refused(ProblemError, "UTF-8"):
        check_markup(io.BytesIO("<r/>".encode("utf-16")), "a.xml")


def test_a_workbook_with_a_huge_attribute_is_refused(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["name", "price (min)"], ["a", 1], ["b", 2]):
        book.active.append(row)
    book.save(tmp_path / "good.xlsx")
    for member in ("xl/worksheets/sheet1.xml", "xl/workbook.xml", "xl/styles.xml"):
        with zipfile.ZipFile(tmp_path / "good.xlsx") as good, zipfile.ZipFile(tmp_path / "bad.xlsx", "w") as bad:
            for name in good.namelist():
                data = good.read(name)
                if name == member:
                    at = data.index(b">", data.index(b"?>") + 2 if data.startswith(b"<?") else 0)
                    data = data[:at] + b' x="' + b"y" * LONG + b'"' + data[at:]
                bad.writestr(name, data, zipfile.ZIP_DEFLATED)
        with refused(ProblemError, "bad.xlsx", f"'{member}'", "tag"):
            tradeoff.load(tmp_path / "bad.xlsx")
    assert len(tradeoff.load(tmp_path / "good.xlsx", keep_dominated=True).names) == 2


def test_a_graph_with_a_huge_attribute_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("defusedxml")
    (tmp_path / "bad.graphml").write_text(f'<graphml><graph id="{"y" * LONG}"><node id="a"/></graph></graphml>')
    with refused(ProblemError, "bad.graphml", "tag"):
        tradeoff.load(tmp_path / "bad.graphml", objectives="length:min")


# --- Parquet ---------------------------------------------------------------------------------------------------------


def test_a_parquet_file_that_repeats_itself_without_end_is_refused(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    repeated = pyarrow.array(np.ones(1_000_000))
    table = pyarrow.table({f"c{i}": repeated for i in range(19)})
    parquet.write_table(table, tmp_path / "bad.parquet", compression="zstd")
    assert (tmp_path / "bad.parquet").stat().st_size < 100_000
    with refused(ProblemError, "1,000,000 rows", "19 columns", "repeated"):
        tradeoff.load(tmp_path / "bad.parquet")


def test_texts_that_share_their_beginnings_are_counted_as_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text may be stored as how it differs from the one before: the file is small, whatever it says of itself."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    long = "x" * (1 << 20)
    table = pyarrow.table({"name": [long + str(i) for i in range(200)], "price (min)": list(range(200))})
    parquet.write_table(
        table, tmp_path / "bad.parquet", use_dictionary=False,
        column_encoding={"name": "DELTA_BYTE_ARRAY", "price (min)": "PLAIN"},
    )  # fmt: skip
    assert (tmp_path / "bad.parquet").stat().st_size < 4 << 20
    assert len(tradeoff.load(tmp_path / "bad.parquet", keep_dominated=True).names) == 200
    monkeypatch.setenv("TRADEOFF_MEMORY", "0.15")
    with refused(TooLargeError, "bad.parquet"):
        tradeoff.load(tmp_path / "bad.parquet")


# --- fast ways to the same ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cell", ["1", " 1.5\t", "-2e3", ".5", "5.", "+7", "", "1,5", "x", "1\n2", "\n", "nan", "inf", "1_000", "1e999", "１",
             "\u22121", "0" * 401, 1, 2.5, True, None, float("nan"), 10**400],
)  # fmt: skip
@pytest.mark.parametrize("others", [["1", "2"], [3, 4.5], []])
def test_whole_columns_are_read_as_their_cells_are(cell: object, others: list[object]) -> None:
    cells = [*others, cell]
    found = plain_numbers(cells)
    if found is not None:
        assert found == [amount(part) for part in cells] == [amount(part, ".") for part in cells]
        assert {kind_of(part) for part in cells} == {Kind.NUMBER}


ROWS = ",\n".join(f'  ["item {i} \\" ] = é{"x" * 320}", {i}, {-i / 7}, true, []]' for i in range(3_000))
HEAD = 'format = "tradeoff-problem/1"\n'


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}items = [\n{ROWS}\n]\nkind = 1\n",
        f"{HEAD}items = [\n{ROWS},\n]\nkind = 1\n",
        f"{HEAD}items = [\n{ROWS},\n]   # a remark",
        f"{HEAD}transitions=[{ROWS}]",
        f"{HEAD}items = [ # a remark\n{ROWS}\n]\n",
        f"{HEAD}items = [\n{ROWS},\n['single']]\n",
        f"{HEAD}items = [\n{ROWS}, # a remark\n]\n",
        f'{HEAD}about = """\nitems = [1]\n"""\nitems = [\n{ROWS}\n]\n',
        f"{HEAD}[other]\nitems = [\n{ROWS}\n]\n",
        f"{HEAD}items = [\n{ROWS}, [1_000, inf, 0x10, 1979-05-27]]\n",
    ],
)
def test_long_tables_are_read_as_toml_says(tmp_path: Path, text: str) -> None:
    import tomllib

    assert len(text) > 1 << 20
    (tmp_path / "a.toml").write_text(text, encoding="utf-8")
    assert read_document(tmp_path / "a.toml") == tomllib.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}items = [\n{ROWS}\n]\nitems = 3\n",
        f"{HEAD}items = [\n{ROWS}\n] items\n",
        f"{HEAD}items = [\n{ROWS}, NaN\n]\n",
        f"{HEAD}items = [\n{ROWS}, [\n",
        f"{HEAD}items = [\n{ROWS},,]\n",
        f'{HEAD}items = [\n{ROWS}, "\\ud800"]\n',
    ],
)
def test_long_tables_that_are_not_toml_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.toml").write_text(text, encoding="utf-8")
    with refused(ProblemError, "a.toml"):
        read_document(tmp_path / "a.toml")


# --- progress --------------------------------------------------------------------------------------------------------


def test_readers_report_how_far_they_are(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name,x (max),y (max)\n" + "".join(f"{i},{i},{-i}\n" for i in range(10_000)))
    said: list[tuple[str, int, int | None]] = []
    with reported_to(lambda *what: said.append(what)):
        tradeoff.load(tmp_path / "a.csv")
        elsewhere = threading.Thread(target=tradeoff.load, args=(tmp_path / "a.csv",))
        before = len(said)
        elsewhere.start()
        elsewhere.join()
        assert len(said) == before  # of another thread nothing is heard
    assert said[0] == ("Reading a.csv", 0, 10_001) and [done for _, done, _ in said] == sorted(
        done for _, done, _ in said
    )
    assert said[-1][1] > 8_000
    tradeoff.load(tmp_path / "a.csv")
    assert len(said) == before


@pytest.mark.parametrize(("patience", "shown"), [(0.0, True), (1e6, False)])
def test_a_terminal_shows_a_bar_once_reading_takes_long(tmp_path: Path, patience: float, shown: bool) -> None:
    (tmp_path / "long.csv").write_text("name,x (max),y (max)\n" + "".join(f"{i},{i},{-i}\n" for i in range(50_000)))
    program = f"""
        import sys
        sys.path[:0] = {[folder for folder in sys.path if folder]!r}
        from tradeoff.apps.cli import reading
        from tradeoff.apps.cli.source import Source
        reading.PATIENCE = {patience}
        Source({str(tmp_path / "long.csv")!r}, {{}}).read()
    """
    ours, theirs = os.openpty()
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with processes.Child(command, stderr=theirs, env=os.environ | {"TERM": "xterm"}) as child:
        os.close(theirs)
        text = b""
        try:
            while part := os.read(ours, 4096):
                text += part
        except OSError:  # the other side is closed
            pass
        os.close(ours)
        assert child.wait() == 0, text
    assert (b"Reading" in text) == shown


# --- two simulations in one process ----------------------------------------------------------------------------------


def test_workers_that_are_used_again_find_modules_of_a_new_folder(tmp_path: Path) -> None:
    """Worker processes of the first run know nothing of the folder that the second run imports from."""
    (tmp_path / "later_module.py").write_text(
        "import numpy as np\n"
        "class Corners:\n"
        "    objectives = ['a', 'b']\n"
        "    def best(self, weights):\n"
        "        return np.eye(2)[int(np.argmax(weights))]\n"
    )
    program = f"""
        import sys
        sys.path[:0] = {[folder for folder in sys.path if folder]!r}
        import os, tradeoff
        from tradeoff.simulation import simulate
        os.chdir({str(tmp_path)!r})
        if __name__ == "__main__":
            first = simulate(tradeoff.load("coffee"), 8, jobs=2)
            second = simulate(tradeoff.load("python:later_module:Corners"), 8, jobs=2)
            alone = simulate(tradeoff.load("python:later_module:Corners"), 8, jobs=1)
            print(len(first), second.results.regret.tolist() == alone.results.regret.tolist())
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    done = processes.run([sys.executable, "-P", str(tmp_path / "program.py")])
    assert done.stdout == "8 True\n", done.stderr
