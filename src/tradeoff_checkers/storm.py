"""Models read by Storm: PRISM and JANI programs, DRN files, and .tra files with the files beside them.

Storm builds the model and writes it as a UMB file, which is then read like any other UMB file.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from subprocess import DEVNULL, PIPE
from tempfile import TemporaryDirectory
from typing import Any

from tradeoff.errors import ArgumentError, ProblemError, TooLargeError
from tradeoff.mdp.model import MDP
from tradeoff.memory import GIB, memory_limit
from tradeoff.sources.limits import seconds_limit
from tradeoff.sources.messages import shortened
from tradeoff.sources.options import library, listed
from tradeoff.sources.progress import report
from tradeoff_checkers.explicit_models import REFUSED, ModelOptions
from tradeoff_checkers.umb import read_model

WORKER = Path(__file__).with_name("storm_worker.py")
LARGEST_FILE = 1 << 30
# What Storm may use unless TRADEOFF_SECONDS and TRADEOFF_MEMORY say otherwise: a base amount, plus more for large files.
SECONDS = 8  # of processor time; enough for a million states
BYTES_PER_SECOND = 1 << 20
MEMORY = 2 * GIB
BYTES_PER_BYTE = 20
LEAST_MEMORY = 256 << 20  # Storm itself needs some
WAITING = 60  # a worker that runs this many times its processor time by the clock is stuck
KINDS = {"ctmdp": "ctmc", "smg": "game", "csg": "game", "tsg": "game", "popta": "pta", "ha": "pta", "sha": "pta"}
REWARD_FILES = {".srew": "state_rewards", ".trew": "transition_rewards"}


@dataclass(frozen=True)
class ProgramOptions(ModelOptions):
    """Options for reading a program; ``constants`` sets the constants it leaves undefined (``N=3,p=0.5``)."""

    constants: object = None


def read_prism(path: Path, options: ProgramOptions) -> MDP:
    """Return the MDP of a PRISM program."""
    return _read(path, {"kind": "prism", "constants": _constants(options.constants)}, options)


def read_jani(path: Path, options: ProgramOptions) -> MDP:
    """Return the MDP of a JANI program."""
    return _read(path, {"kind": "jani", "constants": _constants(options.constants)}, options)


def read_drn(path: Path, options: ModelOptions) -> MDP:
    """Return the MDP of a DRN file (Storm's explicit text format)."""
    return _read(path, {"kind": "drn"}, options)


def read_explicit(path: Path, options: ModelOptions) -> MDP:
    """Return the MDP of a .tra file and the files beside it.

    For ``robot.tra`` these are the labels ``robot.lab`` and the rewards: ``robot.time.srew`` (of states) and
    ``robot.time.trew`` (of transitions) define the objective "time", ``robot.srew`` and ``robot.trew`` "reward".
    """
    labels = path.with_suffix(".lab")
    if not labels.is_file():
        raise ProblemError(f"{path}: there is no file {labels.name!r} beside it; it must say which state is 'init'")
    task = {"kind": "explicit", "labels": str(labels.resolve()), "rewards": _reward_files(path)}
    return _read(path, task, options)


def _reward_files(path: Path) -> dict[str, dict[str, str]]:
    """Return the reward files beside a .tra file, by objective and by what earns the reward (states or transitions)."""
    found: dict[str, dict[str, str]] = {}
    for file in sorted(path.parent.iterdir()):
        begins, _, name = file.stem.partition(path.stem)
        if file.suffix in REWARD_FILES and not begins and (not name or (name[0] == "." and len(name) > 1)):
            found.setdefault(name[1:] or "reward", {})[REWARD_FILES[file.suffix]] = str(file.resolve())
    if not found:
        raise ProblemError(
            f"{path}: there are no rewards beside it; put them into {path.stem}.NAME.srew (of states) and "
            f"{path.stem}.NAME.trew (of transitions), for each objective NAME"
        )
    return found


def _constants(given: object) -> dict[str, str]:
    """Return the values of constants, given as a mapping or a string such as ``N=3,p=0.5``."""
    if given is None:
        return {}
    pairs = [f"{name}={value}" for name, value in given.items()] if isinstance(given, Mapping) else given
    found: dict[str, str] = {}
    for text in listed("constants", pairs):
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name.isidentifier() or not value:
            raise ArgumentError(f"constants is {shortened(given)}; it must be of the form NAME=VALUE,NAME=VALUE")
        if name in found:
            raise ArgumentError(f"the constant {name!r} is given twice; keep one of them")
        found[name] = value.lower() if value in ("True", "False") else value
    return found


def _read(path: Path, task: dict[str, Any], options: ModelOptions) -> MDP:
    """Let Storm build the model, and return it as an MDP."""
    if find_spec("stormpy") is None:
        library("stormpy", "checker", f"reading {path.name}")
    if path.stat().st_size > LARGEST_FILE:
        raise ProblemError(f"{path} has more than {LARGEST_FILE >> 20} MB; write such a model as a UMB file")
    seconds, memory = _budget(path.stat().st_size)
    with TemporaryDirectory(prefix="tradeoff-") as folder:
        umb, said = Path(folder, "model.umb"), Path(folder, "said.json")
        whole = task | {
            "path": str(path.resolve()), "umb": str(umb), "said": str(said),
            "memory": memory, "seconds": seconds, "parent": os.getpid(),
        }  # fmt: skip
        code, errors = _run_worker(json.dumps(whole), path.name, seconds)
        try:
            answer = json.loads(said.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):  # the worker ended before it finished writing
            raise ProblemError(f"{path}: {_ending(code, errors, seconds, memory)}") from None
        if answer.get("memory"):
            raise TooLargeError(f"{path}: {_too_large(memory)}")
        _check_said(path, answer)
        return read_model(umb, options, path)


def _budget(size: int) -> tuple[int, int]:
    """Return the seconds of processor time and the bytes of memory that Storm may use for a file of this size."""
    seconds = math.ceil(seconds_limit(SECONDS + size // BYTES_PER_SECOND))
    memory = memory_limit()
    if "TRADEOFF_MEMORY" not in os.environ:
        memory = min(memory, MEMORY + BYTES_PER_BYTE * size)
    return seconds, max(LEAST_MEMORY, memory)


def _run_worker(task: str, name: str, seconds: int) -> tuple[int, str]:
    """Run the worker, which never outlives this call; return its exit status and its standard error."""
    # -P: do not import from the worker's folder.
    command = [sys.executable, "-P", str(WORKER)]
    with subprocess.Popen(command, stdin=PIPE, stdout=DEVNULL, stderr=PIPE, text=True, errors="replace") as worker:
        given: str | None = task
        began = time.monotonic()
        try:
            while True:
                try:
                    _, errors = worker.communicate(given, timeout=0.5)
                    return worker.returncode, errors
                except subprocess.TimeoutExpired:
                    waited = time.monotonic() - began
                    report(f"Storm reads {name}", int(waited))
                    if waited > WAITING * seconds:
                        worker.kill()
                        return -signal.SIGXCPU, ""
                given = None
        except BaseException:  # such as KeyboardInterrupt
            worker.kill()
            raise


def _too_large(memory: int) -> str:
    return (
        f"Storm needs more than {memory / GIB:.3g} GiB of memory for it; make the model smaller, or allow more with the "
        "environment variable TRADEOFF_MEMORY (in GiB)"
    )


def _ending(code: int, errors: str, seconds: int, memory: int) -> str:
    """Return why a worker ended without a result."""
    if code == -signal.SIGXCPU:
        return (
            f"Storm did not finish within {seconds} seconds of processor time; make the model smaller, or allow more with "
            "the environment variable TRADEOFF_SECONDS"
        )
    if "MemoryError" in errors:
        return _too_large(memory)
    if code < 0:
        return (
            f"Storm could not read it: signal {-code} ended it; it may be nested too deeply, or need more than "
            f"{memory / GIB:.3g} GiB of memory (TRADEOFF_MEMORY allows more)"
        )
    last = errors.strip().splitlines()[-1:] or [f"it ended with {code}"]
    return f"Storm could not be run: {shortened(last[0])[1:-1]}"


def _check_said(path: Path, said: Mapping[str, Any]) -> None:
    """Raise an error if the worker reports that it could not build the model."""
    if "refused" in said:
        kind = KINDS.get(said["refused"], said["refused"])
        raise ProblemError(f"{path}: {REFUSED.get(kind, f'a model of the kind {kind!r} cannot be planned for')}")
    if said.get("unknown"):
        known = ", ".join(said["constants"]) or "none"
        raise ArgumentError(
            f"{path.name} has no undefined constant {said['unknown'][0]!r}; its undefined constants are: {known}"
        )
    if said.get("missing"):
        missing = said["missing"]
        raise ArgumentError(
            f"{path.name} leaves the constants {', '.join(missing)} undefined; give them values with "
            f"constants={','.join(f'{name}=1' for name in missing)} (on the command line: --with constants=...)"
        )
    if "constant" in said:
        raise ArgumentError(f"the constants of {path.name}: {_plain(said['constant'])}")
    if "error" in said:
        raise ProblemError(f"{path}: Storm cannot read it: {_plain(said['error'])}")


def _plain(text: str) -> str:
    """Return a message of Storm on one line, without the name of its C++ class."""
    name, colon, rest = text.partition(": ")
    words = " ".join((rest if colon and name.endswith("Exception") else text).split())
    for word, reason in (("interval", "interval"), ("parametric", "parametric")):
        if word in words:
            words += f" ({REFUSED[reason]})"
    return words if len(words) <= 300 else words[:297] + "..."
