"""The contraction simulator trains the same model, also with more qubits than a state vector can hold."""

import pytest

from tests.jobs.qml.conftest import RunSingle
from tests.jobs.qml.job_run import LIGHTNING, NEEDS_TORCH

torch = pytest.importorskip("torch", reason=NEEDS_TORCH)
pytest.importorskip("numba", reason="numba is not installed in this environment, and the contraction runs on it")

from qml_source.circuit import weight_count  # noqa: E402 - needs torch
from qml_source.execution import open_execution  # noqa: E402
from qml_source.hyperparameters import Hyperparameters  # noqa: E402
from qml_source.simulators import CONTRACTION, parse_device  # noqa: E402


@pytest.mark.parametrize("nwires", [4, 6, 9])
@pytest.mark.parametrize("batch", [1, 3])
def test_values_and_derivatives_are_lightnings(nwires: int, batch: int) -> None:
    generator = torch.Generator().manual_seed(nwires)
    found = []
    angles = 6 * torch.rand(batch, nwires, dtype=torch.float64, generator=generator) - 3
    weights = 6 * torch.rand(weight_count(nwires), dtype=torch.float64, generator=generator)
    factors = torch.rand(batch, dtype=torch.float64, generator=generator)
    for device in (CONTRACTION, LIGHTNING):
        these = [angles.clone().requires_grad_(), weights.clone().requires_grad_()]
        values = open_execution(parse_device(device), Hyperparameters(nwires=nwires))[0](*these)
        (values * factors).sum().backward()
        found.append([values.detach(), these[0].grad, these[1].grad])
    for contracted, expected in zip(*found, strict=True):
        torch.testing.assert_close(contracted, expected, rtol=0, atol=1e-10)


def test_training_is_the_same_as_on_a_state_vector(run_single: RunSingle) -> None:
    contracted = run_single(device=CONTRACTION, ndata="35", batch_size="9")
    simulated = run_single(device=LIGHTNING, ndata="35", batch_size="9", name="b")
    for name in ("training_loss", "held_out_loss", "held_out_accuracy"):
        assert contracted[name] == pytest.approx(simulated[name], abs=1e-8)
    assert contracted["device_name"] == "hybridjobs.contraction"


def test_documented_qubits_fit_where_their_state_vector_does_not(run_single: RunSingle) -> None:
    result = run_single(device=CONTRACTION, nwires="40", ndata="16", epochs="1", held_out="0")
    assert result["parameters"] == 73 * 40 + 5
    assert result["peak_memory_megabytes"] < 3000
