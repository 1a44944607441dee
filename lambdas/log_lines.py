"""One JSON object a line on standard output, which Lambda sends to CloudWatch Logs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime


def log(message: str, **fields: Any) -> None:
    """Write one line; values that JSON doesn't know are written as text."""
    print(json.dumps({"message": message, **fields}, default=str, sort_keys=True), flush=True)


def without_response_url(event: Any) -> Any:
    """Copy an event without its pre-signed ResponseURL: whoever reads the log could answer in our place."""
    if isinstance(event, dict):
        return {key: without_response_url(value) for key, value in event.items() if key != "ResponseURL"}
    if isinstance(event, list):
        return [without_response_url(value) for value in event]
    return event


def emit_metrics(stage: str, moment: datetime, values: dict[str, tuple[float, str]], **dimensions: str) -> None:
    """Write metrics in CloudWatch's embedded format: name -> (value, unit); no API call, no permission.

    They count for the whole stage, and where there are `dimensions` for these values of them too.
    """
    if not values:
        return
    print(
        json.dumps(
            {
                "_aws": {
                    "Timestamp": int(moment.timestamp() * 1000),
                    "CloudWatchMetrics": [
                        {
                            "Namespace": "HybridJobs",
                            "Dimensions": [["stage"], *([["stage", *sorted(dimensions)]] if dimensions else [])],
                            "Metrics": [{"Name": name, "Unit": unit} for name, (_, unit) in sorted(values.items())],
                        }
                    ],
                },
                "stage": stage,
                **dimensions,
                **{name: value for name, (value, _) in sorted(values.items())},
            }
        ),
        flush=True,
    )
