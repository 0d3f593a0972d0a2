"""The coverage of a study's model that version 0.3 could store with it. Interviews that began with it go on with it.

Since version 0.4 a model is compiled by ``tradeoff compile``, and the file is served like any other problem.
"""

from __future__ import annotations

import base64
import hashlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tradeoff.errors import ProblemError
from tradeoff.mdp.model import MDP
from tradeoff.problems.coverage import Coverage
from tradeoff.stores import DamagedError, MissingError, Store
from tradeoff.studies.study import Study

if TYPE_CHECKING:
    from tradeoff.sources import AnyProblem

FORMAT = "tradeoff-compiled/1"
LOG = "coverage"  # the name of the log, in a folder of the study's own


def stored_coverage(store: Store, study: Study, model: AnyProblem) -> Coverage | None:
    """Return the coverage that is stored with a study; None if there is none."""
    from tradeoff.sources.files.npz import read_plans

    if type(model) is not MDP:
        return None
    # Longer than the name of any study may be, so that no participants are in this folder.
    folder = f"compiled-{hashlib.sha256(study.name.encode()).hexdigest()}"
    try:
        events = store.read(folder, LOG)
    except MissingError:
        return None
    try:
        if len(events) != 2 or events[0].get("format") != FORMAT:
            raise ValueError("not a coverage")
        content = base64.b64decode(events[1].get("npz", ""), validate=True)
        with tempfile.TemporaryDirectory() as temporary:
            path = Path(temporary) / "plans.npz"
            path.write_bytes(content)
            return read_plans(path, model)
    except (ValueError, TypeError, ProblemError):
        raise DamagedError(
            f"the compiled plans of the study {study.name!r} are damaged; restore the database from a backup"
        ) from None
