"""A logistic regression on the same samples, so that nobody credits a circuit for what a straight line tells apart."""

import numpy as np

from qml_source.data import Matrix, Split

PENALTY = 1.0
_MOST_STEPS = 100


def logistic_regression(features: Matrix, targets: Matrix, penalty: float = PENALTY) -> Matrix:
    """Weights of shape (features + 1,), the intercept last and free of the penalty, for targets +1 and -1.

    Minimises sum_i log(1 + exp(-y_i f_i)) + penalty / 2 |w|^2 by Newton's method, to a gradient below 1e-9.
    """
    inputs = np.column_stack([features, np.ones(len(features))])
    ridge = np.full(inputs.shape[1], penalty)
    ridge[-1] = 1e-9  # only so that separable samples have a finite solution
    weights = np.zeros(inputs.shape[1])

    def objective(candidate: Matrix) -> float:
        return float(np.logaddexp(0, -targets * (inputs @ candidate)).sum() + ridge @ candidate**2 / 2)

    for _ in range(_MOST_STEPS):
        wrong = 0.5 * (1 - np.tanh(targets * (inputs @ weights) / 2))
        gradient = -inputs.T @ (targets * wrong) + ridge * weights
        if np.abs(gradient).max() < 1e-9:
            break
        curvature = (inputs * (wrong * (1 - wrong))[:, None]).T @ inputs + np.diag(ridge)
        step = np.linalg.solve(curvature, gradient)
        size = 1.0
        while objective(weights - size * step) > objective(weights) and size > 1e-8:
            size /= 2
        weights = weights - size * step
    return weights


def held_out_accuracy(split: Split) -> float | None:
    """The share of held-out samples that a logistic regression of the training samples tells right."""
    if not len(split.held_out):
        return None
    weights = logistic_regression(split.training.features, split.training.targets)
    outputs = split.held_out.features @ weights[:-1] + weights[-1]
    return float(((outputs >= 0) == (split.held_out.targets > 0)).mean())
