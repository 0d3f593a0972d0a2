"""CPU seconds from nothing to the second question, in a fresh process with an empty cache of compiled code.

    python benchmarks/startup.py [--respondents N]

One row per bundled problem and solver: what a person waits for after installing. "per question" is the mean CPU time of the
questions of six simulated respondents after that, with the options drawn.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
SOLVERS = ("default", "numpy", "compiled")


def measure(name: str, solver: str, respondents: int) -> None:
    """Print the figures of one problem as JSON; called in the fresh process."""
    import numpy as np

    import tradeoff
    from tradeoff.mdp.model import MDP

    problem = tradeoff.load(name)
    if isinstance(problem, MDP) and solver != "default":
        if solver == "numpy":
            from tradeoff.mdp.textbook import TextbookSolver

            problem = problem.replace(solver=TextbookSolver())
        else:
            from tradeoff.mdp.compiled import CompiledSolver

            problem = problem.replace(solver=CompiledSolver(threads=1))
    to_second, count, begin = 0.0, 0, 0.0
    for seed in range(respondents):
        weights = np.random.default_rng(seed).dirichlet(np.ones(len(problem.objectives)))
        respondent = tradeoff.LinearRespondent(weights, precision=0.01)
        interview = tradeoff.Interview(problem)
        while question := interview.ask():
            for option in question.options:
                problem.show(option)
            interview.tell(respondent(question))
            count += 1
            if count == 2:
                to_second = begin = time.process_time()
    each = (time.process_time() - begin) / max(1, count - 2)
    print(json.dumps({"first": to_second, "each": each, "numba": "numba" in sys.modules}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--respondents", type=int, default=6, help="simulated respondents of each row")
    parser.add_argument("--measure", nargs=2, metavar=("PROBLEM", "SOLVER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        name, solver = options.measure
        measure(name, solver, options.respondents)
        return
    import tradeoff
    from tradeoff.mdp.model import MDP

    print(f"{'problem':12} {'solver':9} {'to the second question':>23} {'per question':>13}  numba")
    for name in tradeoff.examples():
        for solver in SOLVERS if isinstance(tradeoff.load(name), MDP) else SOLVERS[:1]:
            with tempfile.TemporaryDirectory() as folder:
                command = [
                    sys.executable,
                    __file__,
                    "--respondents",
                    str(options.respondents),
                    "--measure",
                    name,
                    solver,
                ]
                done = subprocess.run(
                    command,
                    env=os.environ | THREADS | {"NUMBA_CACHE_DIR": folder},
                    capture_output=True,
                    text=True,
                    check=True,
                )
            row = json.loads(done.stdout)
            used = "yes" if row["numba"] else "no"
            print(f"{name:12} {solver:9} {row['first']:21.2f} s {1e3 * row['each']:10.0f} ms  {used}", flush=True)


if __name__ == "__main__":
    main()
