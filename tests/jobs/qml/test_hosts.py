"""The data-parallel job as the service runs it: on two hosts of two workers each, killed, and continued."""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from hybridjobs.model.source_archive import build_source_archive
from tests.jobs.qml.conftest import RunSingle
from tests.jobs.qml.job_run import DEFAULT_QUBIT, LIGHTNING, NEEDS_TORCH, SMALL, SONAR, SOURCE, Host
from tests.local.runners.conftest import BUCKET, Workbench, services, workbench

pytest.importorskip("torch", reason=NEEDS_TORCH)
__all__ = ["services", "workbench"]

TRAJECTORY = ("training_loss", "training_accuracy", "held_out_loss", "held_out_accuracy")
PATIENCE_SECONDS = 180


def trajectory(result: dict[str, Any]) -> list[float]:
    return [value for name in TRAJECTORY for value in result[name]]


def request(**hyperparameters: str) -> dict[str, Any]:
    enabled = {"sagemaker_distributed_dataparallel_enabled": "true", "sagemaker_instance_type": "ml.m5.large"}
    return {
        "deviceConfig": {"device": LIGHTNING},
        "instanceConfig": {"instanceType": "ml.m5.large", "volumeSizeInGb": 1, "instanceCount": 2},
        "hyperParameters": {**SMALL, **enabled, "workers_per_host": "2", **hyperparameters},
        "inputDataConfig": [
            {
                "channelName": "input-data",
                "dataSource": {"s3DataSource": {"s3Uri": f"s3://{BUCKET}/sonar/"}},
            }
        ],
    }


@pytest.fixture
def bench(workbench: Workbench) -> Workbench:
    workbench.s3.put_object(Bucket=BUCKET, Key="sonar/sonar.all-data", Body=SONAR.read_bytes())
    return workbench


def test_two_hosts_of_two_workers_train_as_one_process(bench: Workbench, run_single: RunSingle) -> None:
    source = build_source_archive(SOURCE).bytes
    ended = bench.complete(source, "qml_source.train_dp", **request(ndata="35", batch_size="9"))
    results = bench.results(ended)
    assert results.keys() == {"results.json", "model.pt"}, "the first worker alone saves"
    together = json.loads(results["results.json"])["dataDictionary"]
    alone = run_single(device=LIGHTNING, ndata="35", batch_size="9")
    assert trajectory(together) == pytest.approx(trajectory(alone), abs=1e-6)
    assert (together["workers"], together["workers_per_host"], together["backend"]) == (4, 2, "gloo")
    metrics = [line for line in bench.cloud_log(ended.run) if "Metrics - " in line and "training_loss" in line]
    assert len(metrics) == 2
    assert not any("Metrics - " in line for line in bench.cloud_log(ended.run, "algo-2"))


def workers_below(launcher: int) -> Iterator[psutil.Process]:
    for process in psutil.Process(launcher).children(recursive=True):
        if "qml_source.worker" in process.cmdline():
            yield process


def test_killed_training_is_continued_from_its_checkpoint(host: Host, run_single: RunSingle, tmp_path: Path) -> None:
    settings = {"ndata": "35", "batch_size": "9", "epochs": "400"}
    killed = Host(tmp_path / "killed", name="job-k")
    launcher = killed.start("train_dp", killed.prepare({**settings, "workers_per_host": "2"}, device=DEFAULT_QUBIT))
    deadline = time.monotonic() + PATIENCE_SECONDS
    while killed.log.count("training_loss") < 3:
        assert launcher.poll() is None, killed.log
        assert time.monotonic() < deadline, killed.log
        time.sleep(0.05)
    os.kill(next(workers_below(launcher.pid)).pid, signal.SIGKILL)
    assert launcher.wait(PATIENCE_SECONDS) == 1
    assert "RankFailedError: rank 0 of 2: Killed: the worker was ended by SIGKILL" in killed.log
    done = killed.log.count("training_loss")

    epochs = str(done + 3)
    checkpoint = killed.checkpoints / "job-k_training.pt"
    (host.checkpoints / checkpoint.name).write_bytes(checkpoint.read_bytes())
    continued = run_single(name="job-k", **{**settings, "epochs": epochs})
    assert continued["resumed_from_epoch"] >= done
    whole = run_single(name="job-whole", **{**settings, "epochs": epochs})
    assert trajectory(continued) == pytest.approx(trajectory(whole), abs=1e-6)
