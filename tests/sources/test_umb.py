"""UMB files: what an independent library writes is read exactly; what is damaged or made to do harm is refused."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import tarfile
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import tradeoff
from tests.messages import refused
from tests.processes import QUICK
from tradeoff import MDP
from tradeoff.apps.cli.ask import ask
from tradeoff.apps.cli.main import Commands
from tradeoff.errors import ArgumentError, ProblemError, TradeoffError

Members = dict[str, bytes]


def tar_of(members: Members, **changes: Any) -> bytes:
    """Return a tar file of these members; ``changes`` are made to the header of every member."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in members.items():
            header = tarfile.TarInfo(name)
            header.size = len(data)
            for key, value in changes.items():
                setattr(header, key, value)
            archive.addfile(header, io.BytesIO(data))
    return buffer.getvalue()


def double(*values: float) -> bytes:
    return np.array(values, dtype="<f8").tobytes()


def u64(*values: int) -> bytes:
    return np.array(values, dtype="<u8").tobytes()


def small() -> tuple[dict[str, Any], Members]:
    """Return the index and the arrays of a small model: two ways from 0 to 2, one of them through 1."""
    index = {
        "format-version": 1, "format-revision": 0,
        "transition-system": {
            "time": "discrete", "#players": 1, "#states": 3, "#initial-states": 1, "#choices": 4, "#choice-actions": 2,
            "#branches": 5, "#branch-actions": 0, "#observations": 0,
            "branch-probability-type": {"type": "double", "size": 64},
        },
        "annotations": {
            "rewards": {
                "r0": {"alias": "time", "applies-to": ["states", "branches"], "type": {"type": "double"}},
                "r1": {"alias": "gain", "applies-to": ["choices"], "type": {"type": "double", "size": 64}},
            },
            "aps": {"a0": {"alias": "home", "applies-to": ["states"], "type": {"type": "bool", "size": 1}}},
        },
    }  # fmt: skip
    members = {
        "state-is-initial.bin": b"\x01" + bytes(7),
        "state-to-choices.bin": u64(0, 2, 3, 4),
        "choice-to-branches.bin": u64(0, 2, 3, 4, 5),
        "branch-to-target.bin": u64(1, 2, 2, 2, 2),
        "branch-to-probability.bin": double(0.5, 0.5, 1, 1, 1),
        "actions/choices/values.bin": np.array([0, 1, 1, 0], "<u4").tobytes(),
        "actions/choices/string-mapping.bin": u64(0, 0, 2),
        "actions/choices/strings.bin": b"go",
        "annotations/rewards/r0/states/values.bin": double(1, 2, 0),
        "annotations/rewards/r0/branches/values.bin": double(0, 4, 0, 0, 0),
        "annotations/rewards/r1/choices/values.bin": double(3, 0, 7, 0),
        "annotations/aps/a0/states/values.bin": b"\x04" + bytes(7),
    }
    return index, members


def write(path: Path, index: object, members: Members, **changes: Any) -> str:
    text = index if isinstance(index, bytes) else json.dumps(index).encode()
    path.write_bytes(tar_of({"index.json": text} | members, **changes))
    return str(path)


def outcomes(problem: Any, weights: Any) -> np.ndarray:
    return np.array([problem.outcome(x.value) for x in problem.best(np.array(weights) * np.abs(problem.scale))])


# --- what is read ----------------------------------------------------------------------------------------------------


def test_a_small_model_is_read_with_all_its_kinds_of_rewards(tmp_path: Path) -> None:
    problem = tradeoff.load(write(tmp_path / "a.umb", *small()), horizon=5, objectives="time:min,gain")
    assert problem.states == ("0", "1", "2 (home)") and problem.actions == ("go on", "go")
    assert [(o.name, o.goal) for o in problem.objectives] == [("time", "min"), ("gain", "max")]
    # 0 without label: time 1, half the time 4 more, and half the time to 1, where it takes 2; gains 3, and 7 in 1.
    assert outcomes(problem, [[1, 0], [0, 1]]).tolist() == [[1.0, 0.0], [4.0, 6.5]]
    assert problem.layers[0].ends.tolist() == [False, False, True]
    assert problem.notes[0].startswith("more is taken to be better for 'gain', because")
    assert any("only lead to themselves and earn nothing: 1" in note for note in problem.notes)
    later = tradeoff.load(tmp_path / "a.umb", horizon="1", objectives=["gain", "time"])
    assert outcomes(later, [[1, 0]])[0, 0] == 3


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bytes])
def test_compressed_or_not_it_is_the_same(tmp_path: Path, pack: Any) -> None:
    index, members = small()
    path = tmp_path / "a.umb"
    path.write_bytes(pack(tar_of({"index.json": json.dumps(index).encode()} | members)))
    plain = tradeoff.load(write(tmp_path / "b.umb", index, members), horizon=4)
    assert tradeoff.load(path, horizon=4).fingerprint == plain.fingerprint


def test_long_names_of_members_are_read(tmp_path: Path) -> None:
    index, members = small()
    long = "r" * 150
    index["annotations"]["rewards"] = {long: index["annotations"]["rewards"]["r1"]}
    members[f"annotations/rewards/{long}/choices/values.bin"] = members.pop("annotations/rewards/r1/choices/values.bin")
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
            for name, data in ({"index.json": json.dumps(index).encode()} | members).items():
                header = tarfile.TarInfo(name)
                header.size = len(data)
                archive.addfile(header, io.BytesIO(data))
        (tmp_path / "a.umb").write_bytes(buffer.getvalue())
        assert outcomes(tradeoff.load(tmp_path / "a.umb", horizon=5), [[1.0]])[0, 0] == 6.5


def test_exact_numbers_are_rounded_and_whole_ones_kept(tmp_path: Path) -> None:
    index, members = small()
    exact = [Fraction(1, 3), Fraction(2, 3), Fraction(1), Fraction(1), Fraction(1)]
    for size in (128, 256):
        index["transition-system"]["branch-probability-type"] = {"type": "rational", "size": size}
        members["branch-to-probability.bin"] = b"".join(
            f.numerator.to_bytes(size // 16, "little", signed=True) + f.denominator.to_bytes(size // 16, "little")
            for f in exact
        )
        index["annotations"]["rewards"]["r1"]["type"] = {"type": "int", "size": 16}
        members["annotations/rewards/r1/choices/values.bin"] = np.array([3, 0, -7, 0], "<i2").tobytes()
        problem = tradeoff.load(write(tmp_path / "a.umb", index, members), horizon=5, objectives="gain")
        assert outcomes(problem, [[1.0], [-1.0]])[:, 0] == pytest.approx([3 - 7 / 3, 0])
        assert any("exact probabilities were rounded" in note for note in problem.notes)


def test_variables_name_the_states(tmp_path: Path) -> None:
    index, members = small()
    index["valuations"] = {
        "states": {
            "unique": True, "#strings": 2,
            "classes": [{"variables": [
                {"name": "x", "type": {"type": "uint", "size": 3}, "offset": -2},
                {"name": "up", "type": {"type": "bool", "size": 1}},
                {"name": "y", "type": {"type": "int", "size": 5}, "is-optional": True},
                {"padding": 6},
                {"name": "z", "type": {"type": "double"}},
                {"name": "who", "type": {"type": "string"}},
                {"name": "same", "type": {"type": "bool"}},
                {"padding": 7},
            ]}],
        }
    }  # fmt: skip

    def row(x: int, up: bool, y: int | None, z: float, who: int) -> bytes:
        bits = x + 2 | up << 3 | (y is not None) << 4 | ((y or 0) & 31) << 5
        return bits.to_bytes(2, "little") + double(z) + u64(who) + b"\x01"

    members["valuations/states/valuations.bin"] = (
        row(-2, True, -16, 0.5, 0) + row(5, False, None, -1e-7, 1) + row(0, True, 15, 3, 1)
    )
    members["valuations/states/strings.bin"] = "annbjörn".encode()
    members["valuations/states/string-mapping.bin"] = u64(0, 3, 9)
    problem = tradeoff.load(write(tmp_path / "a.umb", index, members), horizon=5)
    assert problem.states == (
        "x=-2, up=true, y=-16, z=0.5, who=ann",
        "x=5, up=false, z=-1e-07, who=björn",
        "x=0, up=true, y=15, z=3, who=björn",
    )
    index["valuations"]["states"]["classes"] *= 2
    problem = tradeoff.load(write(tmp_path / "a.umb", index, members), horizon=5)
    assert list(problem.states) == ["0", "1", "2"] and any("by number" in note for note in problem.notes)


@st.composite
def models(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a ragged model with rewards of every kind, several labels in a state, and states without choices."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    states, k = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    per_state = rng.integers(0, 4, states)
    per_state[0] = max(1, per_state[0])
    choices = int(per_state.sum())
    per_choice = rng.integers(1, 4, choices)
    total = int(per_choice.sum())
    probability = np.concatenate([rng.dirichlet(np.ones(n)) for n in per_choice])
    kinds = [[p for p in ("states", "choices", "branches") if rng.random() < 0.5] or ["choices"] for _ in range(k)]
    sizes = {"states": states, "choices": choices, "branches": total}
    rewards = [{p: rng.integers(-3, 4, sizes[p]).astype(float) for p in parts} for parts in kinds]
    for parts in rewards:
        if "states" in parts:
            parts["states"][per_state == 0] = 0
    parts = rewards[0]
    next(iter(parts.values()))[0] = 1.0  # something is earned at the start
    return {
        "state_ptr": np.concatenate([[0], np.cumsum(per_state)]),
        "choice_ptr": np.concatenate([[0], np.cumsum(per_choice)]),
        "target": rng.integers(0, states, total),
        "probability": probability,
        "action": rng.integers(0, 3, choices),
        "rewards": rewards,
        "horizon": int(rng.integers(1, 6)),
    }


def write_with_umbi(model: dict[str, Any], path: Path) -> None:
    import umbi
    from umbi.binary import SizedType
    from umbi.datatypes import NumericPrimitiveType
    from umbi.umb.index import AnnotationDescription, TransitionSystem, UmbIndex

    real = SizedType.for_type(NumericPrimitiveType.DOUBLE)
    states, choices, total = len(model["state_ptr"]) - 1, len(model["action"]), len(model["target"])
    names = [f"r{j}" for j in range(len(model["rewards"]))]
    umb = umbi.umb.ExplicitUmb(
        index=UmbIndex(
            format_version=0, format_revision=1,
            transition_system=TransitionSystem(
                time="discrete", num_players=1, num_states=states, num_initial_states=1, num_choices=choices,
                num_choice_actions=3, num_branches=total, branch_probability_type=real,
            ),
            annotations={"rewards": {
                name: AnnotationDescription(alias=name.upper(), applies_to=list(parts), type=real)
                for name, parts in zip(names, model["rewards"], strict=True)
            }},
        ),
        state_is_initial=[s == 0 for s in range(states)],
        state_to_choices=model["state_ptr"].tolist(),
        choice_to_branches=model["choice_ptr"].tolist(),
        branch_to_target=model["target"].tolist(),
        branch_to_probability=model["probability"].tolist(),
        choice_to_choice_action=model["action"].tolist(),
        choice_action_to_string=["", "go", "stay"],
        annotations={"rewards": {
            name: {part: values.tolist() for part, values in parts.items()}
            for name, parts in zip(names, model["rewards"], strict=True)
        }},
    )  # fmt: skip
    umbi.umb.write(umb, path)


def by_hand(model: dict[str, Any]) -> MDP:
    """Return the same model from rows: each choice its own action."""
    state_of = np.repeat(np.arange(len(model["state_ptr"]) - 1), np.diff(model["state_ptr"]))
    rows = []
    for c, s in enumerate(state_of):
        for b in range(model["choice_ptr"][c], model["choice_ptr"][c + 1]):
            at = {"states": s, "choices": c, "branches": b}
            reward = [sum(values[at[part]] for part, values in parts.items()) for parts in model["rewards"]]
            rows.append((str(s), f"c{c}", model["probability"][b], str(model["target"][b]), reward))
    ends = [str(s) for s in range(len(model["state_ptr"]) - 1) if s not in state_of]
    names = [f"R{j}" for j in range(len(model["rewards"]))]
    return MDP.from_rows(rows, horizon=model["horizon"], start="0", ends=ends, objectives=names)


@pytest.mark.filterwarnings("ignore::tradeoff.errors.ProblemWarning")
@settings(max_examples=60)
@given(models(), st.integers(0, 2**32))
def test_what_another_library_writes_is_read_exactly(tmp_path_factory: Any, model: dict[str, Any], seed: int) -> None:
    path = tmp_path_factory.mktemp("umb") / "model.umb"
    write_with_umbi(model, path)
    ours, theirs = tradeoff.load(path, horizon=model["horizon"]), by_hand(model)
    assert [o.name for o in ours.objectives] == [o.name for o in theirs.objectives]
    weights = np.random.default_rng(seed).normal(size=(8, len(ours.objectives)))
    # Values agree, whatever the weights, and so do the branches of every state.
    mine, other = ours.best(weights / ours.scale), theirs.best(weights / theirs.scale)
    scored = [
        (ours.outcome(a.value) @ w, theirs.outcome(b.value) @ w) for a, b, w in zip(mine, other, weights, strict=True)
    ]
    np.testing.assert_allclose(*np.array(scored).T, atol=1e-9)
    assert set(ours.states) == set(theirs.states)
    assert not set(_happenings(ours)) - set(_happenings(theirs))
    for state, lost in _happenings(theirs).items():
        found = _happenings(ours).get(state)
        assert found == lost or (found is None and all(t == state and not any(r) for t, _, r in lost))


def _happenings(mdp: MDP) -> dict[str, list[tuple[str, float, tuple[float, ...]]]]:
    """Return what can happen in each state, whatever the actions are called."""
    found: dict[str, list[tuple[str, float, tuple[float, ...]]]] = {}
    for s, _, p, t, r in zip(*mdp.layers[0].branches(), strict=True):
        found.setdefault(mdp.states[s], []).append((mdp.states[t], round(float(p), 12), tuple(r.tolist())))
    return {state: sorted(rows) for state, rows in found.items()}


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
    monkeypatch.setattr("tradeoff.sources.checkers.umb_archive.SURELY_QUICK", 30 << 20)
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


# --- the whole way ---------------------------------------------------------------------------------------------------


def test_a_simulated_person_is_asked_about_a_file(tmp_path: Path) -> None:
    path = write(tmp_path / "a.umb", *small())
    call = [
        "ask",
        path,
        "-w",
        "horizon=5",
        "--objectives",
        "time:min,gain:max",
        "--simulate",
        "time=1,gain=2",
        "--json",
    ]
    done = CliRunner(env={"COLUMNS": "100"}).invoke(Commands("tradeoff", commands={"ask": ask}), call)
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["recommendation"]["finished"] and result["relative_regret"] == pytest.approx(0, abs=0.01)


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
