"""Do the statements hold? How often each kind was exceeded for simulated people, as a table in Markdown.

    python benchmarks/calibration.py --people 25

Every row is one kind of person (the smallest difference they notice, how many of their answers are wrong), asked by
``careful`` about all of the bundled problems below.
"""

from __future__ import annotations

import argparse
import itertools
import time

import numpy as np

import tradeoff
from tradeoff.simulation.results import Results, exceeded_statements
from tradeoff.simulation.run import Settings, interview_respondents

PROBLEMS = ("commute", "portfolio", "vacuum", "coffee")
PRECISION = (0.01, 0.05, 0.1, 0.2)
WRONG = (0.0, 0.05, 0.1, 0.2)
KINDS = ("very likely", "reason", "proved", "proved with one slip")


def line(label: str, parts: list[tuple[Settings, Results]]) -> str:
    """Return a row of the table: how many of a hundred statements were exceeded, and the means of what was lost."""
    counts = [exceeded_statements(rows, settings.precision) for settings, rows in parts]
    cells = []
    for kind in KINDS:
        made = sum(found[kind].stated for found in counts if kind in found)
        exceeded = sum(found[kind].exceeded for found in counts if kind in found)
        cells.append(f"{100 * exceeded / made:.1f}" if made else "")
    people = sum(len(rows) for _, rows in parts)
    stated = np.concatenate([rows.likely_regret for _, rows in parts]).mean()
    lost = np.concatenate([rows.regret for _, rows in parts]).mean()
    within = np.median(np.concatenate([rows.likely_worst for _, rows in parts]))
    asked = np.concatenate([rows.questions for _, rows in parts]).mean()
    average = f"{100 * stated:.1f} / {100 * lost:.1f}"
    return f"| {label} | {people} | {asked:.1f} | {100 * within:.0f} | {' | '.join(cells)} | {average} |"


def main() -> None:
    """Print the table."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--people", type=int, default=25, help="simulated people per problem and kind of person")
    reader.add_argument("--seed", type=int, default=1)
    given = reader.parse_args()
    begin = time.process_time()
    runs: list[tuple[str, Settings, Results]] = []
    for name in PROBLEMS:
        problem = tradeoff.load(name)
        for precision, wrong in itertools.product(PRECISION, WRONG):
            settings = Settings(precision, "careful", wrong, given.seed)
            runs.append((name, settings, interview_respondents(problem, range(given.people), settings)))
    print(
        "| people | number | questions | “very likely within”, median | very likely | reason | proved | with one slip |",
        end="",
    )
    print(" average stated / lost |\n|---" + "|---:" * 8 + "|")
    for precision, wrong in itertools.product(PRECISION, WRONG):
        parts = [(s, rows) for _, s, rows in runs if (s.precision, s.error_rate) == (precision, wrong)]
        print(line(f"notice {100 * precision:g}%, {100 * wrong:g}% wrong", parts))
    for name in PROBLEMS:
        print(line(f"all, {name}", [(s, rows) for found, s, rows in runs if found == name]))
    print(f"\n{time.process_time() - begin:.0f} s of processor time.")


if __name__ == "__main__":
    main()
