"""Law 3 on another machine: a log asks the same questions whatever order the library for matrix products adds up in."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tests import processes

ROOT = Path(__file__).parents[2]

# In an earlier version, which decided by matrix products, all of these failed under Prescott.
INTERVIEWS = """
import json, sys
import numpy as np
from tradeoff import Catalogue, Interview, LinearRespondent

def catalogue(seed):
    rng = np.random.default_rng([15, seed])
    values = np.abs(rng.normal(size=(80, 3 + seed % 5)))
    values /= np.sqrt(np.add.reduce(values**2, axis=1, keepdims=True))
    found = Catalogue(values.tolist())
    return found, LinearRespondent.scaled(found, rng.dirichlet(np.ones(values.shape[1])), precision=0.01)

def said(interview):
    found = interview.recommendation
    return found.option.plan.name, found.questions, str(found.reason), found.regret_bound

for questions, seeds in {"pairs": [2, 3, 13, 24], "best-worst-4": [13, 22]}.items():
    for seed in seeds:
        problem, person = catalogue(seed)
        interview = Interview(problem, "certified", questions=questions)
        while question := interview.ask():
            interview.tell(person(question))
        values = [event.get("options") for event in interview.log[1:]]
        print(json.dumps([questions, seed, values, said(interview)]))
"""


def interviews(core: str) -> list[object]:
    """Return what is asked and recommended where OpenBLAS computes as on this kind of processor."""
    environment = os.environ | {"OPENBLAS_CORETYPE": core, "PYTHONPATH": str(ROOT / "src")}
    done = processes.run([sys.executable, "-c", INTERVIEWS], env=environment)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_two_kinds_of_processor_ask_the_same() -> None:
    here, there = interviews("Haswell"), interviews("Prescott")
    assert len(here) == 6
    assert here == there
