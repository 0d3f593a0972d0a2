"""Compiled loops: arrays in, arrays out. This is the only compiled code in tradeoff."""
