"""UMB files that are damaged, wrong or made to do harm are refused."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tradeoff
from tests.messages import refused
from tests.processes import QUICK
from tests.sources.test_umb import Members, double, outcomes, small, tar_of, u64, write
from tradeoff.errors import ArgumentError, ProblemError, TradeoffError

# --- what is refused -------------------------------------------------------------------------------------------------


def system(**changes: Any) -> dict[str, Any]:
    index, _ = small()
    index["transition-system"] |= {key.replace("_", "-"): value for key, value in changes.items()}
    return index


def counted(key: str, value: object) -> dict[str, Any]:
    index, _ = small()
    index["transition-system"][key] = value
    return index


@pytest.mark.parametrize(
    ("index", "facts"),
    [
        (b"", "index.json | line 1 | column 1"),
        (b"{", "index.json | line 1"),
        (b"[1, 2]", "index.json | table"),
        (b"\xff\xfe\x00", "index.json | byte 0 | UTF-8"),
        (b"[" * 200_000, "nested | index"),
        (b'{"a":' * 100_000, "nested | index"),
        (b'{"format-version": ' + b"9" * 10_000 + b"}", "index.json | digits"),
        (b'{"format-version": 7}', "format-version | 7"),
        (b'{"format-version": 1}', "'transition-system' | None"),
        (b'{"format-version": 1, "transition-system": []}', "'transition-system' | []"),
        (b'{"format-version": 1, "transition-system": {"time": "discrete"}, "model-data": 3}', "'model-data' | 3"),
        (system(time="stochastic"), "continuous | CTMC"),
        (system(time="urgent-stochastic"), "continuous | Markov automaton"),
        (counted("#players", 2), "players"),
        (counted("#observations", 4), "POMDP"),
        (counted("#states", 10**18), "'#states' | 1000000000000000000"),
        (counted("#states", 2_000_000_000), "state-to-choices.bin | 32 bytes | 2,000,000,001 entries"),
        (counted("#states", 1), "branch 0 | state 1 | 1 states"),
        (counted("#choices", True), "'#choices' | True"),
        (counted("#branches", -1), "'#branches' | -1"),
        (counted("#branches", 6), "branch-to-target.bin | 40 bytes | 6 entries of 8 bytes"),
        (counted("#choice-actions", 1), "action 1 | 1"),
        (system(branch_probability_type={"type": "double-interval"}), "intervals"),
        (system(branch_probability_type={"type": "double", "size": 32}), "double | 32"),
        (system(branch_probability_type={"type": "rational"}), "5 | 16 bytes"),
        (system(branch_probability_type="double"), "double"),
        (system(branch_probability_type=None), "probabilities"),
        ({**small()[0], "annotations": {}}, "reward"),
        ({**small()[0], "annotations": {"rewards": {"r9": {"applies-to": ["choices"], "type": {"type": "double"}}}}},
         "'annotations/rewards/r9/choices/values.bin'"),
        ({**small()[0], "annotations": {"rewards": {"r1": {"applies-to": "all"}}}}, "'r1' | 'all'"),
        ({**small()[0], "annotations": {"rewards": {"r1": 5}}}, "'r1' | 5"),
    ],
)  # fmt: skip
def test_an_index_that_is_wrong_is_refused(tmp_path: Path, index: object, facts: str) -> None:
    _refused(write(tmp_path / "bad.umb", index, small()[1]), facts)


def _refused(path: str, facts: str) -> None:
    """Fail unless a file is refused quickly and shortly, with the facts between the bars."""
    begun = time.process_time()
    with pytest.raises(ProblemError) as caught:
        tradeoff.load(path, horizon=5)
    assert time.process_time() - begun < QUICK
    said = str(caught.value)
    assert path in said and len(said) < 500 + len(path)
    assert all(fact in said.replace(path, "bad.umb") for fact in facts.split(" | ")), f"{said!r} does not name {facts}"


@pytest.mark.parametrize(
    ("member", "data", "facts"),
    [
        ("branch-to-probability.bin", double(0.5, 0.4, 1, 1, 1), "state '0' | action 'go on' | 0.9"),
        ("branch-to-probability.bin", double(0.5, np.nan, 1, 1, 1), "state '0' | action 'go on' | nan"),
        ("branch-to-probability.bin", double(1.5, -0.5, 1, 1, 1), "state '0' | -0.5"),
        ("branch-to-probability.bin", double(0.5, 0.5, 1, 1), "32 bytes | 5 entries"),
        ("branch-to-target.bin", u64(1, 2, 3, 2, 2), "branch 2 | state 3 | 3 states"),
        ("branch-to-target.bin", u64(1, 2, 2**64 - 1, 2, 2), "branch 2 | state 18446744073709551615"),
        ("state-to-choices.bin", u64(0, 3, 2, 4), "state-to-choices.bin"),
        ("state-to-choices.bin", u64(0, 2, 3, 2**63), "state-to-choices.bin"),
        ("choice-to-branches.bin", u64(0, 2, 2, 4, 5), "choice 1 | state '0'"),
        ("state-is-initial.bin", bytes(8), "initial"),
        ("state-is-initial.bin", b"\x03" + bytes(7), "2 initial | '0', '1'"),
        ("state-is-initial.bin", b"\x01\x00\x00", "3 bytes | 3 entries"),
        ("actions/choices/string-mapping.bin", u64(0, 0, 9), "string-mapping.bin | 0 | 2"),
        ("actions/choices/strings.bin", b"\xff\xff", "strings.bin"),
        ("annotations/rewards/r1/choices/values.bin", double(3, np.inf, 7, 0), "values.bin | entry 1 | inf"),
        ("annotations/rewards/r0/states/values.bin", double(3, 1, np.nan), "values.bin | entry 2 | nan"),
        ("annotations/aps/a0/states/values.bin", b"", "0 bytes | one bit"),
    ],
)
def test_arrays_that_are_wrong_are_refused(tmp_path: Path, member: str, data: bytes, facts: str) -> None:
    index, members = small()
    assert member in members
    _refused(write(tmp_path / "bad.umb", index, members | {member: data}), facts)


def test_a_state_that_earns_for_ever_without_choices_is_refused(tmp_path: Path) -> None:
    index, members = small()
    index["transition-system"] |= {"#choices": 3, "#branches": 4}
    members |= {
        "state-to-choices.bin": u64(0, 2, 3, 3), "choice-to-branches.bin": u64(0, 2, 3, 4),
        "branch-to-target.bin": u64(1, 2, 2, 2), "branch-to-probability.bin": double(0.5, 0.5, 1, 1),
        "actions/choices/values.bin": np.array([0, 1, 1], "<u4").tobytes(),
        "annotations/rewards/r0/branches/values.bin": double(0, 4, 0, 0),
        "annotations/rewards/r1/choices/values.bin": double(3, 0, 7),
    }  # fmt: skip
    problem = tradeoff.load(write(tmp_path / "good.umb", index, members), horizon=5)
    assert outcomes(problem, [[0, 1]])[0].tolist() == [4.0, 6.5]
    members["annotations/rewards/r0/states/values.bin"] = double(1, 2, 3)
    _refused(write(tmp_path / "bad.umb", index, members), "state '2 (home)' | 'time'")


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        ({"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}, "link | device"),
        ({"type": tarfile.LNKTYPE, "linkname": "../x"}, "link | device"),
        ({"type": tarfile.CHRTYPE}, "link | device"),
        ({"type": tarfile.FIFOTYPE}, "link | device"),
        ({"name": "/etc/index.json"}, "elsewhere"),
        ({"name": "../index.json"}, "elsewhere"),
        ({"name": "a/../../index.json"}, "elsewhere"),
        ({"name": "index.json"}, "'index.json' | twice | damaged"),
    ],
)
def test_archives_that_lead_elsewhere_are_refused(tmp_path: Path, changes: dict[str, Any], facts: str) -> None:
    index, members = small()
    path = tmp_path / "bad.umb"
    whole = {"index.json": json.dumps(index).encode()} | members
    if "name" in changes:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for name, data in [*whole.items(), (changes["name"], b"{}")]:
                header = tarfile.TarInfo(name)
                header.size = len(data)
                archive.addfile(header, io.BytesIO(data))
        path.write_bytes(buffer.getvalue())
    else:
        path.write_bytes(tar_of(whole, **changes, size=0))
    _refused(str(path), facts)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["bad.umb"], "nothing is unpacked to disk"


def header_with(size: bytes, kind: bytes = b"0", name: bytes = b"index.json") -> bytes:
    """Return the header of a member that says it has this size, whatever follows."""
    block = bytearray(512)
    block[: len(name)], block[124 : 124 + len(size)], block[156:157] = name, size, kind
    block[257:265], block[148:156] = b"ustar\x0000", b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


@pytest.mark.parametrize("kind", [b"0", b"x", b"L", b"g", b"K"])
@pytest.mark.parametrize(
    "size",
    [
        b"77777777777\0",
        b"\xff" * 12,
        b"\xff" * 10 + b"\xfe\x00",
        b"\x80" + b"\x7f" * 11,
        b"00000177777\0",
        b"zzzzzzzzzzz\0",
    ],
)
def test_sizes_that_lie_are_refused(tmp_path: Path, kind: bytes, size: bytes) -> None:
    path = tmp_path / "bad.umb"
    path.write_bytes(header_with(size, kind) + bytes(512) * 4)
    _refused(str(path), "bad.umb")


def test_every_cut_of_a_file_is_refused(tmp_path: Path) -> None:
    index, members = small()
    whole = tar_of({"index.json": json.dumps(index).encode()} | members).rstrip(b"\0")
    packed = gzip.compress(whole)
    path = tmp_path / "cut.umb"
    for data, cuts in ((whole, range(0, len(whole) - 8, 509)), (packed, range(1, len(packed) - 1, 37))):
        for cut in cuts:
            path.write_bytes(data[:cut])
            with pytest.raises(ProblemError, match=r"cut\.umb"):
                tradeoff.load(path, horizon=3)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_what_unpacks_without_end_is_refused(tmp_path: Path, pack: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    index, members = small()
    zeros = pack(tar_of({"index.json": json.dumps(index).encode(), "zeros": bytes(40 << 20)} | members))
    path = tmp_path / "bomb.umb"
    path.write_bytes(zeros)
    assert len(zeros) < 100_000
    monkeypatch.setattr("tradeoff_checkers.umb_archive.SURELY_QUICK", 30 << 20)
    _refused(str(path), "unpack | 30 MB")
    monkeypatch.setenv("TRADEOFF_MEMORY", "0.05")
    _refused(str(path), "unpack | memory")


def test_a_bomb_of_gigabytes_is_refused_quickly(tmp_path: Path) -> None:
    path = tmp_path / "bomb.umb"
    chunk = gzip.compress(bytes(64 << 20), 1)
    path.write_bytes(chunk * 20)  # 1.25 GB in 6 MB
    with pytest.raises(ProblemError, match=r"bomb\.umb"):
        tradeoff.load(path, horizon=3)


def test_many_members_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "many.umb"
    path.write_bytes(b"".join(header_with(b"00000000000\0", name=b"%d" % i) for i in range(20_000)) + bytes(1024))
    _refused(str(path), "more than 10,000 members")


@settings(max_examples=80)
@given(st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 255)), min_size=1, max_size=6))
def test_no_damage_makes_it_crash(tmp_path_factory: Any, flips: list[tuple[int, int]]) -> None:
    index, members = small()
    data = bytearray(tar_of({"index.json": json.dumps(index).encode()} | members))
    for place, value in flips:
        data[place % len(data)] = value
    path = tmp_path_factory.mktemp("damaged") / "a.umb"
    path.write_bytes(bytes(data))
    try:
        problem = tradeoff.load(path, horizon=3)
    except TradeoffError as error:
        assert str(path) in str(error)
    else:
        problem.best(np.ones((1, len(problem.objectives))))


def test_the_horizon_must_be_said(tmp_path: Path) -> None:
    path = write(tmp_path / "a.umb", *small())
    with refused(ArgumentError, "horizon=20"):
        tradeoff.load(path)
    with refused(ArgumentError, "horizon", "0"):
        tradeoff.load(path, horizon=0)
    with refused(ProblemError, "1,000,000 steps", "horizon"):
        tradeoff.load(path, horizon=10**12)


def test_probabilities_can_be_renormalised(tmp_path: Path) -> None:
    index, members = small()
    members["branch-to-probability.bin"] = double(0.4, 0.4, 1, 1, 1)
    problem = tradeoff.load(write(tmp_path / "a.umb", index, members), horizon=5, renormalise="true")
    assert outcomes(problem, [[0, 1]])[0].tolist() == [4.0, 6.5]


# --- an index of any shape --------------------------------------------------------------------------------------------

JUNK: list[Any] = [None, True, 0, -1, 2**70, 8.0, 64.0, 1.5, "", "x", "\ud800", [], [1], ["states", {}], {}, {"type": {}},
                   {"type": []}, {"type": "int", "size": 64.0}, {"type": "double", "size": []}]  # fmt: skip


def paths(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every part of a document."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inside:
        yield (*before, key)
        yield from paths(part, (*before, key))


def with_variables() -> tuple[dict[str, Any], Members]:
    """Return the small model with variables of several kinds, and gaps between them."""
    index, members = small()
    index["model-data"] = {"name": "small", "description": "a small model"}
    index["valuations"] = {
        "states": {
            "#strings": 1,
            "classes": [
                {
                    "variables": [
                        {"name": "x", "type": {"type": "int", "size": 7}, "offset": 1},
                        {"padding": 1, "type": None},
                        {"name": "b", "type": {"type": "bool"}, "is-optional": True},
                        {"padding": 6},
                    ]
                }
            ],
        }
    }
    members["valuations/states/valuations.bin"] = bytes([1, 3, 2, 1, 3, 0])
    return index, members


def test_whatever_the_index_holds_there_is_no_traceback(tmp_path: Path) -> None:
    """Every entry of the index is replaced by everything that JSON can hold, and left out."""
    index, members = with_variables()
    path = tmp_path / "a.umb"
    tradeoff.load(write(path, index, members), horizon=2)
    for way in paths(index):
        for junk in [*JUNK, KeyError]:
            changed = json.loads(json.dumps(index))
            inside = changed
            for key in way[:-1]:
                inside = inside[key]
            if junk is KeyError:
                del inside[way[-1]]
            else:
                inside[way[-1]] = junk
            try:
                problem = tradeoff.load(write(path, changed, members), horizon=2)
            except TradeoffError:
                continue
            " ".join([*problem.states, *problem.actions, problem.title, problem.about]).encode()
