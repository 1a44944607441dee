"""The circuit is the published one, on every simulator, with its exact derivatives."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qml_source.circuit import rotations, weight_count
from tests.jobs.qml import oracle
from tests.jobs.qml.job_run import DEFAULT_QUBIT, LIGHTNING, NEEDS_TORCH

torch = pytest.importorskip("torch", reason=NEEDS_TORCH)

from qml_source.execution import open_execution  # noqa: E402 - needs torch
from qml_source.hyperparameters import Hyperparameters  # noqa: E402
from qml_source.model import seeded_model  # noqa: E402
from qml_source.simulators import parse_device  # noqa: E402

WIRES = [2, 4, 5, 6, 7]


def execution(device: str, nwires: int) -> Any:
    return open_execution(parse_device(device), Hyperparameters(nwires=nwires))[0]


def random_parameters(nwires: int, batch: int, seed: int) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    angles = torch.tensor(generator.uniform(-np.pi, np.pi, (batch, nwires)), requires_grad=True)
    weights = torch.tensor(generator.uniform(0, 2 * np.pi, weight_count(nwires)), requires_grad=True)
    return angles, weights


@pytest.mark.parametrize("device", [DEFAULT_QUBIT, LIGHTNING])
@settings(max_examples=12, deadline=None)
@given(nwires=st.sampled_from(WIRES), batch=st.integers(1, 3), seed=st.integers(0, 10**6))
def test_values_are_those_of_dense_matrices(device: str, nwires: int, batch: int, seed: int) -> None:
    angles, weights = random_parameters(nwires, batch, seed)
    values = execution(device, nwires)(angles, weights)
    expected = [oracle.value(these, weights.detach().numpy()) for these in angles.detach().numpy()]
    assert values.shape == (batch,)
    assert values.detach().numpy() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("device", [DEFAULT_QUBIT, LIGHTNING])
@pytest.mark.parametrize("nwires", [2, 4])
def test_derivatives_are_central_differences(device: str, nwires: int) -> None:
    angles, weights = random_parameters(nwires, 1, seed=nwires)
    execution(device, nwires)(angles, weights).sum().backward()
    point = np.concatenate([angles.detach().numpy()[0], weights.detach().numpy()])

    def value(parameters: Any) -> float:
        return oracle.value(parameters[:nwires], parameters[nwires:])

    step = 1e-5
    differences = [
        (value(point + step * axis) - value(point - step * axis)) / (2 * step) for axis in np.eye(len(point))
    ]
    computed = torch.cat([angles.grad[0], weights.grad]).numpy()
    assert computed == pytest.approx(differences, abs=1e-8)


def test_simulators_agree_at_ten_qubits() -> None:
    found = []
    for device in (DEFAULT_QUBIT, LIGHTNING):
        angles, weights = random_parameters(10, 3, seed=1)
        values = execution(device, 10)(angles, weights)
        (values * torch.tensor([1.0, -2.0, 0.5])).sum().backward()
        found.append((values.detach(), angles.grad, weights.grad))
    for first, second in zip(*found, strict=True):
        torch.testing.assert_close(first, second, rtol=0, atol=1e-12)


@pytest.mark.parametrize("nwires", [2, 4, 6, 9, 10, 26])
def test_each_weight_belongs_to_one_rotation(nwires: int) -> None:
    parts = rotations(nwires)
    assert [part.first for part in parts] == list(range(0, weight_count(nwires), 3))
    assert weight_count(nwires) == 12 * nwires + 3


@pytest.mark.parametrize("device", [DEFAULT_QUBIT, LIGHTNING])
def test_model_has_the_published_number_of_parameters_and_none_is_unused(device: str) -> None:
    for nwires in (4, 6):
        model = seeded_model(3, features=60, nwires=nwires, device=device)
        assert sum(parameter.numel() for parameter in model.parameters()) == 73 * nwires + 5
        model(torch.rand(2, 60, dtype=torch.float64)).sum().backward()
        assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("device", [DEFAULT_QUBIT, LIGHTNING])
def test_a_batch_of_one_sample_has_one_output(device: str) -> None:
    model = seeded_model(3, features=5, nwires=4, device=device)
    features = torch.rand(3, 5, dtype=torch.float64)
    assert model(features[:1]).shape == (1,)
    torch.testing.assert_close(model(features)[:1], model(features[:1]))


def test_outputs_do_not_depend_on_how_a_batch_is_divided() -> None:
    model = seeded_model(3, features=5, nwires=4)
    features = torch.rand(7, 5, dtype=torch.float64)
    _, whole = model.classify(features)
    model.execution.largest_batch = 2
    _, parts = model.classify(features)
    torch.testing.assert_close(whole, parts, rtol=0, atol=1e-14)


def test_initial_weights_follow_from_the_seed_alone() -> None:
    first = seeded_model(3, features=5, nwires=4).state_dict()
    torch.rand(10)
    second = seeded_model(3, features=5, nwires=4).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["rotation"], seeded_model(4, features=5, nwires=4).state_dict()["rotation"])
