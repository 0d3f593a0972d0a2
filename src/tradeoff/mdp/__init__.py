"""Markov decision processes: models, solvers, and policies as a few weighted trajectories."""
