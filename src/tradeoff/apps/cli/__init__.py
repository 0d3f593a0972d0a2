"""The ``tradeoff`` command."""
