"""Names of states in UMB files, made from the values of the model's variables: ``x=3, open=true``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tradeoff.errors import ProblemError
from tradeoff.sources.messages import shortened

KINDS = ("bool", "int", "uint", "double", "string")
MOST_LABELS = 8  # in the name of a state
FOLDER = "valuations/states"


class Members(Protocol):
    """The methods that this module needs of an archive."""

    def raw(self, name: str) -> NDArray[np.uint8]:
        """Return the bytes of a member."""

    def texts(self, folder: str, count: int) -> list[str]:
        """Return the strings of a folder."""


def state_names(
    archive: Members, index: Mapping[str, Any], states: int, labels: Mapping[str, NDArray[np.uint8]]
) -> tuple[tuple[str, ...] | None, list[str]]:
    """Return the names of the states (None if they only have numbers), and a note if variables could not be read.

    Names come from the variables if the file has them, and otherwise from the labels: ``3 (home)``.
    """
    valuations = index.get("valuations")
    entry = valuations.get("states") if isinstance(valuations, dict) else None
    if entry is not None:
        variables = _variables(entry)
        if variables is None:
            return None, ["states are named by number, because variables of this kind are not supported"]
        annotations = index.get("annotations")
        rewards = annotations.get("rewards") if isinstance(annotations, dict) else None
        derived = {*labels, *(rewards if isinstance(rewards, dict) else ())}
        names = _from_variables(archive, entry, variables, states, derived)
        if names is not None:
            return names, []
    return _from_labels(states, labels), []


def _from_labels(states: int, labels: Mapping[str, NDArray[np.uint8]]) -> tuple[str, ...] | None:
    """Return the number of each state with its labels, or None if no state has a label."""
    found: dict[int, list[str]] = {}
    for label in [name for name in labels if name not in ("init", "deadlock")][:MOST_LABELS]:
        for state in np.flatnonzero(np.unpackbits(labels[label], count=states, bitorder="little")).tolist():
            found.setdefault(state, []).append(str(label))
    if not found:
        return None
    return tuple(f"{i} ({', '.join(found[i])})" if i in found else str(i) for i in range(states))


def _variables(entry: object) -> list[dict[str, Any]] | None:
    """Return the variables and the padding between them, or None if any is of an unsupported type."""
    classes = entry.get("classes") if isinstance(entry, dict) else None
    if not isinstance(classes, list) or len(classes) != 1 or not isinstance(classes[0], dict):
        return None
    fields = classes[0].get("variables")
    if not isinstance(fields, list) or not all(isinstance(field, dict) for field in fields):
        return None
    for field in fields:
        readable = _kind(field) in KINDS and isinstance(field.get("name"), str)
        if not (readable or "padding" in field) or not 0 < _bits(field) <= 64 + (field.get("is-optional") is True):
            return None
    return fields


def _bits(field: Mapping[str, Any]) -> int:
    """Return the number of bits in a variable or padding; 0 if the index does not give a number."""
    kind = field.get("type")
    said = kind.get("size") if isinstance(kind, dict) else None
    size = field.get("padding", (1 if _kind(field) == "bool" else 64) if said is None else said)
    if not isinstance(size, int) or isinstance(size, bool) or not 0 < size <= 64:
        return 0
    return size + (field.get("is-optional") is True)


def _from_variables(
    archive: Members, entry: Mapping[str, Any], fields: Sequence[Mapping[str, Any]], states: int, derived: set[str]
) -> tuple[str, ...] | None:
    """Return names made from the variables, leaving out those with the same value in all states.

    ``derived`` variables (in JANI, labels and rewards are variables) are used only if the others do not tell all states
    apart.
    """
    raw = archive.raw(f"{FOLDER}/valuations.bin")
    width = -(-sum(map(_bits, fields)) // 8)
    if len(raw) != states * width:
        raise ProblemError(f"{FOLDER}/valuations.bin has {len(raw):,} bytes, but {states:,} times {width} are needed")
    rows = raw.reshape(states, width)
    texts = archive.texts(FOLDER, _string_count(entry)) if any(_kind(field) == "string" for field in fields) else []
    columns: dict[str, list[str]] = {}
    offset = 0
    for field in fields:
        if "padding" not in field:
            words = _words(rows, offset, field, texts)
            if any(word != words[0] for word in words):
                columns[field["name"]] = words
        offset += _bits(field)
    own = {name: words for name, words in columns.items() if name not in derived}
    for chosen in (own, columns):
        names = [", ".join(filter(None, words)) for words in zip(*chosen.values(), strict=True)]
        if len(set(names)) == states:
            return tuple(names)
    if not columns:
        return None
    return tuple(f"{name} [{i}]" for i, name in enumerate(names))  # the variables do not tell all states apart


def _kind(field: Mapping[str, Any]) -> object:
    kind = field.get("type")
    return kind.get("type") if isinstance(kind, dict) else None


def _string_count(entry: Mapping[str, Any]) -> int:
    count = entry.get("#strings")
    if not isinstance(count, int) or isinstance(count, bool) or not 0 < count < 2**31:
        raise ProblemError(f"index.json: the variables have {shortened(count)} as their number of strings")
    return count


def _words(rows: NDArray[np.uint8], offset: int, field: Mapping[str, Any], texts: Sequence[str]) -> list[str]:
    """Return ``name=value`` for each state, or "" if the variable does not exist there."""
    optional, size = field.get("is-optional") is True, _bits(field)
    first, last = offset // 8, -(-(offset + size) // 8)
    bits = np.unpackbits(rows[:, first:last], axis=1, bitorder="little")[:, offset % 8 :][:, :size]
    present = bits[:, 0].astype(bool) if optional else np.ones(len(rows), dtype=bool)
    value = bits[:, 1:] if optional else bits
    padded = np.zeros((len(rows), 64), dtype=np.uint8)
    padded[:, : value.shape[1]] = value
    if _kind(field) == "int":  # the highest bit is the sign
        padded[:, value.shape[1] :] = value[:, -1:]
    packed = np.packbits(padded, axis=1, bitorder="little").ravel()
    different, at = np.unique(packed.view("<u8"), return_inverse=True)
    shown = [f"{field['name']}={_shown(word, field, texts)}" for word in different]
    return [shown[i] if here else "" for i, here in zip(at.ravel().tolist(), present.tolist(), strict=True)]


def _shown(word: np.uint64, field: Mapping[str, Any], texts: Sequence[str]) -> str:
    """Return a value of a variable in readable form."""
    shift = field.get("offset") or 0
    if not isinstance(shift, int):
        raise ProblemError(f"index.json: the variable {shortened(field['name'])} has the offset {shortened(shift)}")
    match _kind(field):
        case "bool":
            return "true" if word else "false"
        case "double":
            return f"{word.view(np.float64):.12g}"
        case "string":
            if word >= len(texts):
                raise ProblemError(
                    f"{FOLDER}/valuations.bin: {shortened(field['name'])} is string {word} of {len(texts)}"
                )
            return texts[int(word)]
        case "int":
            return str(int(word.view(np.int64)) + shift)
        case _:
            return str(int(word) + shift)
