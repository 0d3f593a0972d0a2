"""How much more an interview costs if limits are put on the expected outcomes of an MDP.

    python benchmarks/limited.py [--questions N] [--repeats N]

CPU seconds of the same number of questions without and with each limit, and their ratio; at most 3 is wanted.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np

from tradeoff import Interview, LinearRespondent, load
from tradeoff.problem import ScaledProblem

LIMITS = {
    "commute": ("time <= 60", "money <= 25", "time = 68", "time <= 60; comfort >= 0; money <= 40"),
    "portfolio": ("losses <= 300", "fees = 100"),
    "vacuum": ("noise <= 30", "dirt >= 20; energy <= 35"),
}


def cpu_seconds(name: str, limit: str, questions: int) -> float:
    """Return the CPU seconds to put limits on a problem, ask so many questions and recommend."""
    problem: ScaledProblem = load(name)
    begun = time.process_time()
    if limit:
        problem = problem.limited(limit)
    interview = Interview(problem)
    user = LinearRespondent(np.linspace(1, 2, len(problem.objectives)), precision=0.001)
    for _ in range(questions):
        if (question := interview.ask()) is None:
            break
        interview.tell(user(question))
    _ = interview.recommendation
    return time.process_time() - begun


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=3, help="the least of so many is printed")
    given = parser.parse_args(arguments)
    print(f"{'problem':<10}{'limits':<42}{'free, s':>9}{'limited, s':>12}{'ratio':>8}")
    for name, limits in LIMITS.items():
        cpu_seconds(name, "", given.questions)  # loads compiled kernels
        for limit in limits:
            pairs = [[cpu_seconds(name, one, given.questions) for one in ("", limit)] for _ in range(given.repeats)]
            free, limited = np.min(pairs, axis=0)
            print(f"{name:<10}{limit:<42}{free:>9.2f}{limited:>12.2f}{limited / free:>8.1f}", flush=True)


if __name__ == "__main__":
    main()
