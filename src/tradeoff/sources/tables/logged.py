"""Logged episodes, as a table or a Minari dataset, become an estimated Markov decision process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.mdp.model import MDP
from tradeoff.model import Objective
from tradeoff.sources.limits import check_length
from tradeoff.sources.messages import listing, shortened
from tradeoff.sources.options import library, listed, parse_objectives, whole
from tradeoff.sources.tables.cells import amount, decimal_mark, text_of
from tradeoff.sources.tables.columns import Columns, chosen_columns, clashes, column_of
from tradeoff.sources.tables.deciding import refuse
from tradeoff.sources.tables.sheets import Sheet, read_sheet

COLUMNS = ("episode", "step", "state", "action", "next")
MOST_STEPS = 5_000_000
LARGEST_ABOUT = 16 << 20  # of what a dataset says about itself
MOST_PARTS = 32  # numbers that one observation may consist of


def read_log(
    path: Path,
    *,
    horizon: object = None,
    objectives: object = None,
    start: object = None,
    sheet: object = None,
    separator: object = None,
    decimal: object = None,
) -> MDP:
    """Return the model estimated from a table of logged steps: probabilities are observed frequencies.

    The columns are episode, step, state, action, next (or "next state") and one of numbers per objective, with unit and
    direction in the head. ``horizon`` is the longest episode, ``start`` where episodes began, unless given.
    """
    mark = decimal_mark(decimal)
    table = read_sheet(Path(path), sheet=sheet, separator=separator)
    if not len(table):
        raise ProblemError(f"{table.source} has no rows; a model is learned from at least one step")
    at = _log_columns(table)
    rest = [i for i in range(len(table.headings)) if i not in at.values()]
    if not rest:
        raise ProblemError(f"{table.source} has no column for an objective; add one, such as 'time [min] (min)'")
    notes: list[str] = []
    read = Columns(table, mark, notes)
    columns = [column_of(read, i) for i in rest] if objectives is None else chosen_columns(read, objectives)
    for column in columns:
        if column.index in at.values():
            raise ArgumentError(f"the column {column.objective.name!r} describes a step; choose others as objectives")
    undecided = [column.open for column in columns if column.open is not None]
    goals = [(column.name, None if column.open is not None else column.objective.goal) for column in columns]
    refuse(table.source, undecided, goals, (), clashes(table, columns))
    amounts = [table.numbers(column.index, mark) for column in columns]
    steps = [_whole_step(table, row, at["step"], mark) for row in range(len(table))]
    named = {name: _filled(table, at[name]) for name in COLUMNS if name != "step"}
    rows = zip(named["episode"], steps, named["state"], named["action"], zip(*amounts, strict=True), named["next"],
               strict=True)  # fmt: skip
    left = [table.headings[i].text for i in rest if i not in [column.index for column in columns]]
    if left:
        notes.append(f"columns that were not used: {listing(left)}")
    aims = [column.objective for column in columns]
    return _learned(list(rows), aims, horizon, start, Path(path).stem, str(path), notes)


def _log_columns(table: Sheet) -> dict[str, int]:
    """Return where the columns of a log are; any case, and "next state" or "next_state" for "next"."""
    heads = [head.text.lower().replace("_", " ") for head in table.headings]
    heads = ["next" if head == "next state" else head for head in heads]
    for name in COLUMNS:
        if heads.count(name) != 1:
            found = "no column" if name not in heads else "several columns"
            raise ProblemError(
                f"{table.source} has {found} {name!r}; a log has the columns {', '.join(COLUMNS)} and one per objective. "
                f"It has {table.found}"
            )
    return {name: heads.index(name) for name in COLUMNS}


def _whole_step(table: Sheet, row: int, column: int, mark: str | None) -> int:
    cell = table.columns[column][row]
    step = amount(cell, mark)
    if step is None or step != int(step):
        raise ProblemError(
            f"{table.location(row, column)}: {shortened(cell)} is not a whole number; count steps 0, 1, 2, ..."
        )
    return int(step)


def _filled(table: Sheet, column: int) -> list[str]:
    """Return a column of names, or say which is missing."""
    for row, cell in enumerate(table.columns[column]):
        if not text_of(cell).strip():
            raise ProblemError(
                f"{table.location(row, column)}: the cell is empty; fill it in, or leave the episode out"
            )
    return [text.strip() for text in table.texts(column)]


def _learned(
    rows: Sequence[Sequence[Any]],
    objectives: Sequence[Objective],
    horizon: object,
    start: object,
    name: str,
    source: str,
    notes: Sequence[str],
) -> MDP:
    """Return the model estimated from the steps, with notes that say so."""
    details: dict[str, Any] = {} if start is None else {"start": start}
    if horizon is not None:
        details["horizon"] = whole("horizon", horizon)
        check_length(details["horizon"], len(rows))
    try:
        mdp = MDP.from_log(rows, objectives=objectives, name=name, **details)
    except ProblemError as error:
        raise type(error)(f"{source}: {error}") from None
    mdp.notes[:0] = [
        f"estimated from {len(rows):,} logged steps: probabilities are the shares in which things were seen, rewards "
        "their means; what is promised of the best plan holds for this estimate"
    ]
    if horizon is None:
        mdp.notes.append(f"the horizon is the longest episode, {mdp.horizon} steps; horizon=N makes it another")
    mdp.notes += notes
    return mdp


# --- Minari ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MinariOptions:
    """What is asked of a dataset.

    ``rewards`` names what to take from the infos in place of the rewards, each a number or a vector per step.
    """

    horizon: object = None
    objectives: object = None
    start: object = None
    rewards: object = None


def read_minari(name: str, options: MinariOptions) -> MDP:
    """Return the model estimated from a Minari dataset on this machine; nothing is downloaded."""
    minari = library("minari", "minari", "reading a Minari dataset")
    folder = Path(library("minari.storage.datasets_root_dir", "minari", "reading").get_dataset_path(name)) / "data"
    _check_about(folder / "metadata.json", name)
    try:
        dataset = minari.load_dataset(name)
    except Exception as error:  # a damaged dataset raises whatever its reader stumbles over
        raise ProblemError(f"the Minari dataset {name!r} cannot be read: {shortened(str(error))[1:-1]}") from None
    return from_minari(dataset, options)


def _check_about(path: Path, name: str) -> None:
    """Refuse a dataset that is missing, too large, or would have its environment made to learn what it holds."""
    if not path.is_file():
        raise ProblemError(
            f"there is no Minari dataset {name!r} in {path.parent.parent.parent}; `minari list local` lists those there "
            f"are, `minari download NAME` fetches one, and MINARI_DATASETS_PATH names another folder"
        )
    if path.stat().st_size > LARGEST_ABOUT:
        raise ProblemError(f"{path} has more than {LARGEST_ABOUT >> 20} MB; is it damaged?")
    try:
        about = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        about = None
    if not isinstance(about, dict) or not {"observation_space", "action_space", "total_steps"} <= set(about):
        # Without them the environment would be made to ask it, and a dataset can name any program as its environment.
        raise ProblemError(f"{path} does not say what observations and actions are; was it made by another version?")


def from_minari(dataset: Any, options: MinariOptions) -> MDP:
    """Return the model estimated from a Minari dataset. Its observations are the states, which must be whole numbers."""
    if dataset.total_steps > MOST_STEPS:
        raise ProblemError(
            f"the dataset {dataset.id!r} has {dataset.total_steps:,} steps; at most {MOST_STEPS:,} are read: take some of "
            "its episodes with filter_episodes"
        )
    keys = None if options.rewards is None else listed("rewards", options.rewards)
    _check_space(dataset.observation_space, "observations", dataset.id)
    _check_space(dataset.action_space, "actions", dataset.id)
    rows: list[tuple[str, int, str, str, Any, str]] = []
    ended: set[str] = set()
    cut = 0
    try:
        for episode in dataset.iterate_episodes():
            found = list(_steps(episode, keys, dataset.id))
            rows += found
            if found and episode.terminations[-1]:
                ended.add(found[-1][5])
            cut += bool(found) and not episode.terminations[-1]
    except (OSError, KeyError, IndexError, RuntimeError) as error:
        raise ProblemError(f"the Minari dataset {dataset.id!r} cannot be read: {shortened(str(error))[1:-1]}") from None
    if not rows:
        raise ProblemError(f"the dataset {dataset.id!r} has no steps; a model is learned from at least one")
    aims, notes = _aims(options.objectives, keys, np.size(rows[0][4]))
    if cut:
        notes.append(f"{cut:,} episodes were cut off before their end; what would have come after is not in the model")
    passed = sorted(ended & {row[2] for row in rows})
    if passed:
        notes.append(
            f"{len(passed)} states ended some episodes but not others, and the model goes on from there: "
            f"{listing(passed, 3)}"
        )
    return _learned(rows, aims, options.horizon, options.start, dataset.id, f"the dataset {dataset.id!r}", notes)


def _aims(objectives: object, keys: list[str] | None, count: int) -> tuple[list[Objective], list[str]]:
    """Return the objectives, those given or what the rewards are called, and a note on what is better."""
    if objectives is None:
        names = keys if keys is not None and len(keys) == count else ["reward"]
        if len(names) != count:
            names = [f"reward {j + 1}" for j in range(count)]
        return [Objective(name) for name in names], ["more is taken to be better for every reward"]
    wanted = parse_objectives(objectives)
    if len(wanted) != count:
        raise ArgumentError(
            f"{len(wanted)} objectives are named, but the dataset has {count} rewards per step; name each"
        )
    assumed = [name for name, goal in wanted.items() if goal is None]
    notes = [f"more is taken to be better for {', '.join(map(repr, assumed))}"] if assumed else []
    return [Objective(name, "", goal or "max") for name, goal in wanted.items()], notes


def _check_space(space: Any, what: str, name: str) -> None:
    """Refuse what is not made of a few whole numbers."""
    kind = type(space).__name__
    match kind:
        case "Discrete" | "MultiDiscrete" | "MultiBinary":
            return
        case "Tuple" | "Dict":
            for part in space.spaces.values() if kind == "Dict" else space.spaces:
                _check_space(part, what, name)
        case "Box" if np.issubdtype(space.dtype, np.integer) and int(np.prod(space.shape)) <= MOST_PARTS:
            return
        case "Box":
            reason = "are continuous" if np.issubdtype(space.dtype, np.floating) else "are pictures"
            raise ProblemError(
                f"the {what} of the dataset {name!r} {reason} ({shortened(str(space))[1:-1]}), so no two steps are "
                "alike and nothing can be counted; make them whole numbers first, such as the numbers of bins"
            )
        case _:
            raise ProblemError(f"the {what} of the dataset {name!r} are of the kind {kind}, which is not supported")


def _steps(episode: Any, keys: list[str] | None, name: str) -> Iterator[tuple[str, int, str, str, Any, str]]:
    """Yield the steps of an episode as ``MDP.from_log`` takes them."""
    states = _words(episode.observations)
    actions = _words(episode.actions)
    earned = np.asarray(episode.rewards, dtype=float) if keys is None else _infos(episode, keys, name)
    if not (len(states) == len(actions) + 1 == len(earned) + 1) or earned.ndim > 2 or not np.isfinite(earned).all():
        raise ProblemError(
            f"episode {episode.id} of the dataset {name!r} has {len(states)} observations, {len(actions)} actions and "
            f"rewards of shape {earned.shape}; expected one more observation than actions, and finite rewards"
        )
    for t, action in enumerate(actions):
        yield str(episode.id), t, states[t], action, earned[t], states[t + 1]


def _words(given: Any) -> list[str]:
    """Return observations or actions as names: the numbers that they consist of."""
    table = np.concatenate(list(_flat(given)), axis=1)
    return [", ".join(map(str, row)) for row in table.tolist()]


def _flat(given: Any) -> Iterator[NDArray[Any]]:
    """Yield the arrays [steps, numbers] that nested observations consist of."""
    if isinstance(given, dict):
        given = tuple(given.values())
    if isinstance(given, tuple):
        for part in given:
            yield from _flat(part)
    else:
        array = np.asarray(given)
        yield array.reshape(len(array), -1)


def _infos(episode: Any, keys: list[str], name: str) -> NDArray[np.float64]:
    """Return the columns of the infos that are rewards."""
    parts = []
    count = len(episode.rewards)
    for key in keys:
        if key not in (episode.infos or {}):
            found = ", ".join(map(shortened, list(episode.infos or {})[:8])) or "none"
            raise ProblemError(f"the infos of the dataset {name!r} have no {key!r}; there are {found}")
        try:
            array = np.asarray(episode.infos[key], dtype=float)
        except (TypeError, ValueError):
            raise ProblemError(f"{key!r} in the infos of the dataset {name!r} is not a column of numbers") from None
        # Infos begin with that of the reset, which comes before the first step.
        parts.append(array.reshape(len(array), -1)[len(array) - count :])
    return np.concatenate(parts, axis=1)
