"""The golden interviews ask the same questions, no certificate is exceeded, and the logs of earlier versions are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.golden.interviews.check import check_certificate, standing
from tests.golden.interviews.conduct import problem_of, read, record, specs, summary
from tradeoff import Interview

HERE = Path(__file__).parent
RECORDED, OLD = read(HERE / "interviews-0.4.jsonl.gz"), read(HERE / "interviews-0.3.jsonl.gz")
SPECS = list(specs())
PARTS = 20  # a test each, so that they run on all cores


def same(one: object, other: object) -> bool:
    """Return whether two values of a log agree in the digits that every machine agrees on."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return bool(np.isclose(one, other, rtol=0, atol=1e-9))
    return one == other


@pytest.mark.parametrize("part", range(PARTS))
def test_the_same_questions_are_asked(part: int) -> None:
    for spec, recorded in list(zip(SPECS, RECORDED, strict=True))[part::PARTS]:
        now = record(spec)
        assert same(now["log"][1:], recorded["log"][1:]), spec
        assert same(now["came to"], recorded["came to"]), spec


@pytest.mark.parametrize("part", range(PARTS))
def test_no_certificate_is_exceeded_and_every_log_is_resumed(part: int) -> None:
    for spec, recorded in list(zip(SPECS, RECORDED, strict=True))[part::PARTS]:
        problem = problem_of(spec.problem)
        check_certificate(problem, recorded["log"], recorded["came to"])
        assert same(summary(Interview.resume(problem, recorded["log"])), recorded["came to"]), spec


@pytest.mark.parametrize("part", range(PARTS))
def test_every_answer_of_an_earlier_version_counts(part: int) -> None:
    for spec, recorded in list(zip(SPECS, OLD, strict=True))[part::PARTS]:
        problem = problem_of(spec.problem)
        interview = Interview.resume(problem, recorded["log"])
        now = summary(interview)
        answered = {answer.number for answer in interview.answers if answer.reply.word != "skip"}
        check_certificate(problem, interview.log, now)
        if spec.options["strategy"] == "paper":  # which asks what it asked then, and uses what it asks
            assert same(now, recorded["came to"]), spec
        else:
            assert answered == set(standing(recorded["log"])), spec
