"""How long many simulated people take on a compiled problem, as a table in Markdown.

    python benchmarks/crowd.py                              # 100,000 people, all cores
    python benchmarks/crowd.py --people 1000000 --problems commute --strategies careful
    python benchmarks/crowd.py --people 1000 --error-rate 0.1

Respondents of a part share each question that all of them are asked. Beside it, in the same run, some of the same respondents
are interviewed one by one in one process: they, too, share what is in the strategy's cache. Both ways must give the same rows.
"""

from __future__ import annotations

import argparse
import os
import time

import joblib
import numpy as np
import psutil  # type: ignore[import-untyped]

import tradeoff
from tradeoff.simulation import Settings, interview_respondents, simulate


def processor_seconds() -> float:
    """Return the processor time of this process and those that it started."""
    here = psutil.Process()
    return sum(sum(one.cpu_times()[:2]) for one in (here, *here.children(recursive=True)))


def row_of(name: str, strategy: str, given: argparse.Namespace) -> str:
    """Return a row of the table."""
    problem = tradeoff.cover(tradeoff.load(name), tolerance=given.tolerance)
    settings = Settings(strategy=strategy, error_rate=given.error_rate, kind=given.kind)
    begin, before = time.perf_counter(), processor_seconds()
    run = simulate(
        problem, given.people, strategy=strategy, error_rate=given.error_rate, kind=given.kind, jobs=given.jobs
    )
    seconds, spent = time.perf_counter() - begin, processor_seconds() - before
    fresh = tradeoff.cover(tradeoff.load(name), tolerance=given.tolerance)  # with nothing in its cache
    begin = time.process_time()
    alone = [interview_respondents(fresh, [index], settings)[0] for index in range(min(given.alone, given.people))]
    one = (time.process_time() - begin) / max(1, len(alone))
    for index, row in enumerate(alone):
        found = run.results[index]
        assert (found.questions, found.regret, found.reason) == (row.questions, row.regret, row.reason)
        assert np.array_equal(found.weights, row.weights), f"row {index} differs"
    asked = int(run.results.questions.sum())
    return (
        f"| {name}, {len(problem.plans.values)} plans | {strategy} | {given.people:,} | {seconds:,.1f} | {spent:,.1f} | "
        f"{given.people / seconds:,.0f} | {asked:,} | {1000 * one:.0f} | {one * given.people / spent:,.1f} |"
    )


def main() -> None:
    """Print the table."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--people", type=int, default=100_000)
    reader.add_argument("--problems", nargs="+", default=["commute", "portfolio"])
    reader.add_argument("--strategies", nargs="+", default=["careful", "certified"])
    reader.add_argument("--tolerance", type=float, default=0.001)
    reader.add_argument("--error-rate", type=float, default=0.0)
    reader.add_argument("--kind", default="exact", help="a kind of tradeoff.simulation.KINDS")
    reader.add_argument("--jobs", type=int, default=None)
    reader.add_argument("--alone", type=int, default=50, help="people who are interviewed one by one as well")
    given = reader.parse_args()
    print(f"{joblib.effective_n_jobs(given.jobs or -1)} processes on {os.cpu_count()} cores\n")
    print(
        "| compiled problem | strategy | people | s | CPU s | people/s | questions asked "
        "| one by one: CPU ms per person | times faster |\n|---|---|" + "---:|" * 7
    )
    for name in given.problems:
        for strategy in given.strategies:
            print(row_of(name, strategy, given), flush=True)


if __name__ == "__main__":
    main()
