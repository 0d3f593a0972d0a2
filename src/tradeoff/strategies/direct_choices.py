"""What the respondent said about options directly: which one was placed above which other one.

The model infers weights from all answers and may then favour an option that the respondent has rejected: people have reasons
that are not among the objectives. A strategy therefore asks such a pair before it stops. If the respondent confirms the choice,
it recommends the option they preferred.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tradeoff.evidence import SAME, Answer
from tradeoff.model import Criterion
from tradeoff.strategies.solutions import Candidates, identity


@dataclass(frozen=True)
class DirectChoices:
    """Which option was placed above which, in all answers so far. Options are known by their ``identity``."""

    above: dict[tuple[bytes, bytes], list[int]] = field(default_factory=dict)  # (better, worse) -> indices of answers
    latest: dict[frozenset[bytes], bytes | None] = field(default_factory=dict)  # preferred last time; None: about equal
    as_pair: dict[frozenset[bytes], int] = field(default_factory=dict)  # how often the two alone were compared

    @classmethod
    def of(cls, answers: Sequence[Answer]) -> DirectChoices:
        """Return the choices of these answers, in their order."""
        choices = cls()
        for index, answer in enumerate(answers):
            for better, worse, tie in placements(answer):
                both = frozenset((better, worse))
                choices.latest[both] = None if tie else better
                if not tie:
                    choices.above.setdefault((better, worse), []).append(index)
                if answer.asked is not None and answer.asked.is_pair:
                    choices.as_pair[both] = choices.as_pair.get(both, 0) + 1
        return choices

    @property
    def rejected(self) -> frozenset[bytes]:
        """The options that were placed below another one at least once."""
        return frozenset(worse for _, worse in self.above)

    def preferred_to(self, option: bytes) -> list[bytes]:
        """Return the options that were chosen over this one, last time too, and were never rejected themselves."""
        rejected = self.rejected
        return [
            better
            for better, worse in self.above
            if worse == option and better not in rejected and self.latest[frozenset((better, worse))] == better
        ]

    def is_repeated(self, better: bytes, worse: bytes) -> bool:
        """Return whether one option was placed above the other at least twice, and never below or level later."""
        both = frozenset((better, worse))
        times = len(self.above.get((better, worse), ()))
        return times >= 2 and (worse, better) not in self.above and self.latest[both] == better

    def is_confirmed(self, better: bytes, worse: bytes) -> bool:
        """Return whether a choice was repeated, and at least once between these two alone."""
        return self.is_repeated(better, worse) and self.as_pair.get(frozenset((better, worse)), 0) > 0


def placements(answer: Answer) -> list[tuple[bytes, bytes, bool]]:
    """Return for each comparison of an answer the better option, the worse one, and whether they are about equal."""
    return [
        (identity(better), identity(worse), outcome == SAME)
        for better, worse, outcome in answer.compared()
        if better.is_real and worse.is_real
    ]


@dataclass(frozen=True)
class Objection:
    """The respondent chose an option over the one that the model favours; both by their numbers among the candidates."""

    favourite: int
    chosen: int
    confirmed: bool


def objection_to(
    favourite: int, choices: DirectChoices, candidates: Candidates, criterion: Criterion
) -> Objection | None:
    """Return the choice that speaks against what the model favours; None if there is none.

    The chosen option was never rejected itself. Among several, a confirmed one comes first, then the one that loses least.
    """
    option = identity(candidates.options[favourite])
    objections = []
    for better in choices.preferred_to(option):
        number = candidates.number_of(better)
        if number is not None:
            loss = float(criterion.losses(candidates.values[[number]])[0])
            objections.append((not choices.is_confirmed(better, option), loss, number))
    if not objections:
        return None
    unconfirmed, _, number = min(objections)
    return Objection(favourite, number, not unconfirmed)
