"""Every invalid hyperparameter is refused before any work, all of them in one error."""

import numpy as np
import pytest

from qaoa_source.hyperparameters import HyperparameterError, Hyperparameters, parse_hyperparameters


def test_documented_hyperparameters_are_understood() -> None:
    given = {
        "p": "2", "seed": "1967", "max_parallel": "10", "num_iterations": "5", "stepsize": "0.1", "shots": "1000",
        "interface": "autograd", "parametrize_differentiable": "True", "diff_method": "parameter-shift",
        "sagemaker_program": "x",
    }  # fmt: skip
    assert parse_hyperparameters(given) == Hyperparameters(
        shots=1000, interface="autograd", diff_method="parameter-shift"
    )


def test_no_hyperparameters_means_exact_adjoint() -> None:
    settings = parse_hyperparameters({})
    assert (settings.shots, settings.diff_method, settings.reduction) == (None, "adjoint", "none")


def test_start_is_the_documented_one() -> None:
    np.random.seed(1967)
    np.testing.assert_array_equal(Hyperparameters(p=2, seed=1967).start(), 0.01 * np.random.uniform(size=(2, 2)))
    given = parse_hyperparameters({"p": "1", "initial_parameters": "[[0.5], [0.25]]"})
    np.testing.assert_array_equal(given.start(), [[0.5], [0.25]])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"p": "0"}, "p = '0': give a whole number from 1"),
        ({"p": "two"}, "p = 'two'"),
        ({"seed": "-1"}, "seed = '-1'"),
        ({"num_iterations": "0"}, "num_iterations = '0'"),
        ({"stepsize": "0"}, "stepsize = '0': give a positive number"),
        ({"stepsize": "nan"}, "stepsize = 'nan'"),
        ({"shots": "-5"}, "shots = '-5'"),
        ({"shots": "1000"}, "diff_method = 'adjoint' needs exact expectation values but shots = 1000"),
        ({"shots": "9", "diff_method": "parameter-shift", "optimizer": "lbfgs"}, "'lbfgs' needs exact gradients"),
        ({"interface": "tf"}, "this job has no TensorFlow interface; give one of auto, autograd, torch"),
        ({"interface": "jax"}, "interface = 'jax': give one of auto, autograd, torch"),
        ({"diff_method": "best"}, "diff_method = 'best': give one of adjoint"),
        ({"diff_method": "backprop"}, "'backprop' needs interface = autograd or torch"),
        ({"reduction": "magic"}, "reduction = 'magic'"),
        ({"optimizer": "sgd"}, "optimizer = 'sgd'"),
        ({"precision": "half"}, "precision = 'half'"),
        ({"initial_parameters": "[[0.1, 0.2]]"}, "initial_parameters"),
        ({"initial_parameters": "[[0.1], [0.2]]"}, "has 1 gammas and betas but p = 2"),
        ({"initial_parameters": "[[0.1, NaN], [0.2, 0.3]]"}, "finite numbers"),
        ({"num_nodes": "5"}, "give both or neither"),
        ({"num_nodes": "5", "num_edges": "11"}, "num_edges = 11: 5 nodes have at most 10 edges"),
        ({"cut_samples": "0"}, "cut_samples = '0'"),
        ({"copy_checkpoints_from_job": " "}, "copy_checkpoints_from_job"),
        ({"max_parallel": "x"}, "max_parallel = 'x'"),
        ({"parametrize_differentiable": "maybe"}, "give true or false"),
        ({"num_iteration": "5"}, "num_iteration is unknown, did you mean num_iterations?"),
    ],
)
def test_invalid_value_is_named_with_its_remedy(given: dict[str, str], message: str) -> None:
    with pytest.raises(HyperparameterError) as error:
        parse_hyperparameters(given)
    assert message in str(error.value)


def test_one_error_names_all() -> None:
    with pytest.raises(HyperparameterError, match="3 invalid hyperparameters") as error:
        parse_hyperparameters({"p": "x", "stepsize": "-1", "colour": "red"})
    assert len(error.value.problems) == 3
