"""One training step on the Sonar data: as the published example writes it, and as the job does it."""

# ruff: noqa: PLC0415 - the memory of a worker shall hold only what it measures

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from interleaved import Iterate

SONAR = Path(__file__).resolve().parent.parent / "job_sources" / "qml_source" / "inputs" / "sonar.all-data"
SEED = 42
STILL = 1e-12  # the step is made, and the next one starts from where this one did


def samples(batch: int) -> tuple[Any, Any]:
    """Features and targets of the first `batch` samples of a permutation."""
    from qml_source.data import read_samples, split

    chosen = split(read_samples(SONAR), seed=SEED, ndata=batch, held_out=0).training
    return chosen.features, chosen.targets


def flat_gradient(parameters: Sequence[Any]) -> list[float]:
    """All derivatives in one list."""
    return [derivative for parameter in parameters for derivative in parameter.grad.reshape(-1).tolist()]


def example(qubits: int, batch: int) -> Iterate:
    """The published example's logic, with the job's initial weights."""
    import pennylane as qml
    import torch

    from qml_source.model import seeded_model

    device = qml.device("lightning.qubit", wires=qubits)

    def controlled_rotation(angles: Any, wires: Sequence[int]) -> None:
        phi, theta, omega = angles
        target = wires[1]
        qml.RZ((phi - omega) / 2, wires=target)
        qml.CNOT(wires=wires)
        qml.RZ(-(phi + omega) / 2, wires=target)
        qml.RY(-theta / 2, wires=target)
        qml.CNOT(wires=wires)
        qml.RY(theta / 2, wires=target)
        qml.RZ(omega, wires=target)

    def entangle(weights: Any, reach: int) -> None:
        for wire in range(qubits):
            qml.Rot(*weights[0][wire], wires=wire)
        control = 0
        for step in range(qubits):
            target = (control - reach) % qubits
            controlled_rotation(weights[1][step], (control, target))
            control = target

    def circuit(inputs: Any, first: Any, second: Any, rotation: Any) -> Any:
        qml.AngleEmbedding(inputs, wires=range(qubits))
        entangle(first, 1)
        entangle(second, 3)
        qml.Rot(*rotation, wires=0)
        return qml.expval(qml.PauliZ(0))

    node = qml.QNode(circuit, device, interface="torch", diff_method="adjoint")
    shapes = {"first": (2, qubits, 3), "second": (2, qubits, 3), "rotation": (3,)}
    quantum = qml.qnn.TorchLayer(node, shapes).double()
    ours = seeded_model(SEED, features=60, nwires=qubits)
    with torch.no_grad():
        quantum.first.copy_(ours.entangling[0])
        quantum.second.copy_(ours.entangling[1])
        quantum.rotation.copy_(ours.rotation)
    parameters = [*ours.encode.parameters(), *quantum.parameters(), *ours.decode.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=STILL)
    loss_function = torch.nn.MarginRankingLoss(margin=0.1)
    features, targets = map(torch.as_tensor, samples(batch))

    def iterate() -> list[float]:
        optimizer.zero_grad()
        angles = 2 * math.pi * (torch.sigmoid(ours.encode(features)) - 0.5)
        outputs = ours.decode(quantum(angles).reshape(-1, 1)).reshape(-1)
        loss = loss_function(outputs, torch.zeros_like(outputs), targets)
        loss.backward()
        optimizer.step()
        trained = [quantum.first, quantum.second, quantum.rotation]
        return [float(loss.detach()), *flat_gradient([*ours.encode.parameters(), *trained, *ours.decode.parameters()])]

    return iterate


def job(device: str, qubits: int, batch: int) -> Iterate:
    """The job's own step."""
    import torch

    from qml_source.batches import Batch
    from qml_source.execution import open_execution
    from qml_source.hyperparameters import Hyperparameters
    from qml_source.loop import Trainer
    from qml_source.model import seeded_model
    from qml_source.ranks import Alone
    from qml_source.simulators import parse_device
    from qml_source.tensors import SampleTensors

    settings = Hyperparameters(nwires=qubits, batch_size=batch, lr=STILL)
    execution, _ = open_execution(parse_device(device), settings)
    model = seeded_model(SEED, features=60, nwires=qubits, execution=execution)
    tensors = SampleTensors(*map(torch.as_tensor, samples(batch)))
    trainer = Trainer(model, tensors, tensors, settings, Alone())
    whole = Batch(0, np.arange(batch), batch)

    def iterate() -> list[float]:
        loss_sum, _ = trainer.step(whole)
        trained = [*model.entangling, model.rotation]
        derivatives = flat_gradient([*model.encode.parameters(), *trained, *model.decode.parameters()])
        return [loss_sum / batch, *derivatives]

    return iterate
