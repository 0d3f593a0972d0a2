"""Read the models of probabilistic model checkers."""
