"""Errors of the posterior's samples, beside independent samples of the exact posterior, by Metropolis steps.

    python benchmarks/sampler.py [--interviews N] [--samples N]

Each interview has simulated answers to random pairs. The samples are updated after every answer, as `careful` does it. The
exact posterior is 300,000 draws from the prior weighted by their likelihood. Printed are root mean square errors of the means
and of the standard deviations of weights, divided by those of as many independent samples: 1 would be perfect.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time

import numpy as np

from tradeoff.evidence import Answer, Evidence
from tradeoff.model import Matrix, Option, Question
from tradeoff.simulation.respondents import LinearRespondent
from tradeoff.strategies.posterior import (
    SLIPS,
    DirichletMixture,
    reply_likelihood,
    sample_prior,
    update_samples,
)
from tradeoff.strategies.tuning import CAREFUL

SLIP = 0.1  # how often a reply is any other one
EXACT = 300_000
ANSWERS = 8
STEP_COUNTS = (1.0, 2.0, CAREFUL.steps, 6.0)


def interview(d: int, rng: np.random.Generator) -> Evidence:
    """Return the evidence of a simulated respondent who slips."""
    respondent = LinearRespondent(rng.dirichlet(np.ones(d)), precision=0.01)
    evidence = Evidence.none(np.arange(d))
    for number in range(ANSWERS):
        question = Question((Option(rng.random(d)), Option(rng.random(d))))
        reply = respondent(question)
        if rng.random() < SLIP:
            reply = question.replies[rng.integers(len(question.replies))]
        evidence = evidence.update(Answer(question, reply, number + 1))
    return evidence


def moments(weights: Matrix, chances: np.ndarray | None = None) -> np.ndarray:
    """Return the means and standard deviations of each weight."""
    mean = np.average(weights, axis=0, weights=chances)
    return np.concatenate([mean, np.sqrt(np.average((weights - mean) ** 2, axis=0, weights=chances))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--interviews", type=int, default=20)
    parser.add_argument("--samples", type=int, default=1000)
    options = parser.parse_args()
    print(f"{'k':>3} {'steps':>6} {'means':>7} {'spreads':>8} {'ms/answer':>10}")
    for d in (3, 5, 8):
        prior = DirichletMixture.default(d)
        errors = {steps: np.zeros(2) for steps in STEP_COUNTS}
        seconds = dict.fromkeys(STEP_COUNTS, 0.0)
        independent = np.zeros(2)
        for seed in range(options.interviews):
            rng = np.random.default_rng([d, seed])
            evidence = interview(d, rng)
            everybody = sample_prior(EXACT, SLIPS, prior, rng)
            chances = np.log(reply_likelihood(everybody, evidence)).sum(axis=1)
            chances = np.exp(chances - chances.max())
            chances /= chances.sum()
            exact = moments(everybody.weights, chances)
            picked = rng.choice(EXACT, options.samples, p=chances)
            independent += _squares(moments(everybody.weights[picked]) - exact)
            for steps in STEP_COUNTS:
                begin = time.process_time()
                samples = sample_prior(options.samples, SLIPS, prior, rng)
                for seen in range(ANSWERS):
                    known = evidence.first(seen + 1)
                    samples = update_samples(samples, known, seen, options.samples, SLIPS, prior, rng, steps)
                seconds[steps] += time.process_time() - begin
                errors[steps] += _squares(moments(samples.weights) - exact)
        for steps, error in errors.items():
            ratio = np.sqrt(error / independent)
            each = 1e3 * seconds[steps] / options.interviews / ANSWERS
            print(f"{d:3} {steps:6g} {ratio[0]:7.2f} {ratio[1]:8.2f} {each:10.1f}", flush=True)


def _squares(errors: np.ndarray) -> np.ndarray:
    """Return the mean squares of the errors of means, and of spreads."""
    means, spreads = np.split(errors, 2)
    return np.array([np.mean(means**2), np.mean(spreads**2)])


if __name__ == "__main__":
    main()
