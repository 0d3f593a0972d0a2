"""Checks that implementers of problems, strategies and stores can run against their own code."""
