"""The constants of ``careful`` and ``certified``, one frozen value for each strategy.

``python tools/tune.py GROUP`` prints, for every field of a group, what other values would have cost training respondents; the
comments name the group or another script. The tables of the documentation use other respondents (other seeds). Tolerances for
rounding are no tuning: they stay where they are used.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """What both strategies share."""

    # Posterior: tools/tune.py posterior; errors of the samples: benchmarks/sampler.py
    samples: int = 300  # of the posterior
    steps: float = 3.0  # Metropolis steps per coordinate after the newest answer
    # Samples whose optimum is solved for after every answer: rays alone miss what is best in the middle.
    optima: int = 24
    # Cells across the posterior to which these samples are rounded, so that similar respondents share optima.
    optima_grid: int = 16
    # Candidate questions: tools/tune.py questions
    challengers: int = 5  # worst-case rivals of the recommendation that questions are made of,
    favourites: int = 10  # and options that are best for the most samples
    challenger_rays: int = 400  # rays of largest regret among which challengers are sought
    compromises: int = 10  # options of least mean regret that may be recommended after a reply
    menu_contenders: int = 10  # contenders that menus are made of: 210 menus of four
    alike: float = 0.1  # of the target: options that differ by less for every sample are not worth a question
    # Limits of the work: benchmarks/questions.py needs less than half as many questions in any row
    max_questions_per_objective: int = 6
    max_rays: int = 20_000  # of the cone: the problem is solved once for every ray
    # Statements: benchmarks/people.py
    # The share of samples that makes something "very likely", which may be wrong for 1 respondent in 20. Samples are few and
    # models wrong, so the share is larger than 0.95.
    very_likely: float = 0.98
    # The share of samples in a stated interval of importance (benchmarks/people.py --importance),
    credible: float = 0.95
    min_samples: int = 40  # if at least so many samples fit the statements of the respondent
    # An importance of less than the first number to more than the second was hardly narrowed down.
    wide_importance: tuple[float, float] = (0.02, 0.3)
    # A runner-up differs by at least this part of some objective's range: nearly the same option would tell nothing.
    different: float = 0.02


@dataclass(frozen=True)
class CarefulTuning(Tuning):
    """When ``careful`` stops, which answers it trusts and what it asks."""

    # When to stop: tools/tune.py stop
    confidence: float = 0.93  # the share of the posterior that must be satisfied with the recommendation,
    patience: int = 2  # as many times in a row, the last time after a question that could have changed it;
    overwhelming: float = 0.98  # this share is enough at once
    # The interview ends after this many questions at the latest, per objective and per bit that is open at the beginning: 1.5
    # times what respondents without noise need. A menu counts for several pairs.
    enough_per_objective: float = 1.5
    enough_per_bit: float = 3.0
    menus_per_pair: float = 0.55
    # Which answers to trust: tools/tune.py trust
    doubtful: float = 0.6  # an answer more likely wrong than this is not used by the certificate
    questionable: float = 0.15  # one more likely wrong than this may be asked again, the other way round
    repeated: float = 0.03  # and one more likely wrong than this, if a question is to confirm the recommendation
    # Nats by which random replies must explain the answers better, so that no weights are said to fit.
    misfit: float = 1.0
    misfit_answers: int = 3  # with fewer, nobody is told that no weights fit
    # What to ask: tools/tune.py questions
    nearly: float = 0.9  # among questions worth nearly as much as the best, an easy one is asked,
    poor: float = 0.03  # unless the expected regret is still larger than this
    worthless: float = 0.01  # bits: nothing is left to learn
    any_information: float = 0.3  # the value of a bit about the respondent, relative to one about the recommendation
    value: float = 30.0  # the value in bits of a recommendation that is better by all of the best possible gain
    tie_break: float = 1e-3  # the value of a bit if a question is to confirm the recommendation
    # Work: tools/tune.py posterior
    final_optima: int = 100  # samples whose optimum is solved for before the interview may end
    prior_samples: int = 1_200  # before the first question; all their optima are solved for, and respondents share them
    robust_rays: int = 40_000  # that all answers share for the bound with one more wrong
    # Statements: benchmarks/people.py
    very_likely_if_open: float = 0.99  # replaces very_likely while the posterior is not satisfied
    chebyshev_share: float = 0.02  # of all respondents who judge options by their worst objective
    chebyshev_samples: int = 20_000  # with fewer the share is off by a factor of 2 now and then
    # Questions to come, this one included: a line in the bits that are open about which recommendation is good enough. Fitted
    # with `benchmarks/people.py --check` so that the mean error is 0.
    left_pairs: tuple[float, float] = (0.3, 5.3)
    left_menus: tuple[float, float] = (0.5, 3.1)


@dataclass(frozen=True)
class CertifiedTuning(Tuning):
    """How ``certified`` chooses questions, so that few are needed: tools/tune.py proof."""

    steps: float = 1.5  # samples only guide the questions here
    look_ahead: int = 10  # pairs per criterion whose replies are followed,
    look_ahead_menus: int = 4  # and menus, which have more replies each,
    look_ahead_rays: int = 15_000  # fewer of them, but at least one, if the rays of all would be more than this
    useful: float = 0.03  # bits: a question that tells less than this is of no use,
    cuts: float = 0.02  # unless it is expected to cut off more than this share of the excess regret
    nearly: float = 0.98  # answers are exact here, so almost no information is traded for an easier question
    wide: int = 30  # candidates to fall back on when the contenders give no useful question
    recommendations: int = 4  # candidates for the recommendation after a reply that is followed
    margin: float = 0.8  # of the target: regret below this counts as proved
    stall: int = 2  # answers "about equal" in a row after which another answer is sought
    stall_penalty: float = 0.5  # for a question that will surely be answered "about equal" then
    unlikely: float = 0.05  # replies rarer than this are not followed
    information: float = 0.2  # the value of a bit about the recommendation, relative to all of the proof
    any_information: float = 0.3  # the value of a bit about the respondent, relative to one about the recommendation,
    any_in_cuts: float = 0.1  # to all of the excess regret,
    any_in_proof: float = 0.05  # and to all of the proof


CAREFUL, CERTIFIED = CarefulTuning(), CertifiedTuning()
