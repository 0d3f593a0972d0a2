"""Are the statements of ``careful`` true of people as they are? A row per kind of person, as a table in Markdown.

    python benchmarks/people.py                        300 people a row, on all cores
    python benchmarks/people.py --people 40 --kinds exact,logistic-10
    python benchmarks/people.py --json out.json        every interview as well
    python benchmarks/people.py --only-bundled         without the random catalogues
    python benchmarks/people.py --check --people 200   who is told that no weights fit, or "not sure"; "about N questions left"
    python benchmarks/people.py --importance           are the stated intervals of importance, and "because", true?

Everybody of ``tradeoff.simulation.KINDS`` is asked about four bundled problems and four kinds of random catalogue (every fourth
person gets another one); people whose tastes are not linear about the catalogues alone, because what is best for them is
known only there. "Exceeded": of those who were told "very likely within x", the share who lose more than x. "Within 1%": how
many were told that or less, and how many of them lose more.
"""

from __future__ import annotations

import os

if __name__ == "__main__":  # one thread a process, set before the libraries are imported
    for _name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(_name, "1")

import argparse
import json
import sys
import time
from functools import lru_cache
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

import tradeoff
from tradeoff import Catalogue, Reference
from tradeoff.model import Question, Reason, Recommendation, Reply
from tradeoff.presentation.result import because_words
from tradeoff.problem import Problem
from tradeoff.simulation.respondents import KINDS, Habits, Kind, Respondent, random_respondent
from tradeoff.strategies import start

sys.path.insert(0, str(Path(__file__).parent))
from cores import on_all_cores

TARGET = 0.01
ITEMS = 200
BUNDLED = ("commute", "portfolio", "vacuum", "coffee")
RANDOM = (("sphere", 3), ("uniform", 4), ("sphere", 4), ("uniform", 6))
SAME_CATALOGUE = 4  # people who are asked about one random catalogue


class Outcome(TypedDict):
    """What one interview came to; regrets are relative."""

    kind: str
    problem: str
    person: int
    questions: int
    regret: float
    worst: float | None  # "very likely within"
    likely: float | None
    fits: bool
    reason: str
    errors: int
    since: int | None  # answers after a mind was changed, of those who change theirs
    intervals: list[tuple[float, float, float]]  # of importance, as stated, each with the true importance
    because: bool | None  # whether what is said to matter most does; None where nothing is said
    seconds: float


def random_catalogue(kind: str, k: int, seed: int) -> Catalogue:
    """Return a catalogue of random points: on a sphere, where all are best for somebody, or in a cube."""
    rng = np.random.default_rng([k, seed])
    values = rng.random((ITEMS, k))
    if kind == "sphere":
        values = np.abs(rng.normal(size=(ITEMS, k)))
        values /= np.linalg.norm(values, axis=1, keepdims=True)
    low = Reference("nothing", {f"objective {j + 1}": 0.0 for j in range(k)})
    return Catalogue(values, reference=low, name=f"{kind} {k}")


@lru_cache(maxsize=8)
def problem_of(name: str, number: int) -> Problem:
    """Return a problem: bundled, or a random catalogue of a kind."""
    if name in BUNDLED:
        return tradeoff.load(name)
    kind, k = name.split()
    return random_catalogue(kind, int(k), number)


def interview(kind: str, name: str, person: int, questions: str = "") -> Outcome:
    """Ask one person about one problem."""
    problem = problem_of(name, person // SAME_CATALOGUE if name not in BUNDLED else 0)
    who = random_respondent(problem, kind, person)
    options = {"questions": questions} if questions and isinstance(problem, Catalogue) else {}
    begin = time.process_time()
    found = answered_by(who, problem, options)
    return Outcome(
        kind=kind, problem=name, person=person, questions=found.questions, regret=who.regret(found.option),
        worst=found.likely_worst, likely=found.likely_regret, fits=found.fits,
        reason=str(found.reason), errors=who.errors, since=since_change(who), intervals=intervals(who, problem, found),
        because=because(who, problem, found), seconds=time.process_time() - begin,
    )  # fmt: skip


def intervals(who: Respondent, problem: Any, found: Recommendation) -> list[tuple[float, float, float]]:
    """Return the intervals of importance that are stated, in whole per cent as they are worded, with the true shares."""
    if found.importance is None or not found.questions:
        return []
    true = np.where(problem.matters, who.weights, 0.0)
    low, high = np.floor(100 * found.importance[:, 0]) / 100, np.ceil(100 * found.importance[:, 1]) / 100
    rows = zip(low.tolist(), high.tolist(), (true / max(true.sum(), 1e-12)).tolist(), strict=True)
    return [row for row, matters in zip(rows, problem.matters, strict=True) if matters]


def because(who: Respondent, problem: Any, found: Recommendation) -> bool | None:
    """Return whether what is said to matter more than something else does; None where nothing is said."""
    words, _ = because_words(problem, found)
    if not words:
        return None
    first, others = words.split(" matters ", 1)
    shares = {o.name: float(w) for o, w in zip(problem.objectives, who.weights, strict=True)}
    return all(shares[first] > share for name, share in shares.items() if name != first and name in others)


def since_change(who: Respondent) -> int | None:
    """Return how many answers somebody gave after changing their mind; None for those who never do."""
    after: int | None = who.kind.habits.changes_after
    return None if after is None else max(0, who.asked - after)


def at_once(kind: str, rows: list[Outcome]) -> str:
    """Return how many of those who were told too little gave one answer with their new mind; "" if nobody."""
    beyond = [row for row in rows if row["worst"] is not None and row["regret"] > row["worst"] + 1e-9]
    late = [row for row in beyond if row["since"] == 1]
    others = [row for row in rows if row["worst"] is not None and row["since"] != 1]
    if not late:
        return ""
    return (
        f"{kind}: {len(late)} of the {len(beyond)} for whom it was exceeded gave only one answer with their new mind. "
        f"Without all who did, it is exceeded for {share(len(beyond) - len(late), np.ones(len(others)))}%."
    )


def answered_by(who: Respondent, problem: Problem, options: dict[str, Any]) -> Recommendation:
    """Return what is recommended to somebody in the end."""
    running = start("careful", problem, target=TARGET, **options)
    try:
        step = next(running)
        while True:
            step = running.send(who(step.question))
    except StopIteration as end:
        found: Recommendation = end.value
        return found


# --- --check: the misfit check, "not sure", and "about N questions left" ------------------------------------------------

NOISE = (0.05, 0.09)  # of the total weight: logistic, as in answers of real respondents
TASTES = 2.0  # the Dirichlet parameter of real respondents' weights, about


class Check(TypedDict):
    """What one interview told, and by how much "about N questions left" was too high each time."""

    kind: str
    questions: str
    asked: int
    fits: bool
    sure: bool
    errors: list[float]


class RandomRespondent:
    """Gives every possible reply with the same chance."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def __call__(self, question: Question) -> Reply:
        replies = question.replies
        return replies[self.random.integers(len(replies))]


def realistic(problem: Problem, seed: int) -> Respondent:
    """Return a respondent with the tastes and the noise of real ones."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(len(problem.objectives), TASTES))
    best = float(problem.best(weights[None, :])[0].value @ weights)
    return Respondent(problem, weights, Kind(Habits(logistic=rng.uniform(*NOISE) / best)), seed)


def checked(kind: str, name: str, person: int, questions: str) -> Check:
    """Interview one respondent and note what they are told."""
    problem = problem_of(name, person // SAME_CATALOGUE)
    if kind == "random":
        who: RandomRespondent | Respondent = RandomRespondent(person)
    else:
        who = realistic(problem, person) if kind == "realistic" else random_respondent(problem, kind, person)
    running = start("careful", problem, target=TARGET, questions=questions)
    expected: list[float] = []
    try:
        step = next(running)
        while True:
            left = step.recommend().expected_left
            assert left is not None
            expected.append(left)
            step = running.send(who(step.question))
    except StopIteration as end:
        found = end.value
    errors = [left - (len(expected) - before) for before, left in enumerate(expected)]
    sure = found.reason is not Reason.NOT_SURER
    return Check(kind=kind, questions=questions, asked=found.questions, fits=found.fits, sure=sure, errors=errors)


def check(count: int, first: int, jobs: int | None) -> None:
    """Print what ``count`` random, realistic and linear respondents each are told, with pairs and with menus."""
    linear = [kind for kind in KINDS if KINDS[kind].linear]
    tasks = []
    for questions, names in (("pairs", BUNDLED), ("best-worst-4", ("coffee",))):
        names = (*names, "sphere 3", "uniform 6")
        tasks += [("random", "coffee", first + i, questions) for i in range(count)]
        tasks += [("realistic", names[i % len(names)], first + i, questions) for i in range(count)]
        each = -(-count // len(linear))  # of each kind, all kinds about the same problems
        tasks += [(kind, names[i % len(names)], first + i, questions) for kind in linear for i in range(each)]
    rows: list[Check] = on_all_cores(checked, tasks, jobs, batch=SAME_CATALOGUE)
    print("| questions | respondents | number | asked | told that nothing fits | told “not sure” |", end="")
    print(" “about N left”: mean error | at most 2 off |\n|---|---" + "|---:" * 6 + "|")
    for questions in ("pairs", "best-worst-4"):
        groups = [("random", ["random"]), ("realistic", ["realistic"]), ("linear", linear), *((k, [k]) for k in linear)]
        for label, those in groups:
            found = [row for row in rows if row["questions"] == questions and row["kind"] in those]
            errors = np.array([error for row in found for error in row["errors"]])
            everybody = np.ones(len(found))
            cells = [
                questions, label, f"{len(found)}", f"{np.mean([row['asked'] for row in found]):.1f}",
                share([not row["fits"] for row in found], everybody), share([not row["sure"] for row in found], everybody),
                f"{errors.mean():.1f}", share(np.abs(errors) <= 2, np.ones(len(errors))),
            ]  # fmt: skip
            print(f"| {' | '.join(cells)} |")
    print("\nShares in percent. Random respondents are asked about coffee.")


def share(part: Any, of: Any) -> str:
    """Return a percentage."""
    return f"{100 * np.sum(part) / np.sum(of):.1f}" if np.sum(of) else ""


def line(kind: str, rows: list[Outcome], linear: bool) -> str:
    """Return a row of the table."""
    regret = np.array([row["regret"] for row in rows])
    worst = np.array([np.nan if row["worst"] is None else row["worst"] for row in rows])
    said = ~np.isnan(worst)
    small = said & (worst <= TARGET)
    beyond = regret > np.where(said, worst, np.inf) + 1e-9
    one_in = 0.05 if linear else 0.1
    verdict = "" if not said.any() or beyond.sum() <= one_in * said.sum() else " (above)"
    cells = [
        f"{len(rows)}",
        f"{np.mean([row['questions'] for row in rows]):.1f}",
        f"{100 * regret.mean():.2f}",
        share(regret > TARGET, np.ones(len(rows))),
        share(said, np.ones(len(rows))),
        share(beyond, said) + verdict,
        f"{100 * np.median(worst[said]):.1f}" if said.any() else "",
        share(small, np.ones(len(rows))),
        share(small & (regret > TARGET + 1e-9), small),
    ]
    return f"| {kind} | {' | '.join(cells)} |"


def importance_line(kind: str, rows: list[Outcome]) -> str:
    """Return how often stated intervals of importance and "because" are false, as a row of a table."""
    every = [one for row in rows for one in row["intervals"]]
    false = sum(not low - 1e-9 <= true <= high + 1e-9 for low, high, true in every)
    said = [row["because"] for row in rows if row["because"] is not None]
    wide = np.mean([high - low for low, high, _ in every]) if every else np.nan
    told = sum(bool(row["intervals"]) for row in rows)
    cells = [len(rows), told, len(every), share(false, len(every)), f"{100 * wide:.0f}", len(said)]
    return f"| {kind} | {' | '.join(map(str, cells))} | {share(said.count(False), len(said))} |"


def main() -> None:
    """Print the table."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--people", type=int, default=304, help="simulated people per row")
    reader.add_argument("--kinds", default=",".join(KINDS), help="the rows, by name, with commas between them")
    reader.add_argument("--jobs", type=int, help="processes; by default one per core")
    reader.add_argument(
        "--first", type=int, default=0, help="the number of the first person: others than those tuned on"
    )
    reader.add_argument("--questions", default="", help="ask about catalogues in menus, such as best-worst-4")
    reader.add_argument("--importance", action="store_true", help="check stated intervals of importance instead")
    reader.add_argument("--only-bundled", action="store_true")
    reader.add_argument("--json", type=Path)
    reader.add_argument("--check", action="store_true", help="whom nothing fits, who is not sure, questions left")
    given = reader.parse_args()
    if given.check:
        check(given.people, given.first, given.jobs)
        return
    random = () if given.only_bundled else tuple(f"{kind} {k}" for kind, k in RANDOM)
    begin = time.perf_counter()
    tasks = []
    for kind in given.kinds.split(","):
        names = (*BUNDLED, *random) if KINDS[kind].linear else ("coffee", *random)
        each = -(-given.people // len(names))
        tasks += [(kind, name, given.first + i) for name in names for i in range(each)]
    rows = on_all_cores(interview, [(*task, given.questions) for task in tasks], given.jobs, batch=SAME_CATALOGUE)
    if given.importance:
        print("| people | number | told intervals | intervals | false | mean width | told because | false |")
        print("|---" + "|---:" * 7 + "|")
        for kind in given.kinds.split(","):
            print(importance_line(kind, [row for row in rows if row["kind"] == kind]))
        print(importance_line("all", rows))
    else:
        print(
            "| people | number | questions | mean loss | lose over 1% | told a number | exceeded | median told |",
            end="",
        )
        print(" told within 1% | of them over |\n|---" + "|---:" * 9 + "|")
        for kind in given.kinds.split(","):
            print(line(kind, [row for row in rows if row["kind"] == kind], KINDS[kind].linear))
        for kind in given.kinds.split(","):
            if told := at_once(kind, [row for row in rows if row["kind"] == kind]):
                print(f"\n{told}")
    used = sum(row["seconds"] for row in rows)
    print(f"\nAll but the numbers and questions in percent. {used:.0f} s of processor time,", end=" ")
    print(f"{time.perf_counter() - begin:.0f} s; tradeoff {tradeoff.__version__}.")
    if given.json:
        given.json.write_text(json.dumps(rows), encoding="utf-8")


if __name__ == "__main__":
    import people  # by its name, so that other processes can import what they are sent

    people.main()
