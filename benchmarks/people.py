"""Are the statements of ``careful`` true of people as they are? A row per kind of person, as a table in Markdown.

    python benchmarks/people.py                        300 people a row, on all cores
    python benchmarks/people.py --people 40 --kinds exact,logistic-10
    python benchmarks/people.py --json out.json        every interview as well
    python benchmarks/people.py --only-bundled         without the random catalogues
    python benchmarks/people.py --strengths            people add "a lot" or "a little" better

Everybody of ``tradeoff.people.KINDS`` is asked about four bundled problems and four kinds of random catalogue (every fourth
person gets another one); people whose tastes are not linear about the catalogues alone, because what is best for them is
known only there. "Exceeded": of those who were told "very likely within x", the share who lose more than x. "Within 1%": how
many were told that or less, and how many of them lose more. The same script measures an earlier commit, whose sources are put
first on the path: ``PYTHONPATH=earlier/src python benchmarks/people.py``.
"""

from __future__ import annotations

import os

if __name__ == "__main__":  # one thread a process, set before the libraries are imported
    for _name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(_name, "1")

import argparse
import importlib.util
import json
import sys
import time
from functools import lru_cache
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

import tradeoff
from tradeoff import Catalogue, Reference
from tradeoff.model import Recommendation
from tradeoff.problem import Problem
from tradeoff.strategies import start

sys.path.insert(0, str(Path(__file__).parent))
from cores import on_all_cores

TARGET = 0.01
ITEMS = 200
BUNDLED = ("commute", "portfolio", "vacuum", "coffee")
RANDOM = (("sphere", 3), ("uniform", 4), ("sphere", 4), ("uniform", 6))
SAME_CATALOGUE = 4  # people who are asked about one random catalogue


def population() -> Any:
    """Return the module of simulated people; for an earlier commit, the one beside this script."""
    try:
        import tradeoff.people as found
    except ImportError:
        path = Path(__file__).resolve().parents[1] / "src" / "tradeoff" / "people.py"
        spec = importlib.util.spec_from_file_location("tradeoff.people", path)
        assert spec is not None and spec.loader is not None
        found = sys.modules["tradeoff.people"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
    return found


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


def interview(kind: str, name: str, person: int, questions: str = "", strengths: bool = False) -> Outcome:
    """Ask one person about one problem."""
    problem = problem_of(name, person // SAME_CATALOGUE if name not in BUNDLED else 0)
    options: dict[str, Any] = {"strengths": True} if strengths else {}  # earlier commits know nothing of it
    who = population().person_of(problem, kind, person, **options)
    options |= {"questions": questions} if questions and isinstance(problem, Catalogue) else {}
    begin = time.process_time()
    found = answered_by(who, problem, options)
    return Outcome(
        kind=kind, problem=name, person=person, questions=found.questions, regret=who.regret(found.alternative),
        worst=found.likely_worst, likely=found.likely_regret, fits=getattr(found, "fits", True),
        reason=str(found.reason), errors=who.errors, since=since_change(who), seconds=time.process_time() - begin,
    )  # fmt: skip


def since_change(who: Any) -> int | None:
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


def answered_by(who: Any, problem: Problem, options: dict[str, Any]) -> Recommendation:
    """Return what is recommended to somebody in the end."""
    running = start("careful", problem, target=TARGET, **options)
    try:
        step = next(running)
        while True:
            step = running.send(who(step.question))
    except StopIteration as end:
        found: Recommendation = end.value
        return found


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


def main() -> None:
    """Print the table."""
    kinds = population().KINDS
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--people", type=int, default=304, help="simulated people per row")
    reader.add_argument("--kinds", default=",".join(kinds), help="the rows, by name, with commas between them")
    reader.add_argument("--jobs", type=int, help="processes; by default one per core")
    reader.add_argument(
        "--first", type=int, default=0, help="the number of the first person: others than those tuned on"
    )
    reader.add_argument("--questions", default="", help="ask about catalogues in menus, such as best-worst-4")
    reader.add_argument("--strengths", action="store_true", help='people add "a lot" or "a little" better')
    reader.add_argument("--only-bundled", action="store_true")
    reader.add_argument("--json", type=Path)
    given = reader.parse_args()
    random = () if given.only_bundled else tuple(f"{kind} {k}" for kind, k in RANDOM)
    begin = time.perf_counter()
    tasks = []
    for kind in given.kinds.split(","):
        names = (*BUNDLED, *random) if kinds[kind].linear else ("coffee", *random)
        each = -(-given.people // len(names))
        tasks += [(kind, name, given.first + i) for name in names for i in range(each)]
    given_to_all = (given.questions, given.strengths)
    rows = on_all_cores(interview, [(*task, *given_to_all) for task in tasks], given.jobs, batch=SAME_CATALOGUE)
    print("| people | number | questions | mean loss | lose over 1% | told a number | exceeded | median told |", end="")
    print(" told within 1% | of them over |\n|---" + "|---:" * 9 + "|")
    for kind in given.kinds.split(","):
        print(line(kind, [row for row in rows if row["kind"] == kind], kinds[kind].linear))
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
