"""What a table leaves open, and how it is asked for: nothing that only a person can say is guessed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tradeoff.errors import ArgumentError, ProblemError, UndecidedError
from tradeoff.sources.messages import listing, option
from tradeoff.sources.options import parse_pairs

Topic: TypeAlias = Literal["direction", "gaps", "decimal"]
Gaps: TypeAlias = Literal["drop", "label"]
MOST_SAID = 20  # complaints in one message
OPEN = "min-or-max"


@dataclass(frozen=True)
class Undecided:
    """One thing that a person has to say about a table; ``proposed`` is only a suggestion."""

    topic: Topic
    column: str  # as the options call it
    found: str  # what the column holds
    proposed: str | None = None
    why: str = ""


def refuse(
    source: str,
    undecided: Sequence[Undecided],
    chosen: Sequence[tuple[str, str | None]],
    complaints: Sequence[str],
    others: Sequence[str],
    unused: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
) -> None:
    """Raise an error with all complaints at once, if there are any; ``others`` are those that no answer removes.

    The error also names the columns that are ``unused``, with the reasons, in a dictionary and as sentences (``notes``).
    """
    said = [*others, *complaints]
    directions = [one for one in undecided if one.topic == "direction"]
    if directions:
        said.append(_direction_words(source, directions, chosen))
    if len(said) > MOST_SAID:
        said[MOST_SAID:] = [f"and {len(said) - MOST_SAID} more"]
    text = "\n".join([*said[:-1], "note: " + "; ".join(notes), *said[-1:]] if said and notes else said)
    if undecided:
        raise UndecidedError(text, undecided, chosen, others, unused)
    if said:
        raise ProblemError(text)


def _direction_words(source: str, open_: Sequence[Undecided], chosen: Sequence[tuple[str, str | None]]) -> str:
    names = listing(one.column for one in open_)
    proposed = {one.column: one.proposed for one in open_}
    words = objectives_text([(name, goal or proposed.get(name) or OPEN) for name, goal in chosen])
    said = f"{source} does not say clearly whether less or more is better for {names}"
    said += "".join(f"; {one.column!r}: {one.why}" for one in open_ if one.why)
    known = any(one.proposed for one in open_)
    said += ". End each head with (min) or (max), as in 'price [EUR] (min)', or "
    said += "check this proposal and add it:" if known else "add what is right:"
    return f"{said}\n  {option('objectives', words)}"


def objectives_text(chosen: Iterable[tuple[str, str | None]]) -> str:
    """Return objectives as the option names them.

    >>> objectives_text([("price", "min"), ("size, in all", "max"), ("rating", None)])
    'price:min,"size, in all":max,rating'
    """
    names = ((f'"{name}"' if "," in name else name, goal) for name, goal in chosen)
    return ",".join(f"{name}:{goal}" if goal else name for name, goal in names)


class GapRule:
    """What is to be done about cells without a number: rows left out, or the column shown without being weighed."""

    def __init__(self, value: object) -> None:
        self.everywhere: Gaps | None = None
        self.columns: dict[str, Gaps] = {}
        plain = value is not None and not isinstance(value, Mapping) and ":" not in str(value)
        pairs = {} if value is None else {"": str(value)} if plain else parse_pairs("gaps", value)
        for name, choice in pairs.items():
            if choice not in ("drop", "label"):
                raise ArgumentError(f"gaps is {value!r}; it must be drop, label, or NAME:drop,NAME:label")
            if name:
                self.columns[name] = choice  # type: ignore[assignment]
            else:
                self.everywhere = choice  # type: ignore[assignment]

    def of(self, *names: str) -> Gaps | None:
        """Return what is said of the column that has these names."""
        return next((self.columns[name] for name in names if name in self.columns), self.everywhere)


def decided(undecided: Sequence[Undecided], answers: Sequence[str], options: Mapping[str, object],
            chosen: Sequence[tuple[str, str | None]]) -> dict[str, object]:  # fmt: skip
    """Return the options of a source with the answers to everything that was undecided.

    An answer is "min", "max" or "" (not weighed) about a direction, "drop" or "label" about gaps, "." or "," about marks.
    """
    found = dict(options)
    goals = dict(chosen)
    gaps: dict[str, str] = {}
    for one, answer in zip(undecided, answers, strict=True):
        match one.topic:
            case "direction":
                goals[one.column] = answer or None
                if not answer:
                    del goals[one.column]
            case "gaps":
                gaps[one.column] = answer
            case "decimal":
                found["decimal"] = answer
    gaps = {name: choice for name, choice in gaps.items() if name in goals}
    found["objectives"] = objectives_text(goals.items())
    if gaps:
        same = len(set(gaps.values())) == 1 and "gaps" not in options
        found["gaps"] = next(iter(gaps.values())) if same else objectives_text(gaps.items())
    return found
