"""Jobs on several instances, and data-parallel jobs."""

import json
from pathlib import Path

import pytest

from hybridjobs.local.runners.machine import namespace_command

from .conftest import Workbench, processes_of

TWO = {"instanceType": "ml.m5.large", "volumeSizeInGb": 1, "instanceCount": 2}
SHOW = """
import json, os
host = os.environ["SM_CURRENT_HOST"]
names = ["SM_HOSTS", "RANK", "MASTER_PORT"]
folder = os.environ["AMZN_BRAKET_JOB_RESULTS_DIR"]
json.dump({name: os.environ.get(name) for name in names}, open(f"{folder}/{host}.json", "w"))
open(f"{folder}/same", "w").write(host)
"""
TALK = """
import os, socket, time
if os.environ["SM_CURRENT_HOST"] == "algo-1":
    listener = socket.create_server(("algo-1", int(os.environ["MASTER_PORT"])))
    connection, _ = listener.accept()
    print("heard", connection.recv(5).decode())
else:
    while True:
        try:
            connection = socket.create_connection(("algo-1", int(os.environ["MASTER_PORT"])))
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    connection.send(b"hello")
"""


def test_each_host_knows_itself_and_the_others_and_results_are_joined(workbench: Workbench) -> None:
    enabled = {"sagemaker_distributed_dataparallel_enabled": "true", "sagemaker_instance_type": "ml.m5.large"}
    ended = workbench.complete({"job/main.py": SHOW}, instanceConfig=TWO, hyperParameters=enabled)
    assert ended.outcome.failure_reason is None, ended.log
    results = workbench.results(ended)
    assert results.keys() == {"algo-1.json", "algo-2.json", "same"}
    first, second = (json.loads(results[f"{host}.json"]) for host in ("algo-1", "algo-2"))
    assert first["SM_HOSTS"] == second["SM_HOSTS"] == '["algo-1","algo-2"]'
    assert first["MASTER_PORT"] == second["MASTER_PORT"], "where the hosts of a data-parallel job may meet"
    assert first["RANK"] is second["RANK"] is None, "the job itself starts its workers"
    assert results["same"] == b"algo-1"
    assert any("another host has a file of that name" in line for line in workbench.cloud_log(ended.run))
    assert workbench.cloud_log(ended.run, "algo-2")


def test_failure_of_one_host_ends_the_others(workbench: Workbench) -> None:
    code = "import os, time\nif os.environ['SM_CURRENT_HOST'] == 'algo-2': raise ValueError('boom')\ntime.sleep(600)\n"
    ended = workbench.complete({"job/main.py": code}, instanceConfig=TWO)
    assert ended.reason == "AlgorithmError: ValueError: boom (on algo-2), exit code: 1"
    assert processes_of(ended.run) == []


@pytest.mark.skipif(
    not namespace_command(), reason="this machine allows no mount namespaces, so host names don't resolve"
)
def test_hosts_reach_each_other_by_name(workbench: Workbench) -> None:
    ended = workbench.complete({"job/main.py": TALK}, instanceConfig=TWO)
    assert "heard hello" in ended.log
    assert "algo-1" not in Path("/etc/hosts").read_text(), "the machine's own file stays as it is"
