"""Figures that were published for the benchmarks, to be shown beside ours and never mixed with them."""

from __future__ import annotations

from typing import Any

_GUIDE = (
    "Amazon Braket Developer Guide, Accelerating your hybrid workloads with embedded simulators from PennyLane; "
    "p3 instances have left Braket since"
)


def _figure(
    device: str,
    instance: str,
    seconds_per_iteration: float,
    iterations: int,
    cost_usd: float,
    *,
    count: int = 1,
    gpus: int = 0,
    distribution: str = "none",
) -> dict[str, Any]:
    return {
        "device": device,
        "instance": {"type": instance, "count": count},
        "gpus": gpus,
        "distribution": distribution,
        "seconds_per_iteration": seconds_per_iteration,
        "iterations": iterations,
        "cost_usd": cost_usd,
        "source": _GUIDE,
    }


_CPU = "local:pennylane/lightning.qubit"
_GPU = "local:pennylane/lightning.gpu"

# Benchmark -> figures. The times at 24 nodes follow from the published costs and prices a minute, the costs at 26
# qubits from the published times. An iteration of the classifier is an epoch. Its single process ran on one of the
# eight GPUs that were paid for.
PUBLISHED: dict[str, list[dict[str, Any]]] = {
    "qaoa-18": [
        _figure(_CPU, "ml.m5.2xlarge", 25.0, 5, 0.016),
        _figure(_GPU, "ml.p3.2xlarge", 12.0, 5, 0.06375, gpus=1),
    ],
    "qaoa-24": [
        _figure(_CPU, "ml.m5.2xlarge", 3548.0, 5, 2.27072),
        _figure(_GPU, "ml.p3.2xlarge", 146.0, 5, 0.775625, gpus=1),
    ],
    "qml-26": [
        _figure(_GPU, "ml.p3.16xlarge", 2700.0, 1, 21.114, gpus=1),
        _figure(_GPU, "ml.p3.16xlarge", 360.0, 1, 2.8152, gpus=8, distribution="data_parallel"),
        _figure(_GPU, "ml.p3.16xlarge", 90.0, 1, 2.8152, count=4, gpus=32, distribution="data_parallel"),
    ],
}
