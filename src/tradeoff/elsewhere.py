"""What a person said elsewhere: their answers to an earlier interview about a similar problem, as statements about this one.

Last year's catalogue, or another city: other alternatives, but the same objectives in the same units. An answer compares two
outcomes, and the difference between them is worth as much here as it was there. Only differences count, so that neither
problem's reference matters, nor how its gains are scaled. An earlier answer counts as if the same outcomes had been compared
here: what was preferred differs by more than the person can tell apart, and what was about equal does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tradeoff.errors import ArgumentError, LogError
from tradeoff.knowledge import open_objectives
from tradeoff.log import Asked, Event, Header, MenuAsked, Stated, fold, read_log
from tradeoff.menus import (
    NOT_WORSE,
    OTHER_PREFERRED,
    PREFERRED,
    SAME,
    AnyAnswer,
    Choice,
    Occasion,
    Statement,
    comparisons,
    plain,
)
from tradeoff.model import Answer, Matrix, Objective, Vector
from tradeoff.problem import Problem
from tradeoff.running import check_problem, logged_question, stated, values_of

SAME_GAIN = 1e-12  # gains that differ by less are the same, but for rounding


@runtime_checkable
class Logged(Protocol):
    """An interview: a log, and the problem it is about."""

    @property
    def log(self) -> Sequence[Event]:
        """The events so far."""

    problem: Problem


Earlier: TypeAlias = Logged | Path | str | Sequence[Mapping[str, Any]]


class Said(NamedTuple):
    """What was said elsewhere: what can be used here, and why the rest cannot, a sentence each."""

    statements: tuple[Statement, ...]
    left_out: tuple[str, ...] = ()


class Frame(NamedTuple):
    """What the gains of a problem are in a person's units: ``origin + scale * gain``."""

    objectives: tuple[Objective, ...]
    origin: Vector
    scale: Vector


def earlier_answers(problem: Problem, earlier: Earlier, about: Problem | None = None) -> Said:
    """Return the answers that stand in an earlier interview, its log or the file of it, as statements about a problem.

    Both problems need the same objectives, in the same units and directions, in any order. A log that was begun before
    version 0.3 does not say what its gains are in a person's units: give the problem that it is about as ``about``.
    """
    events, about = (earlier.log, earlier.problem) if isinstance(earlier, Logged) else (_events(earlier), about)
    state = fold(list(events))
    then = _frame(state.header, about)
    _check_same(problem.objectives, then.objectives)
    names = [o.name for o in then.objectives]
    order = [names.index(o.name) for o in problem.objectives]
    ratio = then.scale[order] / problem.scale
    statements: list[Statement] = []
    left_out: list[str] = []
    for one in state.standing:
        if one.number is None or one.reply is None:  # an attention check, or skipped
            continue
        assert isinstance(one.shown, Asked | MenuAsked | Stated)
        question = stated(one.shown)[1] if isinstance(one.shown, Stated) else logged_question(one.shown)
        text = f"in an earlier interview, {_words(then, question, one.reply)}"
        differences, outcomes = _compared(question, one.reply)
        here, outcomes = _noticeable(differences[:, order] * ratio, outcomes)
        reason = _unusable(problem, here)
        if reason:
            left_out.append(f"answer {one.number} is not used: {reason}")
        else:
            statements.append(Statement(text, here, outcomes))
    return Said(tuple(statements), tuple(left_out))


def _events(earlier: Path | str | Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    if not isinstance(earlier, Path | str):
        return earlier
    try:
        return read_log(Path(earlier).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise LogError(f"{earlier} cannot be read as the log of an interview: {why}") from None
    except LogError as error:
        raise LogError(f"{earlier}: {error}") from None


def _frame(header: Header, about: Problem | None) -> Frame:
    """Return what the gains of a log are in the person's units."""
    if about is not None:
        check_problem(header, about)
        return Frame(tuple(about.objectives), np.asarray(about.origin), np.asarray(about.scale))
    if not header.scale:
        raise ArgumentError(
            f"the log is about {header.problem_name!r:.80} and was begun with version {header.version or 'unknown'}, which "
            "wrote down no units; in Python, give the problem it is about as well: earlier_answers(problem, log, about=...)"
        )
    aims = zip(header.objectives, header.units, header.goals, strict=True)
    return Frame(
        tuple(Objective(name, unit, goal=goal) for name, unit, goal in aims),  # type: ignore[arg-type]
        np.array(header.origin), np.array(header.scale),
    )  # fmt: skip


def _check_same(here: Sequence[Objective], then: Sequence[Objective]) -> None:
    """Raise an ArgumentError that names all differences, unless the objectives are the same in any order."""
    mine, theirs = ({o.name: o for o in objectives} for objectives in (here, then))
    wrong = [f"{name!r} is an objective only here" for name in mine if name not in theirs]
    wrong += [f"{name!r} was an objective only there" for name in theirs if name not in mine]
    for name in mine.keys() & theirs.keys():
        now, before = mine[name], theirs[name]
        if now.unit != before.unit:
            wrong.append(f"{name!r} is counted in {now.unit!r} here and was in {before.unit!r} there")
        if now.goal != before.goal:
            wrong.append(f"{now.goal} is better of {name!r} here, and {before.goal} was there")
    if wrong:
        raise ArgumentError(
            f"answers about other objectives say nothing here: {'; '.join(sorted(wrong))}. Name and count them in the same way"
        )


def _compared(question: Occasion, reply: AnyAnswer) -> tuple[Matrix, NDArray[np.int64]]:
    """Return what an answer says: differences of gains without rounding, the preferred first, and how each came out."""
    if isinstance(question, Statement):
        return question.differences, question.outcomes
    differences, outcomes = comparisons(question, reply)
    other = outcomes == OTHER_PREFERRED
    differences = np.where(other[:, None], -differences, differences)
    return np.where(np.abs(differences) <= SAME_GAIN, 0.0, differences), np.where(other, PREFERRED, outcomes)


def _noticeable(differences: Matrix, outcomes: NDArray[np.int64]) -> tuple[Matrix, NDArray[np.int64]]:
    """Return the comparisons without those that call a difference unnoticeable which is larger than all there is to gain here.

    Somebody to whom all that can be chosen here is about equal may have said that. A precision is counted as at most all that
    can be gained, so that half of what such a person said, or all of it, would be wrong here.
    """
    rows: list[tuple[Vector, int]] = []
    for difference, outcome in zip(differences, outcomes.tolist(), strict=True):
        large = np.abs(difference).max() > 1
        halves = (
            [(difference, NOT_WORSE), (-difference, NOT_WORSE)]
            if outcome == SAME and large
            else [(difference, outcome)]
        )
        rows += [half for half in halves if half[1] != NOT_WORSE or half[0].min() >= -1]
    return (
        np.array([row for row, _ in rows]).reshape(-1, differences.shape[1]),
        np.array([outcome for _, outcome in rows], dtype=np.int64),
    )


def _unusable(problem: Problem, differences: Matrix) -> str:
    """Return why nothing follows here from such differences; empty if something does."""
    for j in open_objectives(problem):
        if differences[:, j].any():
            return f"it depends on {problem.objectives[j].name!r}, which is the same for all that can be chosen here"
    if not len(differences):
        return "it calls about equal what differs by more than anything that can be chosen here"
    return "" if differences.any() else "what it compares is the same in every objective"


# --- words -----------------------------------------------------------------------------------------------------------


def _words(then: Frame, question: Occasion, reply: AnyAnswer) -> str:
    """Return an answer in words, with the amounts in which the alternatives differ."""
    if isinstance(question, Statement):
        return question.text
    reply = plain(reply)
    values = np.array(values_of(question))
    outcomes = then.origin + then.scale * values
    differ = np.flatnonzero(np.ptp(values, axis=0) > 0)
    named = [
        ", ".join(f"{then.objectives[j].name} {then.objectives[j].text(row[j])}" for j in differ) for row in outcomes
    ]
    reply = plain(reply)
    if isinstance(reply, Choice):
        count = len(named)
        best, worst = (None if number is None else named[number] for number in (reply.best, reply.worst))
        if best is None:
            return f"{count} alternatives about equal"
        return f"{best} as the best of {count}" + ("" if worst is None else f", {worst} as the worst")
    match reply:
        case Answer.FIRST:
            return f"{named[0]} rather than {named[1]}"
        case Answer.SECOND:
            return f"{named[1]} rather than {named[0]}"
        case Answer.SAME:
            return f"{named[0]} about equal to {named[1]}"
