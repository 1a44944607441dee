"""The classical optimisers. Each sees the cost only through `evaluate`, so a recorded run can be replayed."""

import contextlib
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from qaoa_source.hyperparameters import Hyperparameters

Parameters = NDArray[np.float64]
Evaluate = Callable[[Parameters], tuple[float, Parameters]]

ADAM_DECAY = (0.9, 0.99)
ADAM_OFFSET = 1e-8


class IterationsSpentError(Exception):
    """Raised out of an optimiser that chooses for itself when to evaluate, once it has used its iterations."""


def gradient_descent(evaluate: Evaluate, start: Parameters, settings: Hyperparameters) -> Parameters:
    """The documented optimiser: each iteration steps by -stepsize times the gradient. Returns the last parameters."""
    parameters = start
    for _ in range(settings.num_iterations):
        _, gradient = evaluate(parameters)
        parameters = parameters - settings.stepsize * gradient
    return parameters


def adam(evaluate: Evaluate, start: Parameters, settings: Hyperparameters) -> Parameters:
    """Adam with PennyLane's defaults (decay 0.9 and 0.99). Returns the last parameters."""
    first_decay, second_decay = ADAM_DECAY
    parameters = start
    first = np.zeros_like(start)
    second = np.zeros_like(start)
    for iteration in range(1, settings.num_iterations + 1):
        _, gradient = evaluate(parameters)
        first = first_decay * first + (1 - first_decay) * gradient
        second = second_decay * second + (1 - second_decay) * gradient**2
        rate = settings.stepsize * np.sqrt(1 - second_decay**iteration) / (1 - first_decay**iteration)
        parameters = parameters - rate * first / (np.sqrt(second) + ADAM_OFFSET)
    return parameters


def lbfgs(evaluate: Evaluate, start: Parameters, settings: Hyperparameters) -> Parameters:
    """SciPy's L-BFGS-B, which has a line search of its own and no use for stepsize.

    Ends at convergence or after num_iterations evaluations. Returns the parameters of the lowest cost seen.
    """
    from scipy.optimize import minimize  # noqa: PLC0415  (half a second that the other optimisers do without)

    best_cost, best = np.inf, start
    spent = 0

    def objective(flat: Parameters) -> tuple[float, Parameters]:
        nonlocal best_cost, best, spent
        if spent == settings.num_iterations:
            raise IterationsSpentError
        spent += 1
        parameters = flat.reshape(start.shape).copy()
        cost, gradient = evaluate(parameters)
        if cost < best_cost:
            best_cost, best = cost, parameters
        return cost, gradient.reshape(-1)

    limits = {"maxiter": settings.num_iterations, "maxfun": settings.num_iterations, "ftol": 1e-12, "gtol": 1e-8}
    with contextlib.suppress(IterationsSpentError):
        minimize(objective, start.reshape(-1), jac=True, method="L-BFGS-B", options=limits)
    return best


OPTIMIZERS: dict[str, Callable[[Evaluate, Parameters, Hyperparameters], Parameters]] = {
    "gradient-descent": gradient_descent,
    "adam": adam,
    "lbfgs": lbfgs,
}
