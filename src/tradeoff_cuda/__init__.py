"""A solver on a graphics card (CUDA through CuPy), registered in the entry point group ``tradeoff.solvers``."""
