"""Results of optimisers as problems: Optuna studies, pymoo results, CVXPY models, registered as entry points."""
