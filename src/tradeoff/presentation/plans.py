"""Plans one can follow: a short name, and what to do when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from tradeoff.model import NOTHING, Details, Item, Mixture, Nothing, Option, Plan, Situation, StochasticPolicy
from tradeoff.presentation.memo import ProblemCache
from tradeoff.presentation.numbers import ROUNDING, chance
from tradeoff.presentation.text import clipped, one_line
from tradeoff.problem import Presentable
from tradeoff.wording import Wording

RULES = 8  # lines at most
TIMES = 5  # stretches of time in one line
TOGETHER = 3  # variables that a condition combines, if that says enough
NAME = 60  # characters of a name at most
CONDITION = 40  # of the condition in it, if there is more than one
# A phrase that begins with one of these is a condition as it is.
CONDITIONAL = {"if", "when", "whenever", "while", "after", "before", "once", "until", "unless", "as"}
LIKELIEST = 300  # decisions by which plans are told apart, where these are enough
PLANS = 1_000  # of a problem, as they were told last: about 80 MB
NAMES = 5_000  # groups of plans of a problem

Names = tuple[str, ...]  # of variables
Condition = tuple[str, ...]  # what is said of them


@dataclass(frozen=True)
class Rule:
    """What to do when: a line that holds wherever the plan leads."""

    when: str  # "in a calm market"; "" where it is done whenever there is a choice
    do: str
    alone: bool = False  # whether there is no "when": a part of a solution, which an optimiser found
    often: str = ""  # how often it applies: "12 of 20"; "" where that is not known

    @property
    def words(self) -> str:
        """The line as a person reads it."""
        if self.alone:
            return self.do
        return f"{self.when}: {self.do}" if self.when else f"whenever there is a choice: {self.do}"


@dataclass(frozen=True)
class Guide:
    """How to follow a plan."""

    name: str
    lead: str  # how the lines are to be read; "" where they need no explanation
    rules: tuple[Rule, ...]  # the likeliest first
    covered: str  # how much of what has to be decided the lines cover, as a sentence; "" where it is all
    rest: tuple[Rule, ...] = ()  # more rules, which are folded away

    @property
    def lines(self) -> tuple[str, ...]:
        """The rules as people read them."""
        return tuple(rule.words for rule in self.rules)


def guide(problem: Presentable, option: Option) -> Guide | None:
    """Return how to follow a plan; None for an item, which is simply taken."""
    return _guides.get(problem, option.plan, lambda: _guide(problem, option))


def guides_beside(problem: Presentable, options: Sequence[Option]) -> tuple[str, tuple[Guide, ...]]:
    """Return what plans that stand beside each other all do first, as a sentence, and how to follow each from there on.

    There are no guides unless every option is a plan with rules.
    """
    guides = [guide(problem, option) for option in options]
    return "", tuple(each for each in guides if each is not None) if None not in guides else ()


def _guide(problem: Presentable, option: Option) -> Guide | None:
    share, plan = _main(option.plan)
    if isinstance(plan, StochasticPolicy):  # what is done is drawn by lot
        return None
    details = problem.details(plan)
    name = plan_name(problem, option)
    lead = "" if share > 1 - ROUNDING else f"With a chance of {chance(share)} this is what is done:"
    if details.lines:
        if not problem.roads:
            parts = tuple(Rule("", one_line(line), alone=True) for line in details.lines)
            return Guide(name, lead or "It consists of:", parts, "")
        told = tuple(Rule(*_split(line)) for line in details.lines)
        return Guide(name, lead or "From the start to the end:", told, "")
    if not details.situations:
        return None
    rules, covered = _rules(problem.wording, details)
    return Guide(name, lead or "What to do when, the likeliest first:", rules, covered)


def _split(line: str) -> tuple[str, str]:
    state, colon, action = line.rpartition(": ")
    return (one_line(state), one_line(action)) if colon else ("at the end", one_line(line))


# --- names -----------------------------------------------------------------------------------------------------------


def plan_name(problem: Presentable, option: Option) -> str:
    """Return what a plan is called by itself: an item's name, or the first thing that is decided."""
    return _named(problem, option.plan, _decisions(problem, option.plan).first)


def plan_names(problem: Presentable, one: Option, other: Option) -> tuple[str, str]:
    """Return what two plans are called side by side."""
    first, second = names_beside(problem, (one, other))
    return first, second


def recommended_name(problem: Presentable, found: Option, runner_up: Option | None) -> str:
    """Return what a recommended plan is called wherever it is named: what it is called beside its runner-up."""
    return plan_name(problem, found) if runner_up is None else plan_names(problem, found, runner_up)[0]


def names_beside(problem: Presentable, options: Sequence[Option]) -> tuple[str, ...]:
    """Return what plans are called that stand beside each other: different names, unless nothing is different.

    They are called by what is decided first, and those that begin alike also by the likeliest decision they differ in.
    """
    key = tuple((one.value.tobytes(), one.plan) for one in options)
    return _names.get(problem, key, lambda: _names_beside(problem, options))


def _names_beside(problem: Presentable, options: Sequence[Option]) -> tuple[str, ...]:
    plans = [one.plan for one in options]
    texts = [_decisions(problem, plan).first for plan in plans]
    names = [_named(problem, plan, text) for plan, text in zip(plans, texts, strict=True)]
    for alike in _groups(names):
        if all(does.in_time or does.missing for does in (_decisions(problem, plans[i]) for i in alike)):
            for i, more in _differing(problem, {i: options[i] for i in alike}).items():
                room = max(NAME // 3, 2 * NAME - len(more))  # what differs is read to its end
                names[i] = _named(problem, plans[i], f"{clipped(texts[i], room)}{more}")
    for alike in _groups(names):
        if len(alike) == 2:
            one, other = (options[i] for i in alike)
            for i, name in zip(alike, _by_value(problem, one, other, names[alike[0]]), strict=True):
                names[i] = name
    if len(plans) == 2 and problem.roads and all(isinstance(plan, Item) for plan in plans):
        names = _shortest_lists(names)
    return tuple(clipped(name, 2 * NAME) for name in names)


def _groups(names: Sequence[str]) -> list[list[int]]:
    """Return the places of those that have the same name, where there are several."""
    places: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        places.setdefault(name, []).append(i)
    return [group for group in places.values() if len(group) > 1]


def _main(plan: Plan) -> tuple[float, Plan]:
    """Return the likeliest part of a plan, and its probability; the reference only where there is nothing else."""
    if not isinstance(plan, Mixture):
        return 1.0, plan
    inner = [(share * part[0], part[1]) for share, part in zip(plan.probabilities, map(_main, plan.plans), strict=True)]
    return max(inner, key=lambda part: (not isinstance(part[1], Nothing), part[0]))


@dataclass(frozen=True, eq=False)
class _Decisions:
    """What a policy decides, in order of time; all that it does where there is never anything to decide."""

    in_time: tuple[Situation, ...] = ()
    first: str = ""
    missing: float = 0.0  # all others are at most so likely

    @classmethod
    def of(cls, in_time: tuple[Situation, ...], most: int | None = None) -> _Decisions:
        """Return all decisions, or so many of the likeliest."""
        first = one_line(in_time[0].action) if in_time else ""
        if most is None or len(in_time) <= most:
            return cls(in_time, first)
        border = sorted((one.probability for one in in_time), reverse=True)[most]
        return cls(tuple(one for one in in_time if one.probability > border), first, border)

    @cached_property
    def at(self) -> dict[tuple[int, str], Situation]:
        return {(one.step, one.state): one for one in self.in_time}

    @cached_property
    def likeliest(self) -> list[Situation]:
        return sorted(self.in_time, key=lambda one: -one.probability)


_guides: ProblemCache[Guide | None] = ProblemCache(PLANS)
_names: ProblemCache[tuple[str, ...]] = ProblemCache(NAMES)
_likeliest: ProblemCache[_Decisions] = ProblemCache(PLANS)


def _all_decisions(problem: Presentable, plan: Plan) -> tuple[Situation, ...]:
    part = _main(plan)[1]
    if isinstance(part, Item | Nothing):
        return ()
    situations = problem.details(part).situations
    return tuple(one for one in situations if one.free) or tuple(situations)


def _decisions(problem: Presentable, plan: Plan) -> _Decisions:
    """Return the likeliest decisions of a plan."""
    return _likeliest.get(problem, plan, lambda: _Decisions.of(_all_decisions(problem, plan), LIKELIEST))


def _named(problem: Presentable, plan: Plan, text: str) -> str:
    share, part = _main(plan)
    if isinstance(part, Item):
        text = one_line(part.name)
    elif isinstance(part, Nothing):
        text = one_line(problem.reference_name) if part is NOTHING else "an option from elsewhere"
    if share > 1 - ROUNDING:
        return text
    # What else may come is named where it is the reference alone, as in the paper's questions.
    rest = plan.plans if isinstance(plan, Mixture) else ()
    alone = not isinstance(part, Nothing) and all(one is part or isinstance(one, Nothing) for one in rest)
    otherwise = f", otherwise {one_line(problem.reference_name)}" if alone else ""
    return f"{text}, with a chance of {chance(share)}{otherwise}"


def _differing(problem: Presentable, plans: Mapping[int, Option]) -> dict[int, str]:
    """Return how the names of policies go on that begin with the same decision: with the decisions they differ in."""
    pairs = (_difference(problem, one, other) for one, other in combinations(plans.values(), 2))
    pair = next((found for found in pairs if found is not None), None)
    if pair is None:
        return dict.fromkeys(plans, "")
    where = _condition(problem.wording, pair[0].state)
    said: dict[str, dict[int, Option]] = {}
    for i, plan in plans.items():
        there = _decided_at(problem, plan.plan, pair[0])
        if there is None:  # it never gets there
            more = ""
        elif min(pair[0].probability, pair[1].probability) > 1 - ROUNDING:
            more = f", then {one_line(there.action)}"
        else:
            more = f"; {one_line(there.action)} {where}"
        said.setdefault(more, {})[i] = plan
    return {
        i: f"{more}{end}"
        for more, alike in said.items()
        for i, end in (_differing(problem, alike) if 1 < len(alike) < len(plans) else dict.fromkeys(alike, "")).items()
    }


def _condition(wording: Wording, state: str) -> str:
    """Return a situation as the end of a sentence: "if in a calm market, with 8370 EUR". What is too long is left out."""
    first, *others = map(one_line, wording.parts(state).values())
    words = first if first.split(" ")[0].lower() in CONDITIONAL else f"if {first}"
    for other in others:
        if len(words) + len(other) > CONDITION:
            return f"{words} …"
        words += f", {other}"
    return words


def _decided_at(problem: Presentable, plan: Plan, situation: Situation) -> Situation | None:
    """Return the same situation with what a policy decides there; None where it never gets there."""
    known, key = _decisions(problem, plan), (situation.step, situation.state)
    if key not in known.at and known.missing:
        known = _Decisions.of(_all_decisions(problem, plan))
    return known.at.get(key)


def _difference(problem: Presentable, one: Option, other: Option) -> tuple[Situation, Situation] | None:
    """Return the likeliest situation in which two policies decide differently."""
    known = _decisions(problem, one.plan), _decisions(problem, other.plan)
    pair = _likeliest_difference(*known)
    missing = max(known[0].missing, known[1].missing)
    if missing and (pair is None or round(min(pair[0].probability, pair[1].probability), 9) <= round(missing, 9)):
        # One that is not among the likeliest may be as likely.
        pair = _likeliest_difference(*(_Decisions.of(_all_decisions(problem, each.plan)) for each in (one, other)))
    return pair


def _likeliest_difference(one: _Decisions, other: _Decisions) -> tuple[Situation, Situation] | None:
    """Return where two policies decide differently: the likeliest such situation, and the earliest of those."""
    pair, most = None, (-1.0, 0)
    for mine in one.likeliest:
        if round(mine.probability, 9) < most[0]:
            break
        theirs = other.at.get((mine.step, mine.state))
        if theirs is None or theirs.action == mine.action:
            continue
        rank = round(min(mine.probability, theirs.probability), 9), -mine.step
        if rank > most:
            pair, most = (mine, theirs), rank
    return pair


def _by_value(problem: Presentable, one: Option, other: Option, name: str) -> list[str]:
    """Return a common name with what is better about each; plans of the same value keep it."""
    gains = one.value - other.value
    said = []
    for side in (gains, -gains):
        j = int(side.argmax())
        word = "more" if problem.objectives[j].goal == "max" else "less"
        said.append(f"{name}, with {word} {one_line(problem.objectives[j].name)}" if side[j] > ROUNDING else name)
    return said


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


# --- what to do when -------------------------------------------------------------------------------------------------


Line = tuple[float, int, Rule]  # how likely it is to be needed, and when first


def _rules(wording: Wording, details: Details) -> tuple[tuple[Rule, ...], str]:
    """Return the lines that cover what is decided most, and how much they cover.

    Each line is true wherever the plan leads. Where the lines for everything are too many, what is done most is one line,
    "as a rule", and the others are its exceptions.
    """
    decisions = [one for one in details.situations if one.free] or list(details.situations)
    lines = _Lines(wording, decisions, details.complete)
    total = sum(one.probability for one in decisions)
    rules, left = lines.cover(range(len(decisions)), RULES)
    if left > ROUNDING * total:
        weight: dict[str, float] = {}
        for one in decisions:
            weight[one.action] = weight.get(one.action, 0.0) + one.probability
        usual = max(weight, key=lambda action: weight[action])
        exceptions, missed = lines.cover([i for i, one in enumerate(decisions) if one.action != usual], RULES - 1)
        if missed < left and weight[usual] > total / 2:
            likely = _likely(one for one in decisions if one.action == usual)
            first = min(one.step for one in decisions if one.action == usual)
            rules, left = [*exceptions, (likely, first, Rule("as a rule", one_line(usual)))], missed
    ordered = tuple(rule for _, _, rule in sorted(rules, key=lambda line: (-round(line[0], 9), line[1])))
    if left <= ROUNDING * total and details.complete:
        return ordered, ""
    of = "" if details.complete else f", of the {len(details.situations):,} likeliest situations"
    percent = min(99, int(100 * (1 - left / total) + ROUNDING))
    return ordered, f"These lines cover {percent}% of what has to be decided on average{of}."


class _Lines:
    """Looks for conditions under which a plan always does the same."""

    def __init__(self, wording: Wording, decisions: Sequence[Situation], complete: bool) -> None:
        self.wording, self.decisions, self.complete = wording, decisions, complete
        known: dict[str, dict[str, str]] = {one.state: {} for one in decisions}
        for state in known:
            known[state] = {name: one_line(words) for name, words in wording.parts(state).items()}
        self.words = [known[one.state] for one in decisions]
        names = dict.fromkeys(name for parts in known.values() for name in parts)
        self.short = [subset for size in range(TOGETHER + 1) for subset in combinations(names, size)]
        self._held: dict[Names, dict[Condition, list[int]]] = {}

    def holding(self, names: Names, i: int) -> list[int]:
        """Return the decisions in which these variables are as in decision ``i``."""
        if names not in self._held:
            groups: dict[Condition, list[int]] = {}
            for j, words in enumerate(self.words):
                if all(name in words for name in names):
                    groups.setdefault(tuple(words[name] for name in names), []).append(j)
            self._held[names] = groups
        return self._held[names][tuple(self.words[i][name] for name in names)]

    def condition(self, i: int, wanted: set[int]) -> Names | None:
        """Return the variables of the shortest true condition for decision ``i``; of several, the one that covers most.

        None if it depends on the step, or may do so because not every situation is known.
        """
        whole, action = tuple(self.words[i]), self.decisions[i].action
        for size in range(len(whole) + 1 if self.complete else 0):
            # The variable that is named first says most: where one is, before how much is left.
            tried = [n for n in self.short if len(n) == size and set(n) <= set(whole) and (not n or whole[0] in n)]
            tried = tried or ([whole] if len(whole) == size else [])
            found = [n for n in tried if all(self.decisions[j].action == action for j in self.holding(n, i))]
            if found:
                return max(
                    found, key=lambda n: sum(self.decisions[j].probability for j in self.holding(n, i) if j in wanted)
                )
        return None

    def cover(self, which: Iterable[int], most: int) -> tuple[list[Line], float]:
        """Return lines for these decisions, and how much is left uncovered."""
        decisions, left = self.decisions, set(which)
        found: list[Line] = []
        for i in sorted(left, key=lambda i: (-decisions[i].probability, decisions[i].step)):
            if len(found) == most:
                break
            if i in left:
                names, action = self.condition(i, left), decisions[i].action
                whole = tuple(self.words[i]) if names is None else names
                members = [j for j in self.holding(whole, i) if decisions[j].action == action]
                when = [self.words[i][name] for name in whole]
                if names is None:
                    members = _first_times(decisions, members)
                    when.append(one_line(self.wording.steps(sorted({decisions[j].step + 1 for j in members}))))
                rule = Rule(", ".join(when), one_line(action))
                found.append((_likely(decisions[j] for j in members), decisions[members[0]].step, rule))
                left -= set(members)
        return found, sum(decisions[j].probability for j in left)


def _first_times(decisions: Sequence[Situation], members: Sequence[int]) -> list[int]:
    """Return those of the members, which are in order of time, that fall into the first few stretches of steps."""
    kept: list[int] = []
    stretches = 0
    for j in members:
        stretches += not kept or decisions[j].step > decisions[kept[-1]].step + 1
        if stretches > TIMES:
            break
        kept.append(j)
    return kept


def _likely(members: Iterable[Situation]) -> float:
    """Return how likely a condition is at the step at which it is likeliest."""
    at: dict[int, float] = {}
    for one in members:
        at[one.step] = at.get(one.step, 0.0) + one.probability
    return max(at.values())
