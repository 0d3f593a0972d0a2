"""The solutions that Optuna and pymoo have found become a catalogue of options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.model import Objective
from tradeoff.problems.catalogue import Catalogue
from tradeoff.sources.options import flag, library, parse_objectives

MOST_VARIABLES = 20  # shown beside a solution; a solution with more is known by its name alone


def read_optuna(
    storage: str, *, study: object = None, objectives: object = None, keep_dominated: object = False
) -> Catalogue:
    """Return the trials of an Optuna study in a database (``sqlite:///trials.db``) or a journal file.

    ``study`` is the study's name; it is not needed if the storage holds one study.
    """
    optuna = library("optuna", "optuna", "reading Optuna studies")
    try:
        backend: Any = storage
        if "://" not in storage:
            from optuna.storages import JournalStorage
            from optuna.storages.journal import JournalFileBackend

            backend = JournalStorage(JournalFileBackend(storage))
        names = sorted(optuna.get_all_study_names(backend))
        if study is None and len(names) != 1:
            raise ProblemError(
                f"{storage} holds {len(names)} studies; name one with study=NAME: {', '.join(names)[:300]}"
            )
        chosen = names[0] if study is None else str(study)
        if chosen not in names:
            raise ProblemError(f"{storage} holds no study {chosen!r}; its studies are {', '.join(names)[:300]}")
        loaded = optuna.load_study(study_name=chosen, storage=backend)
    except ProblemError:
        raise
    except Exception as error:  # whatever the storage, its driver or the journal raises
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ProblemError(f"the Optuna storage {storage!r} cannot be read: {reason:.200}; check its address") from None
    return from_study(loaded, objectives=objectives, keep_dominated=keep_dominated)


def from_study(study: Any, *, objectives: object = None, keep_dominated: object = False) -> Catalogue:
    """Return the complete trials of an Optuna study that meet its constraints; their parameters are labels.

    The objectives are called as in ``study.set_metric_names``; ``objectives`` gives other names, in their order. Their
    directions are the study's.
    """
    trials = study.trials
    complete = [trial for trial in trials if trial.values is not None and trial.state.name == "COMPLETE"]
    feasible = [trial for trial in complete if all(c <= 0 for c in trial.system_attrs.get("constraints") or ())]
    if not feasible:
        raise ProblemError(f"the Optuna study {study.study_name!r} has no complete trial that meets its constraints")
    goals = ["min" if direction.name == "MINIMIZE" else "max" for direction in study.directions]
    named = _named(study.metric_names or [f"objective {j + 1}" for j in range(len(goals))], goals, objectives)
    parameters = list(dict.fromkeys(name for trial in feasible for name in trial.params))
    notes = []
    if len(complete) < len(trials):
        notes.append(f"{len(trials) - len(complete)} trials that are not complete are left out")
    if len(feasible) < len(complete):
        notes.append(f"{len(complete) - len(feasible)} trials that break a constraint are left out")
    return _catalogue(
        np.array([trial.values for trial in feasible], dtype=float),
        named,
        [f"trial {trial.number}" for trial in feasible],
        {name: [_text(trial.params.get(name, "")) for trial in feasible] for name in parameters},
        study.study_name,
        notes,
        flag("keep_dominated", keep_dominated),
    )


def from_pymoo(result: Any, *, objectives: object = None, keep_dominated: object = False) -> Catalogue:
    """Return the solutions of a pymoo result; the variables of each are labels.

    pymoo minimises everything. An objective that is named as a maximum (``profit:max``) is shown with its sign turned.
    """
    if result.F is None:
        raise ProblemError(
            "the pymoo result has no feasible solution; let the optimiser run longer, or relax a constraint"
        )
    values = np.atleast_2d(np.asarray(result.F, dtype=float))
    count = values.shape[1]
    named = _named([f"objective {j + 1}" for j in range(count)], ["min"] * count, objectives)
    turned = values * [1.0 if objective.goal == "min" else -1.0 for objective in named] + 0.0
    return _catalogue(
        turned,
        named,
        [f"solution {i + 1}" for i in range(len(values))],
        _variables(result.X, len(values)),
        type(result.problem).__name__,
        [],
        flag("keep_dominated", keep_dominated),
    )


def _named(names: Sequence[str], goals: Sequence[str], given: object) -> list[Objective]:
    """Return the objectives with the names and directions given, or else those that are known."""
    if given is None:
        return [Objective(name, "", goal) for name, goal in zip(names, goals, strict=True)]  # type: ignore[arg-type]
    if isinstance(given, Sequence) and all(isinstance(part, Objective) for part in given):
        found = list(given)
    else:
        parsed = parse_objectives(given)
        # By position, since these are new names.
        defaults = [*goals, *["max"] * len(parsed)]
        found = [
            Objective(name, "", goal or default)  # type: ignore[arg-type]
            for (name, goal), default in zip(parsed.items(), defaults, strict=False)
        ]
    if len(found) != len(names):
        raise ArgumentError(
            f"{len(found)} objectives are named, but there are {len(names)}; name each of them, in order"
        )
    return found


def _variables(x: Any, count: int) -> dict[str, list[str]]:
    """Return the variables of each solution as texts, by name; pymoo keeps them as rows or as dictionaries."""
    rows = list(x) if count > 1 or np.ndim(x) > 1 else [x]
    if len(rows) != count:
        return {}
    if all(isinstance(row, Mapping) for row in rows):
        keys = list(rows[0])
        table = [[row.get(key, "") for key in keys] for row in rows]
    else:
        table = [list(np.ravel(row)) for row in rows]
        keys = [f"x{j + 1}" for j in range(len(table[0]))]
    if len(keys) > MOST_VARIABLES:
        return {}
    return {str(key): [_text(row[j]) for row in table] for j, key in enumerate(keys)}


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


def _catalogue(
    values: Any, objectives: Sequence[Objective], names: Sequence[str], labels: Mapping[str, Sequence[str]], name: str,
    notes: Sequence[str], keep_dominated: bool,
) -> Catalogue:  # fmt: skip
    finite = np.isfinite(values).all(axis=1)
    if not finite.any():
        raise ProblemError(f"no solution of {name!r} has finite values only")
    if not finite.all():
        notes = [*notes, f"{(~finite).sum()} solutions with values that are not finite are left out"]
    taken = {objective.name for objective in objectives}
    made = Catalogue(
        values[finite],
        objectives,
        [text for text, kept in zip(names, finite, strict=True) if kept],
        labels={
            f"parameter {key}" if key in taken else key: [
                text for text, kept in zip(texts, finite, strict=True) if kept
            ]
            for key, texts in labels.items()
        },
        name=name,
        notes=notes,
    )
    return made if keep_dominated else made.without_beaten()
