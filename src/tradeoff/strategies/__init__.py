"""Elicitation strategies: generators that yield steps and receive replies; none knows what an MDP is."""

from tradeoff.strategies.careful import careful
from tradeoff.strategies.certified import certified
from tradeoff.strategies.paper import paper
from tradeoff.strategies.registry import AnyStrategy, StrategySpec, name_of, spec_of, start, strategy_names
from tradeoff.strategies.replay import Received, Step, Strategy

__all__ = [
    "AnyStrategy",
    "Received",
    "Step",
    "Strategy",
    "StrategySpec",
    "careful",
    "certified",
    "name_of",
    "paper",
    "spec_of",
    "start",
    "strategy_names",
]
