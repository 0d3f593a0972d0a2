"""Rankings, reasons why not, and groups as plain data, for the API and for ``--json``."""

from __future__ import annotations

from tradeoff.decisions import Ranking, Rival, what_if
from tradeoff.interview import Interview
from tradeoff.model import Item, Option
from tradeoff.presentation.data import Data, by_name, named_data, recommended_data, value_data
from tradeoff.presentation.ranking import ordinals, ranking_table, why_not_words
from tradeoff.problem import Presentable


def ranking_data(problem: Presentable, interview: Interview, ranked: Ranking) -> Data:
    """Return a ranking: each place with its share, its loss, and what it wins and loses against the first."""
    table = ranking_table(problem, ranked, ordinals(interview))
    return {
        "ranking": [
            {
                **_named(problem, one.option),
                "name": row.name,
                "place": row.place,
                "share": float(one.share),
                "loss": float(one.loss),
                "wins": list(row.wins),
                "loses": list(row.loses),
            }
            for one, row in zip(ranked.ranked, table.rows, strict=True)
        ],
        "considered": ranked.considered,
        "drawn": ranked.drawn,
        "error": ranked.error,
        "order": table.order,
        "basis": table.basis,
    }


def rival_data(problem: Presentable, interview: Interview, rival: Rival, ranked: Ranking) -> Data:
    """Return why an option is not what is recommended."""
    words = why_not_words(problem, rival, ranked, ordinals(interview), interview.recommendation.weights)
    return {
        **_named(problem, rival.option),
        "name": words.name,
        "verdict": rival.verdict,
        "loss": float(rival.loss),
        "wins": list(words.wins),
        "loses": list(words.loses),
        "beaten_by": [
            one.plan.name if isinstance(one.plan, Item) else name
            for one, name in zip(rival.beaten_by, words.beaten_by, strict=True)
        ],
        "weights": None if rival.weights is None else by_name(problem, rival.weights),
        "answers": [int(number) for number in rival.answers],
        "sentences": list(words.sentences),
    }


def change_data(problem: Presentable, interview: Interview) -> list[Data]:
    """Return what would be recommended for each share of importance of each objective."""
    recommended = {"name": recommended_data(problem, interview.recommendation)["name"]}
    return [
        {
            "objective": change.objective.name,
            "share": change.share,
            "stretches": [
                {
                    "from": stretch.low,
                    "to": stretch.high,
                    **_named(problem, stretch.option),
                    **(recommended if stretch.option is interview.recommendation.option else {}),
                }
                for stretch in change.stretches
            ],
        }
        for change in what_if(problem, interview.recommendation)
    ]


def _named(problem: Presentable, option: Option) -> Data:
    """Return an option by name and value; one that was left out of the catalogue has no index."""
    named = value_data(problem, option) | named_data(problem, option)
    if isinstance(option.plan, Item) and option.plan.index < 0:
        named["index"] = None
    return named
