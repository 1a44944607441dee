"""A worker whose training is a loop: the launcher's side is real, and it starts at once.

STUB_WORKER says what it does: {"exchange": whether the workers are connected, "rank": r, "after": turns}; rank r raises
after that many turns. Each worker writes its process number to <STUB_FOLDER>/<rank> in its third turn.
"""

import json
import os
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path

from qml_source import worker


def connected() -> Callable[[], None]:
    """Connects the workers and returns one exchange between them."""
    import torch

    from qml_source import ranks

    group = ranks.connect("gloo", torch.device("cpu"))
    return lambda: group.add_up(torch.ones(1))


def take_part() -> None:
    """Takes turns for ever, or until told to fail."""
    plan, rank = json.loads(os.environ["STUB_WORKER"]), os.environ["RANK"]
    turn = connected() if plan.get("exchange") else lambda: time.sleep(0.01)
    folder, turns = Path(os.environ["STUB_FOLDER"]), 0
    while True:
        turn()
        turns += 1
        if turns == 3:
            (folder / f"{rank}.writing").write_text(str(os.getpid()))
            (folder / f"{rank}.writing").rename(folder / rank)
        if plan.get("rank") == int(rank) and turns == plan["after"]:
            raise ValueError("the sample is bad")


if __name__ == "__main__":
    stub = types.ModuleType("qml_source.participation")
    stub.take_part = take_part  # type: ignore[attr-defined]
    sys.modules["qml_source.participation"] = stub
    sys.exit(worker.main())
