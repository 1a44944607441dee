"""The dressed quantum circuit: a linear layer into the circuit's angles, the circuit, and a linear layer out of it."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from qml_source.circuit import REACHES, WEIGHTS_PER_ROTATION
from qml_source.execution import Execution, open_execution
from qml_source.hyperparameters import Hyperparameters
from qml_source.simulators import DeviceRequest, device_for, parse_device
from qml_source.tensors import parts

PRECISIONS = {"double": torch.float64, "single": torch.float32}


class ModelError(ValueError):
    """A file holds no model of this job: says which, why, and the remedy."""


class DressedCircuit(nn.Module):
    """Maps features of shape (batch, features) to a real number a sample, shape (batch,): its sign is the class.

    angles = 2 pi (sigmoid(W x + b) - 1/2), one a qubit; output = w <Z_0> + b. It has nwires (features + 13) + 5
    trainable parameters, and each takes part in every output. Features are shifted and scaled by two vectors that are
    saved with the model: 0 and 1 unless training asked for another scaling. Without a device it is evaluated on the one
    that suits its qubits.
    """

    shift: Tensor
    scale: Tensor

    def __init__(
        self,
        features: int,
        nwires: int,
        labels: tuple[str, str] = ("+1", "-1"),
        *,
        precision: str = "double",
        device: str | None = None,
        execution: Execution | None = None,
    ) -> None:
        super().__init__()
        dtype = PRECISIONS[precision]
        self.labels = tuple(labels)
        self.features = features
        self.nwires = nwires
        self._precision = precision
        self._request: DeviceRequest = parse_device(device or device_for(nwires))
        self._execution = execution
        self.encode = nn.Linear(features, nwires, dtype=dtype)
        layer = (2, nwires, WEIGHTS_PER_ROTATION)
        self.entangling = nn.ParameterList([_random_angles(layer, dtype) for _ in REACHES])
        self.rotation = _random_angles((WEIGHTS_PER_ROTATION,), dtype)
        self.decode = nn.Linear(1, 1, dtype=dtype)
        self.register_buffer("shift", torch.zeros(features, dtype=dtype))
        self.register_buffer("scale", torch.ones(features, dtype=dtype))

    @property
    def execution(self) -> Execution:
        """How the circuit is evaluated; opened when it is first needed."""
        if self._execution is None:
            settings = Hyperparameters(nwires=self.nwires, precision=self._precision)
            self._execution, _ = open_execution(self._request, settings)
        return self._execution

    def forward(self, features: Tensor) -> Tensor:
        """One output a sample."""
        scaled = (features - self.shift) / self.scale
        angles = 2 * math.pi * (torch.sigmoid(self.encode(scaled)) - 0.5)
        weights = torch.cat([*(layer.reshape(-1) for layer in self.entangling), self.rotation])
        values = self.execution(angles, weights)
        outputs: Tensor = self.decode(values[:, None])
        return outputs[:, 0]

    def classify(self, features: Tensor) -> tuple[list[str], Tensor]:
        """The labels of these samples, and the outputs they follow from."""
        converted = features.to(self.shift.dtype)
        with torch.no_grad():
            joined = torch.cat([self(part) for part in parts(converted, self.execution.largest_batch)])
        return [self.labels[0] if output >= 0 else self.labels[1] for output in joined.tolist()], joined

    def document(self) -> dict[str, Any]:
        """What is saved of the model: plain values and tensors, which torch.load reads with weights_only=True."""
        architecture = {
            "features": self.features,
            "nwires": self.nwires,
            "labels": list(self.labels),
            "precision": self._precision,
        }
        state = {name: tensor.detach().cpu() for name, tensor in self.state_dict().items()}
        return {"architecture": architecture, "state_dict": state}


def _random_angles(shape: tuple[int, ...], dtype: torch.dtype) -> nn.Parameter:
    return nn.Parameter(2 * math.pi * torch.rand(shape, dtype=dtype))


def seeded_model(seed: int, **arguments: Any) -> DressedCircuit:
    """A new model whose initial weights follow from the seed alone, whatever was drawn before."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return DressedCircuit(**arguments)


def load_model(file: Path, device: str | None = None) -> DressedCircuit:
    """Reads a trained model, to be evaluated on this device, or on one that suits its qubits.

    Raises:
        ModelError: The file can't be read or holds something else.
        DeviceError: The device is unknown.
    """
    if device is not None:
        parse_device(device)
    try:
        saved: Mapping[str, Any] = torch.load(file, weights_only=True)
        model = DressedCircuit(**saved["architecture"], device=device)
        model.load_state_dict(saved["state_dict"])
    except FileNotFoundError:
        raise ModelError(f"{file}: there is no such file. Give the model.pt of a finished job.") from None
    except Exception as error:
        problem = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        raise ModelError(
            f"{file}: not a model of this job ({problem}). Give the model.pt of a finished job."
        ) from error
    return model
