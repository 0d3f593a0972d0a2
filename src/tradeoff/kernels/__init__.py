"""Compiled loops: arrays in, arrays out; the only compiled code of the package."""
