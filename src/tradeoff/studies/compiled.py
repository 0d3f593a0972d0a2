"""The coverage of a study's model: found once, kept beside the study, and used by everybody who begins after that.

An interview stays with what it began with, which its log names by a fingerprint: the model, or the coverage. A study has at
most one coverage, and it never changes: whoever keeps one first decides. So every process replays every interview alike.
"""

from __future__ import annotations

import base64
import hashlib
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tradeoff.errors import ProblemError
from tradeoff.problems.coverage import Coverage
from tradeoff.problems.mdp import MDP
from tradeoff.stores import ConflictError, DamagedError, MissingError, Store
from tradeoff.studies.study import LARGEST_PROBLEM, Study

if TYPE_CHECKING:
    from tradeoff.sources import AnyProblem

Result = TypeVar("Result")

FORMAT = "tradeoff-compiled/1"
LOG = "coverage"  # the name of the log, in a folder of the study's own
SHARE_OF_TARGET = 0.1  # what the plans may miss, as a share of the regret that interviews aim at
TARGET = 0.01  # the regret that the strategies aim at unless told otherwise
GAINING = ("careful", "certified")  # strategies that look up hundreds of weights >= 0
# Branches times steps. Below, a solve takes well under a millisecond, and a plan has few situations to tell.
LEAST_WORK = 100_000
SECONDS = 600.0  # for which plans are looked for
# A smaller model is compiled before anybody is let in, if that takes no longer than this: whoever began before would be asked
# about the model, and what was worked out for them would help nobody who comes later.
FIRST_WORK, FIRST_SECONDS = 5_000_000, 5.0


def can_compile(problem: AnyProblem) -> bool:
    """Return whether there is anything to find: a plain MDP with several objectives that can be changed."""
    return type(problem) is MDP and sum(problem.matters) > 1


def worth_compiling(study: Study, problem: AnyProblem) -> bool:
    """Return whether a coverage pays: the model is large enough, and the strategy looks up many weights."""
    if study.strategy not in GAINING or type(problem) is not MDP:
        return False
    return problem.extent["branches"] * problem.horizon >= LEAST_WORK and can_compile(problem)


def tolerance_for(study: Study) -> float:
    """Return what the plans of a study's coverage may miss."""
    target = study.settings.get("target", TARGET)
    return SHARE_OF_TARGET * (float(target) if isinstance(target, int | float) else TARGET)


def compile_first(store: Store, study: Study, problem: AnyProblem) -> bool:
    """Compile a model before anybody is asked, and keep the plans; return False if that takes too long."""
    from tradeoff.covering import cover

    if type(problem) is not MDP or problem.extent["branches"] * problem.horizon > FIRST_WORK:
        return False
    found = cover(problem, tolerance_for(study), seconds=FIRST_SECONDS)
    if found.guarantee > tolerance_for(study):
        return False
    keep(store, study, content_of(found))
    return True


def keep(store: Store, study: Study, content: bytes) -> None:
    """Keep what ``write_plans`` wrote beside the study, unless it has a coverage; durable when this returns."""
    if len(content) > LARGEST_PROBLEM:
        raise ProblemError(
            f"the plans take {len(content) / 2**20:,.0f} MB; at most {LARGEST_PROBLEM >> 20} MB are kept with a study"
        )
    header = {"event": "header", "format": FORMAT, "time": datetime.now(UTC).isoformat(), "problem": study.fingerprint}
    try:
        store.create(_folder(study), LOG, [header, {"event": "coverage", "npz": base64.b64encode(content).decode()}])
    except ConflictError:
        return  # another process was first


def kept(store: Store, study: Study, model: AnyProblem) -> Coverage | None:
    """Return the coverage of a study; None if it has none."""
    from tradeoff.sources.files.npz import read_plans

    if type(model) is not MDP:
        return None
    try:
        events = store.read(_folder(study), LOG)
    except MissingError:
        return None
    damaged = DamagedError(
        f"the compiled plans of the study {study.name!r} are damaged; bring the database back from a backup, or serve with "
        "--no-compile, where only those cannot go on who began with them"
    )
    if len(events) != 2 or events[0].get("format") != FORMAT:
        raise damaged
    try:
        content = base64.b64decode(events[1].get("npz", ""), validate=True)
        return _through_file(lambda path: path.write_bytes(content), lambda path: read_plans(path, model))
    except (ValueError, TypeError, ProblemError):
        raise damaged from None


def content_of(coverage: Coverage) -> bytes:
    """Return a coverage as ``keep`` takes it: its plans and their proof, without the model."""
    from tradeoff.sources.files.npz import write_plans

    return _through_file(lambda path: write_plans(coverage, path), Path.read_bytes)


def _through_file(write: Callable[[Path], object], read: Callable[[Path], Result]) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plans.npz"
        write(path)
        return read(path)


def _folder(study: Study) -> str:
    # Longer than the name of any study may be, so that no study's people are in it.
    return f"compiled-{hashlib.sha256(study.name.encode()).hexdigest()}"
