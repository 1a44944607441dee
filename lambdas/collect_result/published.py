"""Figures that were published for the benchmarks, to be shown beside ours and never mixed with them."""

from __future__ import annotations

from typing import Any

_GUIDE = (
    "Amazon Braket Developer Guide, Accelerating your hybrid workloads with embedded simulators from PennyLane; "
    "p3 instances have left Braket since"
)


def _figure(
    device: str, instance: str, seconds_per_iteration: float, iterations: int, cost_usd: float
) -> dict[str, Any]:
    return {
        "device": device,
        "instance": {"type": instance, "count": 1},
        "seconds_per_iteration": seconds_per_iteration,
        "iterations": iterations,
        "cost_usd": cost_usd,
        "source": _GUIDE,
    }


# Benchmark -> figures. The times at 24 nodes follow from the published costs and prices a minute.
PUBLISHED: dict[str, list[dict[str, Any]]] = {
    "qaoa-18": [
        _figure("local:pennylane/lightning.qubit", "ml.m5.2xlarge", 25.0, 5, 0.016),
        _figure("local:pennylane/lightning.gpu", "ml.p3.2xlarge", 12.0, 5, 0.06375),
    ],
    "qaoa-24": [
        _figure("local:pennylane/lightning.qubit", "ml.m5.2xlarge", 3548.0, 5, 2.27072),
        _figure("local:pennylane/lightning.gpu", "ml.p3.2xlarge", 146.0, 5, 0.775625),
    ],
}
