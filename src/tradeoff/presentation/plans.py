"""Plans that can be read: a short name, and what to do when.

A name says what a plan does in the likeliest decision in which the plans shown together differ. What to do when is a decision
list: the first line that fits applies.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, takewhile

import numpy as np

from tradeoff.model import NOTHING, Details, Item, Mixture, Nothing, Option, Plan, Situation, StochasticPolicy
from tradeoff.presentation.decision_list import CERTAIN, DecisionList, Line, in_time_order, opening
from tradeoff.presentation.memo import ProblemCache
from tradeoff.presentation.numbers import ROUNDING, amount, amounts_together, chance
from tradeoff.presentation.text import clipped, one_line
from tradeoff.presentation.translation import _
from tradeoff.problem import Presentable
from tradeoff.wording import Wording

QUESTION_LINES, RESULT_LINES = 3, 5  # that are shown; others are folded away
NAME_WORDS = 6  # of a name with a condition, at most
NAME = 60  # characters of a route's name; names are cut at twice as many
USUAL = 0.5  # of all runs: an action that is taken at one step in so many is usual
TIMES = 20  # how often a line applies is counted out of these
PLANS = 200  # in the cache of a problem
NAMES = 5_000  # groups of plans
ONCE, ALWAYS, MOSTLY, USUALLY, SOMETIMES = range(5)  # how often an action is taken
# A phrase that begins with one of these can follow an action: "hold stocks in a calm market".
CONDITIONAL = {
    "if", "when", "whenever", "while", "after", "before", "once", "until", "unless", "as", "in", "during", "with", "without",
}  # fmt: skip


@dataclass(frozen=True)
class Rule:
    """A line of a plan: what to do when."""

    when: str  # "in a calm market"; "" for a part of a solution
    do: str
    often: str = ""  # how often it applies: "12 of 20 times"; "" where it always does or that is not known

    @property
    def words(self) -> str:
        """The line as a person reads it."""
        often = f" ({self.often})" if self.often else ""
        return f"{self.when}{often}: {self.do}" if self.when else self.do


@dataclass(frozen=True)
class Guide:
    """How to follow a plan."""

    lead: str  # how the lines are to be read
    rules: tuple[Rule, ...]
    covered: str  # how many of the decisions the rules cover, as a sentence; "" where they cover all
    rest: tuple[Rule, ...] = ()  # more rules, which are folded away

    @property
    def lines(self) -> tuple[str, ...]:
        """The rules as people read them."""
        return tuple(rule.words for rule in self.rules)


# --- what to do when -------------------------------------------------------------------------------------------------


def guide(problem: Presentable, option: Option) -> Guide | None:
    """Return how to follow a plan; None for an item, which is simply taken."""
    return _guides.get(problem, option.plan, lambda: _guide(problem, option, 0, RESULT_LINES))


def guides_beside(problem: Presentable, options: Sequence[Option]) -> tuple[str, tuple[Guide, ...]]:
    """Return what plans that stand beside each other all do first, as a sentence, and how to follow each from there on.

    There are no guides unless every option is a plan with rules.
    """
    openings = [[one_line(decision.action) for decision in _opening(problem, option.plan)] for option in options]
    columns = zip(*openings, strict=False)
    shared = [column[0] for column in takewhile(lambda column: len(set(column)) == 1, columns)]
    guides = [_guide(problem, option, len(shared), QUESTION_LINES) for option in options]
    if not all(guides):
        return "", ()
    both = _("Both begin with: {actions}.") if len(options) == 2 else _("All begin with: {actions}.")
    words = both.format(actions=_in_turn(shared)) if shared else ""
    return words, tuple(each for each in guides if each is not None)


def _guide(problem: Presentable, option: Option, skip: int, most: int) -> Guide | None:
    """Return how to follow a plan after its first decisions, in so many lines."""
    share, plan = _likeliest_part(option.plan)
    if isinstance(plan, StochasticPolicy):
        return None
    details = problem.details(plan)
    lead = "" if share > 1 - ROUNDING else _("With a chance of {share} this is done:").format(share=chance(share))
    if details.lines:
        parts = tuple(Rule(*_split(line)) if problem.roads else Rule("", one_line(line)) for line in details.lines)
        return Guide(lead or (_("From the start to the end:") if problem.roads else _("It consists of:")), parts, "")
    if not details.situations:
        return None
    rules, covered = _rules(problem.wording, details, skip, most)
    lead = lead or (_("The first line that fits applies:") if len(rules) > 1 else _("What to do:"))
    return Guide(lead, rules[:most], covered, rules[most:])


def _split(line: str) -> tuple[str, str]:
    state, colon, action = line.rpartition(": ")
    return (one_line(state), one_line(action)) if colon else (_("at the end"), one_line(line))


def _opening(problem: Presentable, plan: Plan) -> list[Situation]:
    share, part = _likeliest_part(plan)
    if share < CERTAIN or isinstance(part, Item | Nothing | StochasticPolicy):
        return []
    return opening(problem.details(part).situations)


def _rules(wording: Wording, details: Details, skip: int, most: int) -> tuple[tuple[Rule, ...], str]:
    """Return the decision list after the first decisions, and how much its first lines cover."""
    first = opening(details.situations)
    decisions = [one for one in details.situations if one.free] or list(details.situations)
    later = [one for one in decisions if one not in first]
    lines = DecisionList(later, wording).lines() if later else []
    rules = [Rule(_("first"), _in_turn(one_line(one.action) for one in first[skip:]))] if first[skip:] else []
    unconditional = _("then") if first else _("always")
    count = most - len(rules)
    shown, rest = in_time_order(lines[:count]), in_time_order(lines[count:])
    rules += [
        _rule(wording, later, line, _("otherwise") if at else unconditional) for at, line in enumerate(shown + rest)
    ]
    right = sum(later[i].probability for line in shown for i in line.members)
    total = sum(one.probability for one in later)
    if not rules:
        rules = [Rule(_("then"), _("nothing is left to decide"))]
    if right >= total - ROUNDING * max(total, 1.0) and details.complete:
        return tuple(rules), ""
    share = min(99, int(100 * (right + len(first)) / (total + len(first)) + ROUNDING))
    if details.complete:
        return tuple(rules), _("These lines cover {share}% of the decisions.").format(share=share)
    return tuple(rules), _("These lines cover {share}% of the decisions in the {count} likeliest situations.").format(
        share=share, count=f"{len(details.situations):,}"
    )


def _rule(wording: Wording, decisions: Sequence[Situation], line: Line, unconditional: str) -> Rule:
    """Return a line in words; ``unconditional`` is said where it has no condition."""
    when, do = line.condition.words(wording) or unconditional, one_line(line.action)
    often = how_often([decisions[i] for i in sorted(line.members)], decisions)
    if when in (_("always"), _("then")):
        often = ""
    if not line.exact and when == _("always"):
        when = _("nearly always")
    elif not line.exact:
        do = _("nearly always {action}").format(action=do)
    return Rule(when, do, often)


def how_often(members: Iterable[Situation], decisions: Sequence[Situation]) -> str:
    """Return how often some of the decisions are made: in how many of 20 runs, or as so many of 20 decisions.

    >>> rain, dry = Situation(0, "rain", "drive", 0.25), Situation(0, "dry", "walk", 0.75)
    >>> how_often([rain], [rain, dry]), how_often([rain], [rain, dry, Situation(1, "rain", "drive", 0.25)])
    ('5 of 20 times', '5 of 20 times')
    >>> how_often([rain, Situation(1, "rain", "drive", 0.25)], [rain, dry, Situation(1, "rain", "drive", 0.25)])
    '8 of 20 decisions'
    """
    made = list(members)
    mass = sum(one.probability for one in made)
    # Only decisions at one step exclude each other: at several steps, how many runs meet them is not known.
    once = len({one.step for one in made}) == 1
    share = mass if once else mass / sum(one.probability for one in decisions)
    if share > CERTAIN:
        return ""
    count = min(round(TIMES * share), TIMES - 1)
    words = _("{count} of {total} times") if once else _("{count} of {total} decisions")
    return words.format(count=count or _("less than 1"), total=TIMES)


def _in_turn(actions: Iterable[str]) -> str:
    return _(", then ").join(actions)


# --- names -----------------------------------------------------------------------------------------------------------


def plan_name(problem: Presentable, option: Option) -> str:
    """Return what a plan is called by itself: an item's name, or what is done in the likeliest decision."""
    return names_beside(problem, (option,))[0]


def plan_names(problem: Presentable, one: Option, other: Option) -> tuple[str, str]:
    """Return what two plans are called side by side."""
    first, second = names_beside(problem, (one, other))
    return first, second


def recommended_name(problem: Presentable, found: Option, runner_up: Option | None) -> str:
    """Return what a recommended plan is called wherever it is named: what it is called beside its runner-up."""
    return plan_name(problem, found) if runner_up is None else plan_names(problem, found, runner_up)[0]


def ranked_names(problem: Presentable, options: Sequence[Option]) -> tuple[str, ...]:
    """Return different names for the options of a ranking; what comes later changes no name before, from the second on.

    The first is called as beside the second, and each other one as beside the first, or as beside the one that has this name.
    """
    first, *others = options
    names = [recommended_name(problem, first, others[0] if others else None)]
    for at, option in enumerate(others, start=1):
        name = plan_names(problem, first, option)[1]
        if at > 1 and name in names:
            name = plan_names(problem, options[names.index(name)], option)[1]
        if at > 1 and name in names:
            amounts = _telling_amounts(problem, [options[names.index(name)], option])[1]
            longer = (", ".join([name, *amounts[:count]]) for count in range(1, len(amounts) + 1))
            name = next((each for each in longer if each not in names), name)
        names.append(name)
    return tuple(names)


def names_beside(problem: Presentable, options: Sequence[Option]) -> tuple[str, ...]:
    """Return what options are called that stand beside each other: different names, unless their values are the same.

    A policy is called by its action in the likeliest decision in which it differs from the others.
    """
    key = tuple((one.value.tobytes(), one.plan) for one in options)
    return _names.get(problem, key, lambda: _names_beside(problem, options))


def _names_beside(problem: Presentable, options: Sequence[Option]) -> tuple[str, ...]:
    plans = [one.plan for one in options]
    policies = {i: _decisions(problem, plan) for i, plan in enumerate(plans)}
    policies = {i: policy for i, policy in policies.items() if policy.at}
    told: dict[int, Situation] = {}
    _tell_apart(policies, told)
    texts = [
        policies[i].name(told.get(i), [policy for j, policy in policies.items() if j != i]) if i in policies else ""
        for i in range(len(plans))
    ]
    names = [clipped(_named(problem, plan, text), 2 * NAME) for plan, text in zip(plans, texts, strict=True)]
    for alike in _same_names(names):
        amounts = _telling_amounts(problem, [options[i] for i in alike])
        count = next((n for n in range(len(amounts[0])) if len({each[:n] for each in amounts}) == len(alike)), None)
        for i, words in zip(alike, amounts, strict=True):
            names[i] = ", ".join([names[i], *words[:count]])
    if len(plans) == 2 and problem.roads and all(isinstance(plan, Item) for plan in plans):
        names = _shortest_lists(names)
    return tuple(names)


def _tell_apart(policies: dict[int, _Decisions], told: dict[int, Situation]) -> None:
    """Set for each policy the likeliest decision in which it differs from others; the finest, where several are needed.

    Two policies that differ meet some decision in common in which they do: the earliest, at the latest.
    """
    if not policies:
        return
    reached = set.intersection(*(set(policy.at) for policy in policies.values()))
    keys = [key for key in next(iter(policies.values())).at if key in reached]
    differing = [key for key in keys if len({policy.at[key].action for policy in policies.values()}) > 1]
    if not keys or (not differing and any(i in told for i in policies)):
        return

    def likelihood(key: tuple[int, str]) -> float:
        return round(min(policy.at[key].probability for policy in policies.values()), 9)

    chosen = max(differing or keys, key=lambda key: (likelihood(key), -key[0]))
    groups: dict[str, dict[int, _Decisions]] = defaultdict(dict)
    for i, policy in policies.items():
        told[i] = policy.at[chosen]
        groups[told[i].action][i] = policy
    for group in groups.values():
        if 1 < len(group) < len(policies):
            _tell_apart(group, told)


def _same_names(names: Sequence[str]) -> list[list[int]]:
    """Return the places of those that have the same name, where there are several."""
    places: dict[str, list[int]] = defaultdict(list)
    for i, name in enumerate(names):
        places[name].append(i)
    return [group for group in places.values() if len(group) > 1]


def _telling_amounts(problem: Presentable, options: Sequence[Option]) -> list[tuple[str, ...]]:
    """Return the amounts of each option in which they differ, with their objectives; what differs most comes first."""
    shown = problem.original
    outcomes = np.array([shown.outcome(problem.as_read(option).value) for option in options])
    spread = np.ptp(outcomes, axis=0) / np.maximum(np.abs(shown.scale), np.finfo(float).tiny)
    columns = []
    for j in np.argsort(-spread, kind="stable")[: int((spread > ROUNDING).sum())]:
        objective = shown.objectives[j]
        together = amounts_together(objective, outcomes[:, j].tolist())
        alone = [amount(objective, number) for number in outcomes[:, j].tolist()]  # as in the rows of a result
        told = alone if len(set(alone)) >= len(set(together)) else together
        columns.append([f"{one_line(objective.name)} {words}" for words in told])
    return list(zip(*columns, strict=True)) if columns else [()] * len(options)


def _likeliest_part(plan: Plan) -> tuple[float, Plan]:
    """Return the likeliest part of a plan, and its probability; the reference only where there is nothing else."""
    if not isinstance(plan, Mixture):
        return 1.0, plan
    inner = [
        (share * part[0], part[1])
        for share, part in zip(plan.probabilities, map(_likeliest_part, plan.plans), strict=True)
    ]
    return max(inner, key=lambda part: (not isinstance(part[1], Nothing), part[0]))


def _named(problem: Presentable, plan: Plan, text: str) -> str:
    share, part = _likeliest_part(plan)
    if isinstance(part, Item):
        text = one_line(part.name)
    elif isinstance(part, Nothing):
        text = one_line(problem.reference_name) if part is NOTHING else _("an option from elsewhere")
    if share > 1 - ROUNDING:
        return text
    # What else may come is named where it is the reference alone, as in the paper's questions.
    rest = plan.plans if isinstance(plan, Mixture) else ()
    if not isinstance(part, Nothing) and all(one is part or isinstance(one, Nothing) for one in rest):
        words = _("{name}, with a chance of {share}, otherwise {other}")
        return words.format(name=text, share=chance(share), other=one_line(problem.reference_name))
    return _("{name}, with a chance of {share}").format(name=text, share=chance(share))


class _Decisions:
    """The decisions of a policy, and phrases for them; all that it does where there is never anything to decide."""

    def __init__(self, details: Details, wording: Wording) -> None:
        self.complete = details.complete
        self.all = tuple(one for one in details.situations if one.free) or details.situations
        self.total = sum(one.probability for one in self.all)
        words = {one.state: wording.parts(one.state) for one in self.all}
        self.parts = {state: {name: one_line(part) for name, part in each.items()} for state, each in words.items()}
        self.at = {(one.step, one.state): one for one in self.all}
        self.mass: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))  # of each action, by step
        for one in self.all:
            self.mass[one.action][one.step] += one.probability

    def name(self, decision: Situation | None, others: Sequence[_Decisions]) -> str:
        """Return what is done in a decision, with a condition only if the action depends on it.

        Where no short condition is right, the name says how often it is done; or how often what is done most is, if the
        others do as much of the former, or if it is rare.
        """
        main = max(self.mass, key=lambda action: sum(self.mass[action].values()))
        action = main if decision is None else decision.action
        level = self.frequency(action)
        if decision is not None and level > ALWAYS:
            words = f"{one_line(action)} {self._condition(decision)}"
            if not words.endswith(" ") and words.count(" ") < NAME_WORDS:
                return words
            rare = level == SOMETIMES and self.frequency(main) <= MOSTLY
            if rare or any(action in other.mass and other.frequency(action) <= level for other in others):
                action, level = main, self.frequency(main)
        return ("{action}", _("always {action}"), _("mostly {action}"), _("usually {action}"), _("sometimes {action}"))[
            level
        ].format(action=one_line(action))

    def frequency(self, action: str) -> int:
        """Return how often this is done: ONCE in each run, ALWAYS, MOSTLY, USUALLY or SOMETIMES."""
        steps = self.mass[action]
        if len(steps) == 1 and max(steps.values()) > CERTAIN:
            return ONCE
        if self.complete and len(self.mass) == 1:
            return ALWAYS
        if self.complete and sum(steps.values()) > self.total / 2:
            return MOSTLY
        return USUALLY if max(steps.values()) >= USUAL else SOMETIMES

    def _condition(self, decision: Situation) -> str:
        """Return a condition under which the same is always done, as a phrase; "" where none says when it mostly is."""
        parts = self.parts[decision.state]
        mass = sum(self.mass[decision.action].values())
        for names in (*combinations(parts, 1), *combinations(parts, 2)) if self.complete else ():
            values = [(name, parts[name]) for name in names]
            fits = [one for one in self.all if values == [(name, self.parts[one.state].get(name)) for name in names]]
            often = sum(one.probability for one in fits)
            if 2 * often >= mass and self._always(decision.action, values):
                words = ", ".join(self._shortened(decision, name, parts[name]) for name in names)
                return words if words.split(" ")[0].lower() in CONDITIONAL else _("if {state}").format(state=words)
        return ""

    def _always(self, action: str, values: Sequence[tuple[str, str]]) -> bool:
        """Return whether this is done wherever variables have these values, or values that end so after a space."""
        for one in self.all:
            if one.action != action:
                parts = self.parts[one.state]
                if all(f" {parts.get(name, '')}".endswith(f" {value}") for name, value in values):
                    return False
        return True

    def _shortened(self, decision: Situation, name: str, words: str) -> str:
        """Return a phrase without what all states at this step begin with, if what is left can follow an action."""
        beside = {self.parts[one.state].get(name, "") for one in self.all if one.step == decision.step}
        split, common = words.split(" "), [phrase.split(" ") for phrase in beside]
        for at in range(len(split) - 1, 0, -1):
            short = " ".join(split[at:])
            if split[at] in CONDITIONAL and all(other[:at] == split[:at] for other in common):
                return short if self._always(decision.action, [(name, short)]) else words
        return words


_guides: ProblemCache[Guide | None] = ProblemCache(PLANS)
_names: ProblemCache[tuple[str, ...]] = ProblemCache(NAMES)
_policies: ProblemCache[_Decisions] = ProblemCache(PLANS)


def _decisions(problem: Presentable, plan: Plan) -> _Decisions:
    part = _likeliest_part(plan)[1]
    if isinstance(part, Item | Nothing):
        return _Decisions(Details(), problem.wording)
    return _policies.get(problem, part, lambda: _Decisions(problem.details(part), problem.wording))


def _shortest_lists(names: Sequence[str]) -> list[str]:
    """Return the names of two routes; of long lists of streets, only what the other does not have."""
    parts = [name.split(", ") for name in names]
    if max(map(len, names)) <= NAME or min(map(len, parts)) < 2:
        return list(names)
    own = [[part for part in mine if part not in theirs] for mine, theirs in zip(parts, reversed(parts), strict=True)]
    return (
        [f"by {', '.join(mine)}" if mine else name for mine, name in zip(own, names, strict=True)]
        if any(own)
        else list(names)
    )
