"""Damage good files in many ways, and see that each is read or refused: no traceback, no crash, no waste.

    python tools/fuzz_files.py                      300 cases of each format
    python tools/fuzz_files.py --cases 50 umb npz   50 cases of two formats

Each case runs the real command (``show``, or ``ask --resume`` for logs of answers) in a forked child with 10 seconds of
computing and 2 GB more memory than it begins with. The exit code is 1 if any case ends badly; its file is kept.
"""

from __future__ import annotations

import os

os.environ.setdefault("NUMBA_NUM_THREADS", "1")  # a child has no threads but its own

import argparse
import contextlib
import csv
import io
import json
import random
import resource
import shutil
import signal
import sys
import tarfile
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SECONDS = 10  # of computing, the processes that a case starts included
MEMORY = 2 << 30  # bytes
HANGING = 300  # seconds by the clock after which a case that does not compute is ended

ROOT = Path(__file__).resolve().parents[1]
DATA, GOLDEN = ROOT / "docs" / "how-to" / "data", ROOT / "tests" / "golden"
FINE = {0, 2, 3, 4, 5}  # exit codes that are not an internal error


# --- good files ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """A good file in a folder, those beside it that may be damaged as well, and what to call with it."""

    file: str
    call: list[str]
    beside: list[str] = field(default_factory=list)


def _copied(folder: Path, source: Path, *others: str) -> None:
    for name in (source.name, *others):
        shutil.copy(source.with_name(name), folder / name)


def _rows() -> list[list[str]]:
    with (DATA / "laptops.csv").open(newline="") as file:
        return list(csv.reader(file))


def _number(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text


def make_csv(folder: Path) -> Sample:
    """Return a table with commas."""
    _copied(folder, DATA / "laptops.csv")
    return Sample("laptops.csv", ["show", "laptops.csv"])


def make_tsv(folder: Path) -> Sample:
    """Return a table with tabs."""
    (folder / "laptops.tsv").write_text("\n".join("\t".join(row) for row in _rows()) + "\n")
    return Sample("laptops.tsv", ["show", "laptops.tsv"])


def make_xlsx(folder: Path) -> Sample:
    """Return a workbook."""
    import openpyxl

    book = openpyxl.Workbook()
    for row in _rows():
        book.active.append([_number(cell) for cell in row])
    book.save(folder / "laptops.xlsx")
    return Sample("laptops.xlsx", ["show", "laptops.xlsx"])


def make_parquet(folder: Path) -> Sample:
    """Return a Parquet file."""
    import pyarrow
    import pyarrow.parquet

    head, *body = _rows()
    columns = {name: [_number(row[i]) for row in body] for i, name in enumerate(head)}
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "laptops.parquet")
    return Sample("laptops.parquet", ["show", "laptops.parquet"])


def make_toml(folder: Path) -> Sample:
    """Return a problem file with its tables beside it."""
    tables = ["problem-1-walk.csv", "problem-1-walk.places.csv"]
    _copied(folder, GOLDEN / "problem-1-walk.toml", *tables)
    return Sample("problem-1-walk.toml", ["show", "problem-1-walk.toml"], tables)


def make_json(folder: Path) -> Sample:
    """Return a problem file with its rows in it."""
    document = json.loads((GOLDEN / "problem-1-bicycles.json").read_text())
    names = ["name", *(o["name"] for o in document["objectives"])]
    with (GOLDEN / "problem-1-bicycles.csv").open(newline="") as file:
        document["items"] = [[_number(row[name]) for name in names] for row in csv.DictReader(file)]
    for row in document["items"]:
        row[0] = str(row[0])
    (folder / "bicycles.json").write_text(json.dumps(document, indent=1))
    return Sample("bicycles.json", ["show", "bicycles.json"])


def make_npz(folder: Path) -> Sample:
    """Return a model of arrays."""
    _copied(folder, GOLDEN / "npz-1-walk.npz")
    return Sample("npz-1-walk.npz", ["show", "npz-1-walk.npz"])


def make_graphml(folder: Path) -> Sample:
    """Return a network."""
    _copied(folder, DATA / "town.graphml")
    options = ["--objectives", "length:min,travel_time:min", "--with", "origin=A1", "--with", "destination=E5"]
    return Sample("town.graphml", ["show", "town.graphml", *options])


def make_log(folder: Path) -> Sample:
    """Return logged steps."""
    _copied(folder, DATA / "trips.csv")
    return Sample("trips.csv", ["show", "log:trips.csv"])


def _robot() -> Any:
    import stormpy

    program = stormpy.parse_prism_program(str(DATA / "robot.prism"), prism_compatibility=True)
    return stormpy.instantiate_constants(program, "slip=0.25")[0]


def _built() -> Any:
    import stormpy

    options = stormpy.BuilderOptions()
    options.set_build_all_reward_models(True)
    options.set_build_all_labels(True)
    options.set_build_state_valuations(True)
    options.set_build_choice_labels(True)
    return stormpy.build_model(_robot(), options=options)


def make_umb(folder: Path) -> Sample:
    """Return a model in Unified Markov Binary."""
    import stormpy

    options = stormpy.io.UmbExportOptions()
    options.compression = stormpy.io.CompressionMode.NO_COMPRESSION
    stormpy.io.export_to_umb(_built(), str(folder / "robot.umb"), options=options)
    return Sample("robot.umb", ["show", "robot.umb", "--with", "horizon=5"])


def make_prism(folder: Path) -> Sample:
    """Return a PRISM program."""
    _copied(folder, DATA / "robot.prism")
    return Sample("robot.prism", ["show", "robot.prism", "--with", "horizon=5", "--with", "constants=slip=0.25"])


def make_jani(folder: Path) -> Sample:
    """Return a JANI program."""
    import stormpy

    stormpy.io.export_jani_to_file(str(folder / "robot.jani"), _robot().to_jani([])[0])
    return Sample("robot.jani", ["show", "robot.jani", "--with", "horizon=5"])


def make_drn(folder: Path) -> Sample:
    """Return Storm's explicit text format."""
    import stormpy

    stormpy.io.export_to_drn(_built(), str(folder / "robot.drn"))
    return Sample("robot.drn", ["show", "robot.drn", "--with", "horizon=5"])


def make_explicit(folder: Path) -> Sample:
    """Return a .tra file with labels and rewards beside it."""
    files = {
        "small.tra": "mdp\n0 0 1 0.5 go\n0 0 2 0.5 go\n0 1 2 1 wait\n1 0 2 1 go\n2 0 2 1 stay\n",
        "small.lab": "#DECLARATION\ninit home\n#END\n0 init\n2 home\n",
        "small.time.srew": "0 1\n1 2\n",
        "small.gain.trew": "0 0 1 3\n0 0 2 1\n1 0 2 7\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    return Sample(
        "small.tra", ["show", "small.tra", "--with", "horizon=5"], [name for name in files if name != "small.tra"]
    )


def make_answers(folder: Path) -> Sample:
    """Return the log of an interview."""
    _copied(folder, GOLDEN / "problem-1-bicycles.json", "problem-1-bicycles.csv")
    _copied(folder, GOLDEN / "log-2.jsonl")
    return Sample("log-2.jsonl", ["ask", "problem-1-bicycles.json", "--resume", "log-2.jsonl"])


FORMATS: dict[str, Callable[[Path], Sample]] = {
    name.removeprefix("make_"): make for name, make in list(globals().items()) if name.startswith("make_")
}


# --- damage ----------------------------------------------------------------------------------------------------------

NUMBERS = ["0", "-1", "1", "65536", "2147483648", "4294967296", "-9223372036854775809", "1e308", "-1e-320", "1e999", "nan",
           "inf", "0.1", "99999999999999999999999", "1" * 5000]  # fmt: skip
TEXTS = [b"\0", b"\xff\xfe", b"\xed\xa0\x80", b'"', b"'", b"\\ud800", b"[" * 5000, b"{}", b"[]", b"null", b"true", b"=", b";",
         b",", b"\n", b"\r", b"\t", b"<a>", b"&x;", b"<!DOCTYPE a>", b"../", "\u202e".encode(), b"x" * 99_999]  # fmt: skip
VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    2**64,
    1e308,
    float("nan"),
    "",
    "x",
    "\ud800",
    [],
    {},
    [[]],
    [None],
    {"type": {}},
    {"a": [1]},
]


def damaged(data: bytes, name: str, rng: random.Random) -> bytes:
    """Return the content of a file with one to four damages."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        inside = [_damaged_zip, _damaged_tar, _damaged_json]
        ways = [_flip, _cut, _double, _insert, _new_number, _swap_lines, _shorten, *inside * 2]
        data = rng.choice(ways)(data, rng)
    return data


def _at(data: bytes, rng: random.Random) -> int:
    return rng.randrange(len(data) + 1)


def _flip(data: bytes, rng: random.Random) -> bytes:
    if not data:
        return data
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def _cut(data: bytes, rng: random.Random) -> bytes:
    at = _at(data, rng)
    return data[:at] + data[at + rng.choice((1, 2, 8, 64, 1000)) :]


def _double(data: bytes, rng: random.Random) -> bytes:
    at = _at(data, rng)
    return data[:at] + data[at : at + rng.choice((1, 8, 64, 1000))] * rng.choice((2, 3, 50)) + data[at:]


def _insert(data: bytes, rng: random.Random) -> bytes:
    at = _at(data, rng)
    return data[:at] + rng.choice([*TEXTS, rng.randbytes(8)]) + data[at:]


def _new_number(data: bytes, rng: random.Random) -> bytes:
    """Replace a number, of a text or as it is stored, by one that nobody expects."""
    digits = [i for i, byte in enumerate(data) if 48 <= byte <= 57]
    if not digits or rng.random() < 0.2:
        at = 8 * rng.randrange(len(data) // 8 + 1)
        return data[:at] + rng.choice((b"\xff" * 8, b"\0" * 8, (2**31).to_bytes(8, "little"))) + data[at + 8 :]
    begin = end = rng.choice(digits)
    while begin > 0 and data[begin - 1 : begin] in b"0123456789.-":
        begin -= 1
    while end < len(data) and data[end : end + 1] in b"0123456789.e":
        end += 1
    return data[:begin] + rng.choice(NUMBERS).encode() + data[end:]


def _swap_lines(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[i], lines[j] = lines[j], lines[i]
    return b"\n".join(lines)


def _shorten(data: bytes, rng: random.Random) -> bytes:
    return data[: _at(data, rng)]


def _damaged_zip(data: bytes, rng: random.Random) -> bytes:
    """Damage one member of a zip archive, which stays one."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except Exception:  # it is none, or too damaged
        return data
    if not members:
        return data
    chosen = rng.choice(list(members))
    members[chosen] = damaged(members[chosen], chosen, rng)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _damaged_tar(data: bytes, rng: random.Random) -> bytes:
    """Damage one member of a tar archive, most often its index, which stays one."""
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            members = {m.name: archive.extractfile(m).read() for m in archive if m.isfile()}  # type: ignore[union-attr]
    except Exception:  # it is none, or too damaged
        return data
    if not members:
        return data
    index = [name for name in members if name.endswith(".json")]
    chosen = rng.choice(index if index and rng.random() < 0.6 else list(members))
    members[chosen] = damaged(members[chosen], chosen, rng)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in members.items():
            header = tarfile.TarInfo(name)
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))
    return buffer.getvalue()


def _damaged_json(data: bytes, rng: random.Random) -> bytes:
    """Replace, remove or move a part of a JSON document or of one of its lines, which stays one."""
    lines = data.split(b"\n")
    whole = len(lines) == 1 or rng.random() < 0.5
    at = rng.randrange(len(lines))
    try:
        document = json.loads(data if whole else lines[at])
    except (ValueError, RecursionError):
        return data
    places = list(_parts(document))
    if not places:
        return data
    inside, key = rng.choice(places)
    match rng.randrange(4):
        case 0:
            del inside[key]
        case 1:
            other, place = rng.choice(places)
            inside[key] = json.loads(json.dumps(other[place])) if place in other or isinstance(other, list) else None
        case _:
            inside[key] = rng.choice(VALUES)
    text = json.dumps(document).encode()
    return text if whole else b"\n".join([*lines[:at], text, *lines[at + 1 :]])


def _parts(value: Any) -> Iterator[tuple[Any, Any]]:
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from _parts(value[key])


# --- running ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """How a case ended: "read", "refused", or what is bad about it, with what was printed and the seconds of computing."""

    what: str
    said: str
    seconds: float

    @property
    def bad(self) -> bool:
        """Whether this must not happen."""
        return self.what not in ("read", "refused")


def run(call: list[str], folder: Path, seconds: int = SECONDS, more: int = MEMORY) -> Outcome:
    """Return how a command ends in a forked child."""
    with tempfile.TemporaryFile() as said:
        child = os.fork()
        if child == 0:
            _child(call, folder, said.fileno(), seconds, more)
        usage = _wait(child)
        said.seek(0)
        text = said.read().decode(errors="replace")
    status, spent = usage
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        what = "time" if number in (signal.SIGXCPU, signal.SIGKILL) else f"signal {number}"
    elif os.WEXITSTATUS(status) == 0:
        what = "read"
    else:
        what = "refused" if os.WEXITSTATUS(status) in FINE else "traceback"
    if what in ("read", "refused") and spent > seconds:
        what = "time"
    if what == "traceback" and "MemoryError" in text:
        what = "memory"
    if what == "refused" and not 10 < len(text) < 3000:
        what = "message of a strange length"
    return Outcome(what, text, spent)


def _wait(child: int) -> tuple[int, float]:
    """Return the status of a child and its seconds of computing, when it has ended or hangs."""
    began = time.monotonic()
    while True:
        ended, status, usage = os.wait4(child, os.WNOHANG)
        if ended:
            return status, usage.ru_utime + usage.ru_stime
        if time.monotonic() - began > HANGING:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.005)


def _child(call: list[str], folder: Path, said: int, seconds: int, more: int) -> None:
    """Run a command in this process, which ends with it."""
    code = 1
    try:
        os.setsid()
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os.dup2(said, 2)
        os.chdir(folder)
        now = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (now + more, now + more))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
        sys.stderr = os.fdopen(2, "w", errors="strict")
        from tradeoff.apps.cli.main import main

        main.main(call, prog_name="tradeoff")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1 if end.code else 0
    except BaseException:
        traceback.print_exc(file=sys.stderr)
        code = 1
    finally:
        sys.stderr.flush()
        os._exit(code)


def fuzz(name: str, cases: int, seed: int, keep: Path | None = None) -> Iterator[Outcome]:
    """Yield how damaged files of a format are read; what ends badly is kept in a folder."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as text:
        good = Path(text, "good")
        good.mkdir()
        sample = FORMATS[name](good)
        _warm_up(sample.call, Path(shutil.copytree(good, Path(text, "warm"))))
        for case in range(cases):
            rng = random.Random(f"{seed} {name} {case}")
            folder = Path(text, "case")
            shutil.copytree(good, folder)
            file = folder / (rng.choice(sample.beside) if sample.beside and rng.random() < 0.3 else sample.file)
            if case:  # the first is left whole
                file.write_bytes(damaged(file.read_bytes(), file.name, rng))
            found = run(sample.call, folder)
            if case == 0 and found.what != "read":
                raise SystemExit(f"the good file of the format {name} is not read: {found.said}")
            if found.bad and keep is not None:
                shutil.copytree(folder, keep / f"{name}-{seed}-{case}", dirs_exist_ok=True)
            yield found
            shutil.rmtree(folder)


def _warm_up(call: list[str], folder: Path) -> None:
    """Run a command in this process, so that children find everything imported that it needs."""
    from tradeoff.apps.cli.main import main

    with contextlib.chdir(folder), Path(os.devnull).open("r+") as null, contextlib.suppress(SystemExit):
        before, sys.stdin = sys.stdin, null
        try:
            with contextlib.redirect_stdout(null), contextlib.redirect_stderr(null):
                main.main(call, prog_name="tradeoff")
        finally:
            sys.stdin = before


def prepare() -> None:
    """Import what the commands need once, so that children find it there."""
    from tradeoff.apps.cli import ask, main, pages  # noqa: F401
    from tradeoff.mdp import model  # noqa: F401
    from tradeoff.problems import catalogue, pointset  # noqa: F401


def main() -> None:
    """Fuzz the formats and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("formats", nargs="*", metavar="FORMAT", help=", ".join(FORMATS))
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path("fuzz-found"), help="folder for what ends badly")
    given = parser.parse_args()
    prepare()
    failed = False
    print(f"{'format':10} {'cases':>6} {'read':>6} {'refused':>8} {'bad':>5} {'most seconds':>13}", flush=True)
    for name in given.formats or FORMATS:
        outcomes = list(fuzz(name, given.cases, given.seed, given.keep))
        count = Counter(outcome.what for outcome in outcomes)
        bad = [outcome for outcome in outcomes if outcome.bad]
        most = max(outcome.seconds for outcome in outcomes)
        print(
            f"{name:10} {len(outcomes):6} {count['read']:6} {count['refused']:8} {len(bad):5} {most:13.1f}", flush=True
        )
        for outcome in bad:
            failed = True
            print(f"  {outcome.what}: {(outcome.said.strip().splitlines() or [''])[-1]:.200}", flush=True)
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
