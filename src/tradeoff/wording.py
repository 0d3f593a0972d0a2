"""Describe states in words: names are split into variables, and each variable becomes a phrase."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tradeoff.errors import ProblemError

STATES, STEP = "states", "step"  # the entries of a description that are not variables
_VARIABLE = re.compile(r"\{([A-Za-z_]\w*)\}")


class Wording:
    """How the states and steps of a problem are described.

    ``states`` are templates for the names of states, and each variable in them has a phrase; ``step`` is the phrase for a
    step, counted from 1. Without templates, a name is split at ", " and "=".

    >>> said = Wording({"states": ["{place} {battery}/16"], "place": "at the {place}", "battery": "{battery} units left"})
    >>> said.words("sofa 12/16"), said.words("docked"), Wording().words("x=3, open=true")
    ('at the sofa, 12 units left', 'docked', 'x is 3, open is true')
    """

    def __init__(self, description: Mapping[str, str | Sequence[str]] | None = None) -> None:
        self.description = dict(description or {})
        given = self.description.get(STATES, ())
        templates = [given] if isinstance(given, str) else list(given)
        self._patterns = [_pattern(template) for template in templates]
        known = {name for pattern in self._patterns for name in pattern.groupindex}
        for name, phrase in self.description.items():
            if name == STATES:
                continue
            wanted = {STEP} if name == STEP else known
            if name not in {*known, STEP}:
                raise ProblemError(
                    f"the description has a phrase for {name!r}, which is in none of its templates for states"
                )
            unknown = set(_VARIABLE.findall(str(phrase))) - wanted
            if not isinstance(phrase, str) or unknown:
                raise ProblemError(
                    f"the phrase for {name!r} is {phrase!r}; it must be a string with variables that exist"
                )

    def parts(self, state: str) -> dict[str, str]:
        """Return the phrase for each variable of a state, in the order of the description: the most important first."""
        for pattern in self._patterns:
            found = pattern.fullmatch(state)
            if found is not None:
                values = found.groupdict()
                order = [name for name in self.description if name in values]
                return {name: self._phrase(name, values) for name in dict.fromkeys([*order, *values])}
        return {"": state} if self._patterns else _plain_parts(state)

    def _phrase(self, name: str, values: Mapping[str, str]) -> str:
        template = self.description.get(name)
        if not isinstance(template, str):
            return f"{name.replace('_', ' ')} {values[name]}"
        return _VARIABLE.sub(lambda variable: values[variable[1]], template)

    def words(self, state: str) -> str:
        """Return a state in words."""
        return ", ".join(self.parts(state).values())

    def steps(self, numbers: Sequence[int]) -> str:
        """Return increasing step numbers, counted from 1, in words.

        >>> Wording().steps([3]), Wording({"step": "in quarter {step}"}).steps([1, 2, 3, 5])
        ('at step 3', 'in quarter 1 to 3 and 5')
        """
        runs: list[list[int]] = []
        for number in numbers:
            if runs and number == runs[-1][-1] + 1:
                runs[-1].append(number)
            else:
                runs.append([number])
        said = [
            f"{run[0]}" if len(run) == 1 else f"{run[0]} {'and' if len(run) == 2 else 'to'} {run[-1]}" for run in runs
        ]
        template = self.description.get(STEP)
        words = " and ".join(filter(None, (", ".join(said[:-1]), said[-1])))
        return (template if isinstance(template, str) else "at step {step}").replace("{step}", words)


def _pattern(template: str) -> re.Pattern[str]:
    """Return the regular expression for names that follow a template."""
    if not isinstance(template, str) or not _VARIABLE.search(template):
        raise ProblemError(f"the template {template!r} for the names of states has no variable like {{place}}")
    pieces = _VARIABLE.split(template)
    names = pieces[1::2]
    if len(set(names)) < len(names):
        raise ProblemError(f"the template {template!r} has a variable twice")
    taken = {STATES, STEP} & set(names)
    if taken:
        raise ProblemError(f"a variable of the template {template!r} cannot be called {taken.pop()!r}; rename it")
    return re.compile(
        "".join(re.escape(piece) if i % 2 == 0 else f"(?P<{piece}>.+)" for i, piece in enumerate(pieces)), re.DOTALL
    )


def _plain_parts(state: str) -> dict[str, str]:
    """Return the parts of a name that contains its variables: "x=3, open=true" or "row 2, column 3, with gold"."""
    if ", " not in state or state.startswith(("(", "[")):
        return {"": _equation(state)}
    parts: dict[str, str] = {}
    for part in state.split(", "):
        name, equals, _ = part.partition("=")
        parts.setdefault(name if equals else re.sub(r"\d+(\.\d+)?", "#", part), _equation(part))
    # If a variable occurs twice, its parts cannot be told apart: use the name as it is.
    return parts if len(parts) == state.count(", ") + 1 else {"": state}


def _equation(part: str) -> str:
    name, equals, value = part.partition("=")
    return f"{name} is {value}" if equals and name and value and "=" not in value else part
