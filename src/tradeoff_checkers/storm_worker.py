"""A program that runs Storm to build a model and write it as a UMB file.

Storm runs in a separate process because it prints to standard output, and because a malicious model can crash the process
that reads it. The task arrives as JSON on standard input; the result is written as JSON to the file that the task names.
Only the standard library and stormpy are imported here.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

PLANNED = ("mdp", "dtmc")  # kinds of programs that are worth building


def kind_of(program: Any) -> str:
    """Return the kind of model a program defines; stormpy has no names for Storm's newest kinds."""
    try:
        name: str = program.model_type.name
    except ValueError as error:
        name = {"7": "pta", "8": "smg"}.get(str(error).split()[0], "unknown")
    return name.lower()


def build_symbolic(storm: Any, task: dict[str, Any]) -> Any:
    """Return the model of a PRISM or JANI program, or a dict saying why it cannot be built."""
    if task["kind"] == "prism":
        program = storm.parse_prism_program(task["path"], prism_compatibility=True)
    else:
        program = storm.parse_jani_model(task["path"])[0]
    kind = kind_of(program)
    if kind not in PLANNED:
        return {"refused": kind}
    constants = {constant.name for constant in program.constants if not constant.defined}
    missing, unknown = constants - set(task["constants"]), set(task["constants"]) - constants
    if missing or unknown:
        return {"missing": sorted(missing), "unknown": sorted(unknown), "constants": sorted(constants)}
    if constants:
        values = ",".join(f"{name}={value}" for name, value in task["constants"].items())
        try:
            program = storm.instantiate_constants(program, values)[0]
        except RuntimeError as error:
            return {"constant": str(error)}
    options = storm.BuilderOptions()
    options.set_build_all_reward_models(True)
    options.set_build_all_labels(True)
    options.set_build_state_valuations(True)
    options.set_build_choice_labels(True)
    options.set_add_out_of_bounds_state(True)  # by default, Storm changes a value that is out of range
    model = storm.build_model(program, options=options)
    if "out_of_bounds" in model.labeling.get_labels():
        return {"error": "an update gives a variable a value outside its range; correct the update or the range"}
    return model


def build_explicit(storm: Any, task: dict[str, Any]) -> Any:
    """Return the model of a .tra file, with a reward structure for each name that has reward files."""
    model = storm.build_model_from_explicit(task["path"], task["labels"])
    for name, files in task["rewards"].items():  # Storm reads one reward structure at a time
        (rewards,) = storm.build_model_from_explicit(task["path"], task["labels"], **files).reward_models.values()
        model.add_reward_model(name, rewards)
    return model


def build_drn(storm: Any, task: dict[str, Any]) -> Any:
    """Return the model of a DRN file."""
    options = storm.io.DirectEncodingParserOptions()
    options.build_choice_labeling = True
    return storm.build_model_from_drn(task["path"], options=options)


def stay_within(task: dict[str, Any]) -> None:
    """Limit the memory and processor time of this process, and end it with its parent, where the system can do so.

    The kernel enforces the limits: while Storm computes, no Python code runs here that could.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform == "linux":
        kill_with_parent = 1  # PR_SET_PDEATHSIG
        ctypes.CDLL(None).prctl(kill_with_parent, signal.SIGKILL)
        if os.getppid() != task["parent"]:  # the parent ended before the call above
            sys.exit(1)
    try:
        resource = import_module("resource")
    except ImportError:  # not a Unix system
        return
    wanted = {
        resource.RLIMIT_AS: (task["memory"], task["memory"]),
        resource.RLIMIT_CPU: (task["seconds"], task["seconds"] + 2),  # SIGXCPU, then SIGKILL
        resource.RLIMIT_CORE: (0, 0),
    }
    for which, limits in wanted.items():
        _, hard = resource.getrlimit(which)  # the hard limit cannot be raised
        most = sys.maxsize if hard == resource.RLIM_INFINITY else hard
        resource.setrlimit(which, tuple(min(limit, most) for limit in limits))


def answer(task: dict[str, Any]) -> dict[str, Any]:
    """Do the task and return what went wrong; an empty result means that the model was written."""
    stay_within(task)
    storm = import_module("stormpy")
    storm.developer.set_log_level(storm.developer.LogLevel.OFF)
    build = {"drn": build_drn, "explicit": build_explicit}.get(task["kind"], build_symbolic)
    try:
        model = build(storm, task)
        if isinstance(model, dict):
            return model
        options = storm.io.UmbExportOptions()
        options.compression = storm.io.CompressionMode.NO_COMPRESSION
        storm.io.export_to_umb(model, task["umb"], options=options)
    except (RuntimeError, UnicodeDecodeError) as error:  # Storm may quote bytes that are not UTF-8
        return {"error": "it is not text" if isinstance(error, UnicodeDecodeError) else str(error)}
    except MemoryError:
        return {"memory": True}
    return {}


if __name__ == "__main__":
    given = json.load(sys.stdin)
    Path(given["said"]).write_text(json.dumps(answer(given)), encoding="utf-8")
