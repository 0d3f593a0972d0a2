"""The compact form for large models: arrays and a JSON header in one .npz file. Reading it never runs code from the file."""

from __future__ import annotations

import json
import struct
import sys
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.mdp.inputs import Numbered
from tradeoff.mdp.layer import Layer, check_layer
from tradeoff.mdp.model import MDP
from tradeoff.memory import check_fits
from tradeoff.model import Objective, Reference
from tradeoff.problem import check_distinct
from tradeoff.problems.catalogue import Catalogue
from tradeoff.problems.coverage import Coverage
from tradeoff.sources.files import coverages
from tradeoff.sources.files.writing import known_places
from tradeoff.sources.limits import MOST_KEYS, check_characters, check_length
from tradeoff.sources.messages import shortened

FORMAT = "tradeoff-npz/1"
LAYER_ARRAYS = ("state_ptr", "action", "choice_ptr", "target", "prob", "reward", "branch_reward")
# A model's arrays do not compress very well: a file that unpacks to far more than its size is malicious.
SURELY_QUICK = 256 << 20
MOST_PACKED = 200
# The exceptions that reading a damaged or malicious file may raise.
DAMAGES = (
    zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError, OSError, EOFError, ValueError, LookupError,
    TypeError, AttributeError, ArithmeticError, RuntimeError, SyntaxError,
)  # fmt: skip


def write(problem: Catalogue | MDP | Coverage, path: Path) -> None:
    """Write a problem as .npz; reading it back gives the same problem exactly."""
    arrays: dict[str, NDArray[Any]] = {}
    if isinstance(problem, Coverage):
        arrays |= coverages.arrays_of(problem)
        problem = problem.storable_model
    header: dict[str, Any] = {
        "format": FORMAT,
        "kind": "catalogue" if isinstance(problem, Catalogue) else "mdp",
        "title": problem.title,
        "about": problem.about,
        "noun": problem.noun,
        "objectives": [
            [o.name, o.unit, o.goal, *_without_empty_end([o.description, o.better, o.worse])]
            for o in problem.objectives
        ],
        "reference": [problem.reference.name, problem.reference.outcome and dict(problem.reference.outcome)],
    }
    if isinstance(problem, Catalogue):
        header |= {"names": list(problem.names), "labels": {key: list(t) for key, t in problem.labels.items()}}
        arrays["values"] = problem.values
    else:
        header |= {
            "horizon": problem.horizon,
            "actions": list(problem.actions),
            "nothing_action": problem.nothing_action,
            "layers": len(problem.layers),
            "places": known_places(problem),
            "describe": problem.wording.description,
        }
        if isinstance(problem.states, Numbered):
            arrays["state_numbers"] = problem.states.numbers
        else:
            header["states"] = list(problem.states)
        arrays["start"] = problem.start
        for i, layer in enumerate(problem.layers):
            for name in LAYER_ARRAYS:
                array = getattr(layer, name)
                if array is not None:
                    arrays[f"{name}_{i}"] = array
    arrays["header"] = np.frombuffer(json.dumps(header, allow_nan=False).encode(), dtype=np.uint8)
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def read(path: Path) -> Catalogue | MDP | Coverage:
    """Return the problem in an .npz file made by ``write``; everything is checked, and sizes before anything is read."""
    try:
        with zipfile.ZipFile(path) as archive:
            _check_sizes(archive, path)
        with np.load(path, allow_pickle=False) as arrays:
            model = _problem(arrays, path)
            return coverages.coverage_from(arrays, model) if coverages.HEADER in arrays else model
    except ProblemError as error:
        raise error if str(path) in str(error) else type(error)(f"{path}: {error}") from None
    except ArgumentError:
        raise
    except DAMAGES as error:
        said = shortened(str(error))[1:-1]
        raise ProblemError(f"{path} is not a tradeoff .npz file, or it is damaged: {said}") from None


def write_plans(coverage: Coverage, path: Path) -> None:
    """Write a coverage without its model, for ``read_plans``."""
    with path.open("wb") as file:
        np.savez_compressed(file, **coverages.arrays_of(coverage))  # type: ignore[arg-type]


def read_plans(path: Path, model: MDP) -> Coverage:
    """Return the coverage of a model that ``write_plans`` wrote; everything is checked, as in ``read``."""
    try:
        with zipfile.ZipFile(path) as archive:
            _check_sizes(archive, path)
        with np.load(path, allow_pickle=False) as arrays:
            return coverages.coverage_from(arrays, model)
    except ProblemError:
        raise
    except DAMAGES as error:
        raise ProblemError(f"the plans cannot be read: {shortened(str(error))[1:-1]}") from None


def _check_sizes(archive: zipfile.ZipFile, path: Path) -> None:
    """Raise a ProblemError if the arrays would not fit into memory, or claim to be larger than what is stored."""
    members = archive.infolist()
    total = sum(member.file_size for member in members)
    packed = max(1, path.stat().st_size)
    check_fits(2 * total, f"the arrays in {path}")
    if total > SURELY_QUICK and total > MOST_PACKED * packed:
        raise ProblemError(
            f"{path} would unpack from {packed / 2**20:,.3g} MB to {total / 2**20:,.0f} MB, which no model does; "
            "is it damaged?"
        )
    for member in members:
        with archive.open(member) as file:
            version = npy.read_magic(file)
            read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, _, dtype = read_header(file, max_header_size=10_000)
            stored = member.file_size - file.tell()
        if dtype.hasobject:
            raise ProblemError(f"{path}: {member.filename} holds objects, which are never loaded")
        size = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if size != stored:
            raise ProblemError(f"{path}: {member.filename} claims to have {size:,} bytes, but {stored:,} are stored")


def _problem(arrays: Mapping[str, NDArray[Any]], path: Path) -> Catalogue | MDP:
    text = arrays["header"].astype(np.uint8).tobytes().decode()
    header = json.loads(text)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        found = header.get("format") if isinstance(header, dict) else header
        raise ProblemError(f"{path}: its format is {shortened(found)}; this version reads {FORMAT!r}")
    check_characters(header, text)
    _check_header(header)
    objectives = [Objective(*fields) for fields in header["objectives"]]
    check_distinct("objective", [o.name for o in objectives])
    reference = Reference(*header["reference"])
    texts = {"name": path.stem, "title": header["title"], "about": header["about"], "noun": header.get("noun") or ""}
    if header["kind"] == "catalogue":
        names, labels = header["names"], header["labels"]
        return Catalogue(
            _array(arrays, "values", np.float64), objectives, names, labels=labels, reference=reference, **texts
        )
    actions, horizon, nothing = header["actions"], header["horizon"], header["nothing_action"]
    states = _states(header, arrays)
    layers = [_layer(arrays, i, states, actions, objectives) for i in range(header["layers"])]
    check_length(horizon, len(layers[0].target) if len(layers) == 1 else 1)
    return MDP(
        layers, horizon=horizon, start=_array(arrays, "start", np.float64), states=states, actions=actions,
        objectives=objectives, reference=reference, nothing_action=None if nothing is None else actions[nothing],
        places={state: (float(x), float(y)) for state, (x, y) in header["places"].items()},
        describe=header.get("describe"), **texts,
    )  # fmt: skip


def _array(arrays: Mapping[str, NDArray[Any]], name: str, kind: Any) -> NDArray[Any]:
    """Return an array in the form the kernels need; raise a ProblemError if it is missing or of the wrong type."""
    if name not in arrays:
        raise ProblemError(f"the array {name!r} is missing; was the file made by this program?")
    array = arrays[name]
    if not isinstance(array, np.ndarray) or not np.issubdtype(array.dtype, kind):
        raise ProblemError(f"the array {name!r} is not of type {kind.__name__}; was the file made by this program?")
    return np.ascontiguousarray(array)


def _states(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Sequence[str]:
    """Return the names of the states, checked."""
    if "state_numbers" not in arrays:
        states = tuple(header["states"])
        check_distinct("state", states)
        return states
    numbers = _array(arrays, "state_numbers", np.integer)
    if numbers.ndim != 1 or len(np.unique(numbers)) != len(numbers):
        raise ProblemError("the numbers of the states are not a list of distinct numbers; was it made by this program?")
    return Numbered(numbers)


def _layer(
    arrays: Mapping[str, NDArray[Any]],
    number: int,
    states: Sequence[str],
    actions: Sequence[str],
    objectives: Sequence[Objective],
) -> Layer:
    """Return the layer of one step, checked."""
    parts: dict[str, Any] = {"branch_reward": None}
    for name in LAYER_ARRAYS:
        if name != "branch_reward" or f"{name}_{number}" in arrays:
            parts[name] = _array(arrays, f"{name}_{number}", np.number)
    # Differences of huge pointers could overflow, so that decreasing pointers would seem to increase.
    for name in ("state_ptr", "choice_ptr"):
        if parts[name].min(initial=0) < 0:
            raise ProblemError(f"the pointers {name}_{number} of the model are negative; is the file damaged?")
    layer = Layer(**parts)
    check_layer(layer, states, actions, [o.name for o in objectives])
    return layer


def _check_header(header: Mapping[str, Any]) -> None:
    """Raise a ProblemError that names the first missing or wrong entry of the header."""
    is_mdp = header.get("kind") == "mdp"
    checks = COMMON | (MDP_ONLY if is_mdp else CATALOGUE_ONLY)
    for name, (check, expected) in checks.items():
        value = header.get(name, () if name == "states" else None)
        if not check(value):
            raise ProblemError(f"its header has {name} = {shortened(value)}, but must have {expected}")
    if is_mdp:
        actions, nothing = header["actions"], header["nothing_action"]
        check_distinct("action", actions)
        if nothing is not None and not (is_count(nothing) and 0 <= nothing < len(actions)):
            raise ProblemError(
                f"its header has nothing_action = {shortened(nothing)}, but must have null or the number of an "
                f"action, from 0 to {len(actions) - 1}"
            )


def is_text(value: object) -> bool:
    """Return whether this is a string."""
    return isinstance(value, str)


def is_count(value: object) -> bool:
    """Return whether this is a whole number, 0 or more."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_amount(value: object) -> bool:
    """Return whether this is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def is_list(value: object, check: Callable[[object], bool] = is_text, length: int | None = None) -> bool:
    """Return whether this is a list of such values, by default strings."""
    return (
        isinstance(value, list | tuple)
        and len(value) == (len(value) if length is None else length)
        and all(map(check, value))
    )


def is_table(value: object, check: Callable[[object], bool]) -> bool:
    """Return whether this is a table of such values."""
    return isinstance(value, dict) and all(map(check, value.values()))


def _without_empty_end(texts: list[str]) -> list[str]:
    """Return the texts up to the last that is not empty: files without new texts stay readable by old versions."""
    while texts and not texts[-1]:
        texts.pop()
    return texts


def _is_objectives(value: object) -> bool:
    if not is_list(value, lambda fields: any(is_list(fields, length=length) for length in range(3, 7))):
        return False
    return 1 <= len(value) <= MOST_KEYS  # type: ignore[arg-type]


def _is_description(value: object) -> bool:
    return value is None or is_table(value, lambda part: is_text(part) or is_list(part))


def _is_reference(value: object) -> bool:
    if not isinstance(value, list) or len(value) != 2:
        return False
    return is_text(value[0]) and (value[1] is None or is_table(value[1], is_amount))


Checks: TypeAlias = dict[str, tuple[Callable[[object], bool], str]]
COMMON: Checks = {
    "kind": (lambda value: value in ("mdp", "catalogue"), "'mdp' or 'catalogue'"),
    "title": (is_text, "a text"),
    "about": (is_text, "a text"),
    "noun": (lambda value: value is None or is_text(value), "a text"),
    "objectives": (_is_objectives, f"1 to {MOST_KEYS:,} lists of name, unit, goal and perhaps texts"),
    "reference": (_is_reference, "a name and an outcome"),
}
CATALOGUE_ONLY: Checks = {
    "names": (is_list, "a list of strings"),
    "labels": (lambda value: is_table(value, is_list), "a table of lists of strings"),
}
MDP_ONLY: Checks = {
    "horizon": (is_count, "a whole number"),
    "layers": (lambda value: is_count(value) and bool(value), "a whole number, at least 1"),
    "actions": (is_list, "a list of strings"),
    "states": (is_list, "a list of strings"),
    "describe": (_is_description, "a table of strings"),
    "places": (lambda value: is_table(value, lambda pair: is_list(pair, is_amount, 2)), "a table of pairs of numbers"),
}
