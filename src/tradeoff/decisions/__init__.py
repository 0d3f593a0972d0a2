"""From an interview to a decision: all preferences that fit the answers, a ranking, why not another one, and groups."""

from __future__ import annotations

from tradeoff.decisions.groups import Choice, Group, group
from tradeoff.decisions.preferences import Preferences
from tradeoff.decisions.ranking import Ranked, Ranking, ranking
from tradeoff.decisions.rivals import Rival, find_alternative, why_not

__all__ = [
    "Choice", "Group", "Preferences", "Ranked", "Ranking", "Rival", "find_alternative", "group", "ranking", "why_not",
]  # fmt: skip
