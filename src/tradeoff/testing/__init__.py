"""Checks for those who bring a problem, a strategy or a store of their own; they need no test framework."""
