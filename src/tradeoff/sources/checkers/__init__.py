"""Models of model checkers."""
