"""Trains with any number of workers that are connected by gloo, as the launcher would connect them.

Reads cases as JSON lines, {"folder", "workers", "stop_after", "variables"}, and trains each in turn; the workers are
forked from this process, since importing the libraries takes longer than these trainings. Worker 0's trajectory is
written to <folder>/trajectory-<workers>.json, and each worker's own files show what it did.
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from qml_source import ranks, reporting, training
from qml_source.batches import ShardedBatches
from qml_source.job import read_job
from qml_source.loop import Trainer
from qml_source.place import choose_place


class StoppedError(Exception):
    """The training was to end here."""


def follow(case: Mapping[str, Any], rank: int) -> None:
    """Has the training leave notes of what its worker does."""
    notes: dict[str, list[Any]] = {"epochs": [], "rows": []}
    set_epoch, step = ShardedBatches.set_epoch, Trainer.step
    steps = 0

    def noted_set_epoch(batches: ShardedBatches, epoch: int) -> None:
        notes["epochs"].append(epoch)
        set_epoch(batches, epoch)

    def noted_step(trainer: Trainer, batch: Any) -> Any:
        nonlocal steps
        notes["rows"].append(batch.rows.tolist())
        (Path(case["folder"]) / f"notes-{case['workers']}-{rank}.json").write_text(json.dumps(notes))
        if steps == case.get("stop_after"):
            raise StoppedError
        steps += 1
        return step(trainer, batch)

    ShardedBatches.set_epoch = noted_set_epoch  # type: ignore[method-assign]
    Trainer.step = noted_step  # type: ignore[method-assign]


def work(case: Mapping[str, Any], rank: int) -> None:
    """One worker's training."""
    os.environ.update(case["variables"])
    os.environ["AMZN_BRAKET_JOB_RESULTS_DIR"] = str(Path(case["folder"]) / f"results-{case['workers']}-{rank}")
    Path(os.environ["AMZN_BRAKET_JOB_RESULTS_DIR"]).mkdir()
    training.SAVE_SECONDS = 0.0
    follow(case, rank)
    job = read_job()
    connected: ranks.Ranks = ranks.Alone()
    if case["workers"] > 1:
        meeting = dist.FileStore(f"{case['folder']}/meeting-{case['workers']}", case["workers"])
        dist.init_process_group("gloo", store=meeting, rank=rank, world_size=case["workers"])
        connected = ranks.ConnectedRanks(torch.device("cpu"))
    result = training.train(job, connected, choose_place(job.device, case["workers"]))
    if result is not None:
        (Path(case["folder"]) / f"trajectory-{case['workers']}.json").write_text(json.dumps(result))
    ranks.disconnect()


def main() -> None:
    """Trains the cases on standard input."""
    # What takes long to import is imported here once, and not in every worker of every case.
    assert reporting
    torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))])
    torch.set_num_threads(1)
    for line in sys.stdin:
        case = json.loads(line)
        children = []
        for rank in range(case["workers"]):
            child = os.fork()
            if not child:
                code = 1
                try:
                    work(case, rank)
                    code = 0
                except StoppedError:
                    code = 0
                finally:
                    sys.stdout.flush()
                    sys.stderr.flush()
                    os._exit(code)
            children.append(child)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        assert not any(codes), f"{case}: {codes}"


if __name__ == "__main__":
    main()
