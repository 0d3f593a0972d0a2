"""The compact form for large models: arrays and a JSON header in one .npz file. Nothing in it is ever executed."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from tradeoff.errors import ProblemError
from tradeoff.model import Objective, Reference
from tradeoff.problems.building import Numbered
from tradeoff.problems.catalogue import Catalogue
from tradeoff.problems.layer import Layer, check_layer
from tradeoff.problems.mdp import MDP
from tradeoff.problems.memory import check_fits

FORMAT = "tradeoff-npz/1"
LAYER_ARRAYS = ("state_ptr", "action", "choice_ptr", "target", "prob", "reward", "branch_reward")


def write(problem: Catalogue | MDP, path: Path) -> None:
    """Write a problem as .npz; reading it back gives the same problem exactly."""
    header: dict[str, Any] = {
        "format": FORMAT,
        "kind": "catalogue" if isinstance(problem, Catalogue) else "mdp",
        "title": problem.title,
        "about": problem.about,
        "objectives": [[o.name, o.unit, o.goal] for o in problem.objectives],
        "reference": [problem.reference.name, problem.reference.outcome and dict(problem.reference.outcome)],
    }
    arrays: dict[str, NDArray[Any]] = {}
    if isinstance(problem, Catalogue):
        header |= {"names": list(problem.names), "labels": {key: list(t) for key, t in problem.labels.items()}}
        arrays["values"] = problem.values
    else:
        header |= {
            "horizon": problem.horizon,
            "actions": list(problem.actions),
            "nothing_action": problem.nothing_action,
            "layers": len(problem.layers),
            "places": problem.places,
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


def read(path: Path) -> Catalogue | MDP:
    """Return the problem in an .npz file that ``write`` made; everything is checked, sizes before anything is read."""
    try:
        with zipfile.ZipFile(path) as archive:
            _check_sizes(archive, path)
        with np.load(path, allow_pickle=False) as arrays:
            return _problem(dict(arrays), path)
    except ProblemError as error:
        raise error if str(path) in str(error) else type(error)(f"{path}: {error}") from None
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, KeyError, TypeError, IndexError) as error:
        raise ProblemError(f"{path} is not a tradeoff .npz file, or it is damaged: {error}") from None


def _check_sizes(archive: zipfile.ZipFile, path: Path) -> None:
    """Refuse a file whose arrays would not fit, or that say they are larger than what is stored."""
    total = 0
    for member in archive.infolist():
        with archive.open(member) as file:
            version = npy.read_magic(file)
            read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, _, dtype = read_header(file, max_header_size=10_000)
            stored = member.file_size - file.tell()
        if dtype.hasobject:
            raise ProblemError(f"{path}: {member.filename} holds objects, which are never loaded")
        size = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if size != stored:
            raise ProblemError(f"{path}: {member.filename} says it has {size:,} bytes, but {stored:,} are stored")
        total += size
    check_fits(2 * total, f"the arrays in {path}")


def _problem(arrays: dict[str, NDArray[Any]], path: Path) -> Catalogue | MDP:
    header = json.loads(arrays["header"].astype(np.uint8).tobytes().decode())
    if header["format"] != FORMAT:
        raise ProblemError(f"{path}: its format is {header['format']!r}; this version reads {FORMAT!r}")
    objectives = [Objective(*fields) for fields in header["objectives"]]
    reference = Reference(*header["reference"])
    texts = {"name": path.stem, "title": header["title"], "about": header["about"]}
    if header["kind"] == "catalogue":
        names, labels = header["names"], header["labels"]
        return Catalogue(arrays["values"], objectives, names, labels=labels, reference=reference, **texts)
    states = Numbered(arrays["state_numbers"]) if "state_numbers" in arrays else tuple(header["states"])
    layers = []
    for i in range(header["layers"]):
        parts = {name: arrays.get(f"{name}_{i}") for name in LAYER_ARRAYS}
        layer = Layer(**parts)  # type: ignore[arg-type]
        check_layer(layer, states, header["actions"], [o.name for o in objectives])
        layers.append(layer)
    nothing = header["nothing_action"]
    return MDP(
        layers, horizon=header["horizon"], start=arrays["start"], states=states, actions=header["actions"],
        objectives=objectives, reference=reference,
        nothing_action=None if nothing is None else header["actions"][nothing],
        places={state: (x, y) for state, (x, y) in header["places"].items()}, **texts,
    )  # fmt: skip
