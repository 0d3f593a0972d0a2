"""Read UMB files (Unified Markov Binary), as written by PRISM, Storm and Modest: a tar archive of raw arrays and an index."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradeoff.errors import ProblemError
from tradeoff.mdp.inputs import Numbered
from tradeoff.mdp.layer import Int
from tradeoff.mdp.model import MDP
from tradeoff.model import Vector
from tradeoff.sources.limits import check_characters
from tradeoff.sources.messages import shortened
from tradeoff_checkers.explicit_models import (
    REFUSED,
    ExplicitModel,
    ModelOptions,
    Rewards,
    chosen_objectives,
    to_mdp,
)
from tradeoff_checkers.umb_archive import Archive
from tradeoff_checkers.valuations import state_names

FORMATS = (0, 1)
LARGEST_INDEX = 16 << 20
TOO_DEEP = "brackets are nested too deeply for the index of a model"


def read_umb(path: Path, options: ModelOptions) -> MDP:
    """Return the MDP in a UMB file."""
    return read_model(path, options)


def read_model(path: Path, options: ModelOptions, source: Path | None = None) -> MDP:
    """Return the MDP in a UMB file that was made from ``source``; error messages name the source."""
    source = source or path
    try:
        archive = Archive(path)
        index = _index(archive)
        model = _model(archive, index, options)
        about = index.get("model-data", {})
        texts = {key: about[name] for key, name in (("title", "name"), ("about", "description")) if name in about}
        if not all(isinstance(text, str) for text in texts.values()):
            raise ProblemError(f"index.json: model-data has {shortened(texts)} where strings are needed")
        return to_mdp(model, options, name=source.stem, **texts)
    except RecursionError:
        raise ProblemError(f"{source}: {TOO_DEEP}") from None
    except ProblemError as error:
        raise error if str(source) in str(error) else type(error)(f"{source}: {error}") from None


# --- the index -------------------------------------------------------------------------------------------------------


def _index(archive: Archive) -> dict[str, Any]:
    """Return the index of an archive."""
    raw = archive.raw("index.json")
    if len(raw) > LARGEST_INDEX:
        raise ProblemError(f"index.json has {len(raw) / 2**20:,.0f} MB; at most {LARGEST_INDEX >> 20} MB are read")
    try:
        text = raw.tobytes().decode()
        index = json.loads(text)
    except UnicodeDecodeError as error:
        raise ProblemError(f"index.json is not text: byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ProblemError(f"index.json, line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from None
    except ValueError:  # Python limits the digits of an integer
        raise ProblemError("index.json: a whole number has far too many digits") from None
    check_characters(index, text)
    if not isinstance(index, dict):
        raise ProblemError(f"index.json: a table is needed, but {shortened(index)} was found")
    if index.get("format-version") not in FORMATS:
        raise ProblemError(
            f"index.json: its format-version is {shortened(index.get('format-version'))}; this version reads "
            f"{' and '.join(map(str, FORMATS))}"
        )
    _table(index, "model-data", optional=True)
    return index


def _table(table: Mapping[str, Any], key: str, optional: bool = False) -> dict[str, Any]:
    found = table.get(key, {} if optional else None)
    if not isinstance(found, dict):
        raise ProblemError(f"index.json: {key!r} is {shortened(found)}, but a table is needed")
    return found


def _count(system: Mapping[str, Any], key: str, least: int = 0) -> int:
    found = system.get(key)
    if not isinstance(found, int) or isinstance(found, bool) or not least <= found < 2**31:
        raise ProblemError(f"index.json: {key!r} is {shortened(found)}; a number from {least} to 2^31 is needed")
    return found


def _check_kind(system: Mapping[str, Any]) -> None:
    """Raise a ProblemError unless the model is a Markov chain or a Markov decision process."""
    time = system.get("time")
    if time != "discrete":
        raise ProblemError(REFUSED["ma" if time == "urgent-stochastic" else "ctmc"])
    if _count(system, "#players") > 1:
        raise ProblemError(REFUSED["game"])
    if _count(system, "#observations"):
        raise ProblemError(REFUSED["pomdp"])


# --- the model -------------------------------------------------------------------------------------------------------


def _model(archive: Archive, index: Mapping[str, Any], options: ModelOptions) -> ExplicitModel:
    """Return the model with the chosen reward structures; every count is checked against the arrays."""
    system, annotations = _table(index, "transition-system"), _table(index, "annotations", optional=True)
    _check_kind(system)
    states, choices, branches = _count(system, "#states", 1), _count(system, "#choices"), _count(system, "#branches", 1)
    target = archive.array("branch-to-target.bin", "u8", branches)
    beyond = np.flatnonzero(target >= states)
    if len(beyond):
        raise ProblemError(
            f"branch-to-target.bin: branch {beyond[0]} leads to state {target[beyond[0]]}, but there are {states:,} states"
        )
    choice_ptr = _groups(archive, "choice-to-branches.bin", choices, branches)
    state_ptr = _groups(archive, "state-to-choices.bin", states, choices)
    probability, notes = _probabilities(archive, system, branches, choices)
    structures = _by_name(_table(annotations, "rewards", optional=True))
    objectives, assumed = chosen_objectives(list(structures), options.objectives)
    labels = {
        name: archive.bits(f"annotations/aps/{key}/states/values.bin", states)
        for name, (key, entry) in _by_name(_table(annotations, "aps", optional=True)).items()
        if entry.get("applies-to") == ["states"]
    }
    named, remark = state_names(archive, index, states, labels)
    if np.unpackbits(labels.get("deadlock", np.zeros(1, np.uint8))).any():
        notes.append("states without choices (deadlocks) end the plan")
    action, action_names = _choice_actions(archive, system, choices)
    return ExplicitModel(
        state_ptr=state_ptr,
        choice_ptr=choice_ptr,
        target=target.astype(np.int64),
        probability=probability,
        initial=_initial(archive, system, states),
        states=Numbered(np.arange(states)) if named is None else named,
        action=action,
        action_names=action_names,
        objectives=objectives,
        rewards=[
            _rewards(archive, *structures[o.name], sizes={"states": states, "choices": choices, "branches": branches})
            for o in objectives
        ],
        labels=labels,
        notes=[*assumed, *remark, *notes],
    )


def _groups(archive: Archive, name: str, count: int, members: int) -> Int:
    """Return where each group's members begin; if the file is missing, each group has one member."""
    if name in archive:
        return archive.pointers(name, count, members)
    if count != members:
        raise ProblemError(f"{name} is missing, which means one each, but there are {members:,} for {count:,}")
    return np.arange(count + 1)


def _probabilities(
    archive: Archive, system: Mapping[str, Any], branches: int, choices: int
) -> tuple[Vector, list[str]]:
    kind = system.get("branch-probability-type")
    if kind is None:
        if branches != choices:
            raise ProblemError("its branches have no probabilities")
        return np.ones(branches), []
    exact = isinstance(kind, dict) and kind.get("type") == "rational"
    notes = ["exact probabilities were rounded to 16 digits"] if exact else []
    return archive.numbers("branch-to-probability.bin", kind, branches), notes


def _initial(archive: Archive, system: Mapping[str, Any], states: int) -> NDArray[np.bool_]:
    if not _count(system, "#initial-states"):
        return np.zeros(states, dtype=bool)
    packed = archive.bits("state-is-initial.bin", states)
    return np.unpackbits(packed, count=states, bitorder="little").astype(bool)


def _choice_actions(archive: Archive, system: Mapping[str, Any], choices: int) -> tuple[Int, list[str]]:
    """Return the action of each choice and the names of actions ("" for no action)."""
    count = _count(system, "#choice-actions")
    if not count or "actions/choices/values.bin" not in archive:
        return np.zeros(choices, dtype=np.int64), [""]
    action = archive.array("actions/choices/values.bin", "u4", choices).astype(np.int64)
    if action.max(initial=0) >= count:
        raise ProblemError(f"actions/choices/values.bin names action {action.max()}, but there are {count:,}")
    if "actions/choices/string-mapping.bin" in archive:
        return action, archive.texts("actions/choices", count)
    used, action = np.unique(action, return_inverse=True)
    return action.ravel().astype(np.int64), [f"action {number}" for number in used]


def _by_name(entries: Mapping[str, Any]) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return reward structures or labels by their display name, each with its folder and its entry in the index."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for key in entries:
        entry = _table(entries, key)
        name = entry.get("alias", key)
        if not isinstance(name, str) or not name or name in found:
            name = key
        found[name] = (key, entry)
    return found


def _rewards(archive: Archive, key: str, entry: Mapping[str, Any], sizes: Mapping[str, int]) -> Rewards:
    """Return one reward structure."""
    parts, folder = entry.get("applies-to"), f"annotations/rewards/{key}"
    if not isinstance(parts, list) or not all(isinstance(part, str) and part in sizes for part in parts):
        raise ProblemError(f"index.json: the rewards {key!r} apply to {shortened(parts)}; known are {', '.join(sizes)}")
    if "probability-type" in entry:
        raise ProblemError(f"index.json: the rewards {key!r} are random distributions, not numbers; leave them out")
    found = {}
    for part in parts:
        member = f"{folder}/{part}/values.bin"
        found[part] = archive.numbers(member, entry.get("type"), sizes[part])
        bad = np.flatnonzero(~np.isfinite(found[part]))
        if len(bad):
            raise ProblemError(
                f"{member}: entry {bad[0]} is {found[part][bad[0]]}; every reward must be a finite number"
            )
    return Rewards(**found)
