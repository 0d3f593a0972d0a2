"""From an interview to a decision: all preferences that fit the answers, a ranking, why not another one, and groups."""

from __future__ import annotations

from tradeoff.decisions.group import Choice, Group, group
from tradeoff.decisions.preferences import Preferences
from tradeoff.decisions.ranking import Ranked, Ranking, ranking
from tradeoff.decisions.what_if import Change, what_if
from tradeoff.decisions.why_not import Rival, find_option, why_not

__all__ = [
    "Change", "Choice", "Group", "Preferences", "Ranked", "Ranking", "Rival", "find_option", "group", "ranking", "what_if",
    "why_not",
]  # fmt: skip
