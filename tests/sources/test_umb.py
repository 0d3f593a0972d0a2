"""UMB files: what an independent library writes is read exactly; what is damaged or made to do harm is refused."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import tarfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import tradeoff
from tradeoff import MDP
from tradeoff.apps.cli.ask import ask
from tradeoff.apps.cli.main import Commands

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
