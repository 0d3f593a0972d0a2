"""Simulated respondents, and runs that interview many of them."""

from tradeoff.simulation.respondents import KINDS, LinearRespondent, Respondent
from tradeoff.simulation.results import Results, Summary, read_results
from tradeoff.simulation.run import Population, Settings, interview_respondents, simulate

__all__ = [
    "KINDS",
    "LinearRespondent",
    "Population",
    "Respondent",
    "Results",
    "Settings",
    "Summary",
    "interview_respondents",
    "read_results",
    "simulate",
]
