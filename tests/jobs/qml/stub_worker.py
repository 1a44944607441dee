"""A worker whose training is a loop of exchanges: the launcher's side is real, and it starts in a second.

STUB_WORKER says what becomes of it: {"rank": r, "after": exchanges, "do": "raise" | "finish"}. Each worker writes its
process number to <STUB_FOLDER>/<rank> once it is connected.
"""

import json
import os
import sys
import types
from pathlib import Path

import torch

from qml_source import ranks, worker


def take_part() -> None:
    """Exchanges numbers until told otherwise."""
    plan = json.loads(os.environ["STUB_WORKER"])
    connected = ranks.connect("gloo", torch.device("cpu"))
    exchanges = 0
    while exchanges < plan.get("finish_after", 10**9):
        connected.add_up(torch.ones(1))
        exchanges += 1
        if exchanges == 3:
            (Path(os.environ["STUB_FOLDER"]) / f"{connected.rank}.writing").write_text(str(os.getpid()))
            (Path(os.environ["STUB_FOLDER"]) / f"{connected.rank}.writing").rename(
                Path(os.environ["STUB_FOLDER"]) / str(connected.rank)
            )
        if plan.get("rank") == connected.rank and exchanges == plan.get("after"):
            raise ValueError("the sample is bad")
    ranks.disconnect()


if __name__ == "__main__":
    stub = types.ModuleType("qml_source.participation")
    stub.take_part = take_part  # type: ignore[attr-defined]
    sys.modules["qml_source.participation"] = stub
    sys.exit(worker.main())
