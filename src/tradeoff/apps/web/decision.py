"""What a result page says beyond the plan: the best few, why not another one, all alternatives, and weights to try."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from tradeoff.decisions import Preferences, Ranking, why_not
from tradeoff.decisions.ranking import ranking_of
from tradeoff.decisions.weighing import Options, options
from tradeoff.decisions.what_if import shares_of
from tradeoff.errors import ArgumentError
from tradeoff.interview import Interview
from tradeoff.model import Vector
from tradeoff.presentation.memo import ProblemCache
from tradeoff.presentation.pareto import Picture, pareto_picture
from tradeoff.presentation.ranking import RankingTable, WhyNot, ordinals, ranking_table, why_not_words
from tradeoff.presentation.text import clipped, one_line
from tradeoff.presentation.weighing import MOST_KINDS, Weighing, weighing
from tradeoff.problem import Presentable, pieces_of

RANKINGS = 200  # of a problem, in the cache
LISTED = 300  # names that fit a list to choose from; among more, one is typed
LONGEST = 200  # characters of a name that is typed


@dataclass(frozen=True)
class Decision:
    """What the part of the page shows."""

    ranking: RankingTable
    choices: tuple[tuple[str, str], ...]  # to ask about: what is sent, and the name; none where one is typed
    asked: str
    why_not: WhyNot | None
    refused: str  # why what was asked about is not known; ""
    picture: Picture | None
    weighing: Weighing | None


@dataclass(frozen=True, eq=False)
class _Known:
    """What does not depend on what is asked."""

    ranked: Ranking
    picture: Picture | None
    options: Options


_known: ProblemCache[_Known] = ProblemCache(RANKINGS)


def _key(interview: Interview) -> bytes:
    """Return what identifies a result: the answers, and which of them are trusted."""
    found = interview.recommendation
    parts = [f"{answer.number} {answer.reply}".encode() + answer.question.key for answer in interview.answers]
    parts += [
        repr((found.doubtful, found.unexplained)).encode(),
        found.option.value.tobytes(),
        found.weights.tobytes(),
    ]
    return hashlib.sha256(b"|".join(parts)).digest()


def _known_of(problem: Presentable, interview: Interview) -> _Known:
    """Return the ranking, the picture and the options to weigh; they are computed once."""

    def compute() -> _Known:
        found = interview.recommendation
        ranked = ranking_of(problem, found, Preferences.of(interview))
        return _Known(ranked, pareto_picture(problem, found), options(problem, found, ranked))

    return _known.get(problem, _key(interview), compute)


def ranking_for(problem: Presentable, interview: Interview) -> Ranking:
    """Return the ranking of an interview, computed once."""
    return _known_of(problem, interview).ranked


def decision(problem: Presentable, interview: Interview, query: Mapping[str, str]) -> Decision:
    """Return the part of a result page; ``query`` says what is asked about and what is tried.

    ``why`` is a name, ``w0``, ``w1``, ... are weights and ``l0``, ``l1``, ... limits of the objectives that can be changed,
    and ``f0``, ``f1``, ... what is wanted of kinds such as colours.
    """
    known, numbers = _known_of(problem, interview), ordinals(interview)
    table = ranking_table(problem, known.ranked, numbers)
    asked, refused, told = query.get("why", "")[:LONGEST], "", None
    if asked:
        try:
            rival = why_not(interview, asked, known.ranked)
            told = why_not_words(problem, rival, known.ranked, numbers, interview.recommendation.weights)
        except ArgumentError as error:
            refused = f"{one_line(str(error))[:400]}."
    recommended = interview.recommendation.option
    tried = _tried(problem, query)
    ours = known.ranked.criterion
    values = np.array([one.value for one in known.options.alternatives])
    return Decision(
        ranking=table,
        choices=_choices(problem, table),
        asked=one_line(asked),
        why_not=told,
        refused=refused[:1].upper() + refused[1:],
        picture=known.picture,
        weighing=weighing(
            problem,
            known.options,
            recommended,
            table.rows[0].name,
            shares_of(ours.mean_weights @ pieces_of(problem)) if tried is None else tried,
            _limits(problem.original, query),
            _wanted(query),
            estimate=ours.mean_weights,
            losses=ours.losses(values) if tried is None else None,
        ),
    )


def _choices(problem: Presentable, table: RankingTable) -> tuple[tuple[str, str], ...]:
    if problem.items is None:
        return tuple((str(row.place), clipped(row.name, 60)) for row in table.rows[1:])
    names = [*problem.items.names, *problem.items.beaten]
    if len(names) > LISTED or max(map(len, names)) > LONGEST:
        return ()
    return tuple((name, clipped(name, 60)) for name in sorted(names, key=str.lower) if name != table.rows[0].name)


def _tried(problem: Presentable, query: Mapping[str, str]) -> Vector | None:
    """Return the weights that a person tries, of the objectives that people read; None if they have not moved anything."""
    relevant = [j for j, matters in enumerate(problem.original.matters) if matters]
    given = [query.get(f"w{i}", "") for i in range(len(relevant))]
    weights = np.zeros(len(problem.original.objectives))
    if all(text.isascii() and text.isdigit() and len(text) <= 3 for text in given) and any(map(int, given)):
        weights[relevant] = [min(int(text), 100) for text in given]
        return weights
    return None


def _limits(problem: Presentable, query: Mapping[str, str]) -> dict[int, float]:
    """Return the limits that a person tries, by the number of the objective; what is no number is none."""
    found = {}
    for i, j in enumerate(j for j, matters in enumerate(problem.matters) if matters):
        with suppress(ValueError):
            limit = float(query.get(f"l{i}", "")[:40])
            if math.isfinite(limit):
                found[j] = limit
    return found


def _wanted(query: Mapping[str, str]) -> dict[int, int]:
    """Return which texts are wanted of which kinds, by their numbers."""
    given = {i: query.get(f"f{i}", "") for i in range(MOST_KINDS)}
    return {i: int(text) for i, text in given.items() if text.isascii() and text.isdigit() and len(text) < 3}
