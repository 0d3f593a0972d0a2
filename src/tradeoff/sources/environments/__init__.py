"""Environments of gymnasium and mo-gymnasium."""
