"""Hyperparameters are strings; every bad one is named before any work."""

import pytest

from qml_source.hyperparameters import HyperparameterError, Hyperparameters, check_workers, parse_hyperparameters


def test_documented_defaults() -> None:
    settings = parse_hyperparameters({})
    assert (settings.nwires, settings.ndata, settings.batch_size, settings.epochs) == (10, 64, 64, 5)
    assert (settings.gamma, settings.lr, settings.seed) == (0.99, 0.1, 42)


def test_values_arrive_as_strings_and_the_containers_own_are_passed_over() -> None:
    settings = parse_hyperparameters(
        {"nwires": "26", "ndata": "all", "lr": "1e-2", "sagemaker_distributed_dataparallel_enabled": "true"}
    )
    assert settings == Hyperparameters(nwires=26, ndata=None, lr=0.01)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("nwires", "3", "couples wires 3 apart, on 3 wires each with itself; give 2, or 4 or more"),
        ("nwires", "1", "whole number from 2"),
        ("ndata", "0", "number of samples to train on, or all"),
        ("batch_size", "1.5", "whole number"),
        ("gamma", "0", "above 0, at most 1"),
        ("lr", "nan", "positive number"),
        ("lr", "inf", "positive number"),
        ("held_out", "1", "share from 0 to less than 1"),
        ("scaling", "minmax", "none, standard"),
        ("backend", "mpi", "auto, gloo, nccl, smddp"),
        ("workers_per_host", "0", "whole number from 1"),
        ("copy_checkpoints_from_job", " ", "name of a job"),
        ("epoch", "5", "unknown, did you mean epochs?"),
    ],
)
def test_each_bad_value_is_named_with_a_remedy(name: str, value: str, message: str) -> None:
    with pytest.raises(HyperparameterError) as error:
        parse_hyperparameters({name: value})
    assert name in str(error.value)
    assert message in str(error.value)


def test_all_bad_values_are_named_at_once() -> None:
    with pytest.raises(HyperparameterError, match=r"2 invalid hyperparameters: lr .*; seed "):
        parse_hyperparameters({"lr": "-1", "seed": "-1"})


def test_more_workers_than_samples_in_a_batch_are_refused() -> None:
    check_workers(Hyperparameters(batch_size=4), 4)
    with pytest.raises(HyperparameterError, match="batch_size = 4 is shared by 5 workers, of which 1 would idle"):
        check_workers(Hyperparameters(batch_size=4), 5)
