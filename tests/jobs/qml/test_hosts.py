"""The data-parallel job as the service runs it: on several hosts, killed, and continued on others.

With QML_KILLS = n, n jobs of two hosts with two workers each are killed at random moments and continued on as many.
"""

import contextlib
import os
import random
import re
import time
from collections.abc import Callable
from typing import Any

import psutil
import pytest

from hybridjobs.local.braket.endpoint import EndpointSettings
from hybridjobs.local.runners.job import JobSettings
from hybridjobs.local.runners.process import ProcessRunner
from tests.jobs.qml.conftest import RunSingle
from tests.jobs.qml.endpoint_jobs import EndpointJobs, processes, wait_for
from tests.jobs.qml.job_run import LIGHTNING, NEEDS_TORCH, Host
from tests.local.braket.conftest import aws, start_cloud
from tests.local.braket.fake_cloud import Cloud

pytest.importorskip("torch", reason=NEEDS_TORCH)
__all__ = ["aws", "start_cloud"]

TRAJECTORY = ("training_loss", "training_accuracy", "held_out_loss", "held_out_accuracy")
# Neither number divides by the four workers.
SETTINGS = {"ndata": "35", "batch_size": "9", "workers_per_host": "2"}
KILLS = int(os.environ.get("QML_KILLS", "0"))
WORKER, LAUNCHER = "qml_source.worker", "run-python"


def trajectory(result: dict[str, Any]) -> list[float]:
    return [value for name in TRAJECTORY for value in result[name]]


@pytest.fixture
def jobs(start_cloud: Callable[..., Cloud], aws: dict[str, str]) -> EndpointJobs:
    runner = ProcessRunner(settings=JobSettings(watch_seconds=0.5, grace_seconds=2.0, log_seconds=0.1))
    return EndpointJobs(start_cloud(aws_environment=aws, runner=runner, settings=EndpointSettings()), aws)


def test_job_killed_on_two_hosts_of_two_ranks_fails_and_is_continued_as_one_process(
    jobs: EndpointJobs, run_single: RunSingle, host: Host
) -> None:
    killed = jobs.create("killed", hosts=2, epochs="100000", **SETTINGS)
    wait_for(lambda: jobs.epochs(killed, "killed") >= 3 or jobs.cloud.status(killed) == "FAILED")
    next(processes("killed", "algo-2", WORKER)).kill()
    ended = jobs.ended(killed)
    assert ended["status"] == "FAILED"
    reason = r"rank [23] of 4 on algo-2: Killed: the worker was ended by SIGKILL"
    assert re.match(f"AlgorithmError: RankFailedError: {reason}", ended["failureReason"])
    assert list(processes("killed")) == []
    done = jobs.epochs(killed, "killed")
    assert done >= 3
    assert not any("Metrics - " in line for line in jobs.log(killed, "killed", "algo-2"))

    (host.checkpoints / "killed_training.pt").write_bytes(jobs.get("qml/checkpoints/killed_training.pt"))
    more = {**SETTINGS, "epochs": str(done + 3)}
    continued = run_single(device=LIGHTNING, name="killed", **more)
    assert continued["resumed_from_epoch"] in (done, done + 1)
    alone = run_single(device=LIGHTNING, name="alone", **more)
    assert len(continued["training_loss"]) == done + 3
    assert trajectory(continued) == pytest.approx(trajectory(alone), abs=1e-6)


@pytest.mark.skipif(not KILLS, reason="QML_KILLS is not set: each random kill takes a minute")
@pytest.mark.parametrize("seed", range(KILLS))
def test_kill_at_a_random_moment_fails_the_job_at_once_and_it_can_be_continued(
    jobs: EndpointJobs, run_single: RunSingle, seed: int
) -> None:
    chance = random.Random(seed)
    name, host = f"random-{seed}", chance.choice(["algo-1", "algo-2"])
    what = ("rank", "host", "launcher")[seed % 3]
    # Half of them are killed at any moment of their start, the others after an epoch at least.
    trained, moment = (True, chance.uniform(0, 5)) if seed % 2 else (False, chance.uniform(0, 40))
    arn = jobs.create(name, hosts=2, epochs="100000", **SETTINGS)
    role = {"rank": WORKER, "host": "", "launcher": LAUNCHER}[what]
    wait_for(lambda: any(processes(name, host, role)) and (not trained or jobs.epochs(arn, name) > 0))
    time.sleep(moment)
    found = list(processes(name, host, role))
    victims = {"rank": [chance.choice(found)], "host": found, "launcher": [min(found, key=lambda each: each.pid)]}
    begun = time.monotonic()
    for victim in victims[what]:
        with contextlib.suppress(psutil.NoSuchProcess):
            victim.kill()
    ended = jobs.ended(arn)
    seconds = time.monotonic() - begun
    done = jobs.epochs(arn, name)
    print(f"\n{what} of {host} after {moment:.1f} s, {done} epochs: {seconds:.1f} s, {ended.get('failureReason')}")
    assert ended["status"] == "FAILED"
    assert ended["failureReason"]
    assert list(processes(name)) == []
    if not done:
        return
    more = {**SETTINGS, "epochs": str(done + 3)}
    again = jobs.create(f"again-{seed}", hosts=2, copy_checkpoints_from_job=name, **more)
    assert jobs.ended(again).get("failureReason") is None, "\n".join(jobs.log(again, f"again-{seed}"))
    assert jobs.results(f"again-{seed}").keys() == {"results.json", "model.pt"}, "the first worker alone saves"
    together = jobs.result(f"again-{seed}")
    assert (together["workers"], together["workers_per_host"], together["backend"]) == (4, 2, "gloo")
    assert together["resumed_from_epoch"] >= done
    assert trajectory(together) == pytest.approx(trajectory(run_single(device=LIGHTNING, **more)), abs=1e-6)
