"""Who the workers are, and what each of them sees of its host."""

import json
import subprocess
import sys

import pytest

from qml_source.hyperparameters import HyperparameterError
from qml_source.own_gpu import own_gpu
from qml_source.simulators import parse_device
from qml_source.topology import read_topology
from tests.jobs.qml.job_run import LIGHTNING, NEEDS_TORCH, SOURCE

CPU, GPU = parse_device(LIGHTNING), parse_device("local:pennylane/lightning.gpu")


def on_host(current: str, hosts: int = 2, gpus: int = 0, cpus: int = 8, **more: str) -> dict[str, str]:
    names = [f"algo-{number}" for number in range(1, hosts + 1)]
    return {
        "SM_HOSTS": json.dumps(names),
        "SM_CURRENT_HOST": current,
        "SM_NUM_GPUS": str(gpus),
        "SM_NUM_CPUS": str(cpus),
        **more,
    }


def test_workers_meet_at_the_first_host() -> None:
    topology = read_topology(on_host("algo-2", hosts=4, gpus=4), GPU, None)
    assert (topology.host_rank, topology.workers_per_host, topology.workers) == (1, 4, 16)
    assert topology.address == "algo-1"
    assert read_topology(on_host("algo-2", MASTER_ADDR="127.0.0.1", MASTER_PORT="7"), CPU, None).port == 7


@pytest.mark.parametrize(
    ("gpus", "asked", "workers", "threads"), [(4, None, 4, 2), (0, None, 8, 1), (0, 2, 2, 4), (0, 16, 16, 1)]
)
def test_one_worker_a_gpu_or_a_cpu(gpus: int, asked: int | None, workers: int, threads: int) -> None:
    topology = read_topology(on_host("algo-1", gpus=gpus), GPU if gpus else CPU, asked)
    assert (topology.workers_per_host, topology.threads_per_worker) == (workers, threads)


def test_more_workers_than_gpus_are_refused() -> None:
    with pytest.raises(HyperparameterError, match="workers_per_host = 8 but a host has 4 GPUs"):
        read_topology(on_host("algo-1", gpus=4), GPU, 8)


def test_each_worker_sees_one_gpu_of_its_own() -> None:
    host = on_host("algo-1", gpus=4)
    assert [own_gpu({**host, "LOCAL_RANK": str(rank)})["CUDA_VISIBLE_DEVICES"] for rank in range(4)] == list("0123")
    assert own_gpu({**host, "LOCAL_RANK": "1", "CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b"}) == {
        "CUDA_VISIBLE_DEVICES": "GPU-b"
    }
    assert own_gpu({**on_host("algo-1"), "LOCAL_RANK": "1"}) == {}


def test_gpu_is_chosen_before_anything_can_allocate_on_one() -> None:
    program = f"""
import os, sys
sys.path.insert(0, {str(SOURCE.parent)!r})
os.environ.update(SM_NUM_GPUS="2", LOCAL_RANK="1", RANK="1", QML_FAILURE_FOLDER="/nowhere")
os.environ["QML_LAUNCHER_PID"] = str(os.getppid())
from qml_source import worker
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "qml_source.participation":
            seen = sorted({{"torch", "pennylane", "numpy"}} & set(sys.modules))
            print(os.environ["CUDA_VISIBLE_DEVICES"], seen, flush=True)
            os._exit(0)
sys.meta_path.insert(0, Watch())
worker.main()
"""
    shown = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert shown.stdout == "1 []\n", shown.stderr


def test_smdistributed_is_a_backend_only_where_an_image_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason=NEEDS_TORCH)
    from qml_source import ranks

    assert ranks.choose_backend("auto", on_gpu=False) == "gloo"
    assert ranks.choose_backend("auto", on_gpu=True) == "nccl"
    with pytest.raises(ranks.BackendError, match="this image has no smdistributed"):
        ranks.choose_backend("smddp", on_gpu=True)
    with pytest.raises(
        ranks.BackendError, match="adds up gradients on GPUs, and on this device they are in main memory"
    ):
        ranks.choose_backend("nccl", on_gpu=False)
    monkeypatch.setattr(ranks.importlib.util, "find_spec", lambda name: name == "smdistributed" or None)
    assert ranks.choose_backend("auto", on_gpu=True) == "smddp"


def test_network_between_hosts_is_the_one_that_the_service_names() -> None:
    pytest.importorskip("torch", reason=NEEDS_TORCH)
    from qml_source.ranks import network_variables

    named = {"SM_NETWORK_INTERFACE_NAME": "eth0"}
    both = {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"}
    assert network_variables(named, 2, ["lo", "eth0"]) == dict.fromkeys(both, "eth0")
    assert network_variables(named, 1, ["lo", "eth0"]) == dict.fromkeys(both, "lo")
    assert network_variables(named, 2, ["lo", "ens5"]) == {}
    assert network_variables({**named, "GLOO_SOCKET_IFNAME": "x"}, 2, ["eth0"]) == {"NCCL_SOCKET_IFNAME": "eth0"}


def test_container_that_starts_a_process_a_gpu_gets_one_launcher(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch", reason=NEEDS_TORCH)
    from qml_source import train_dp

    monkeypatch.setenv("LOCAL_RANK", "1")
    train_dp.main()
    assert "started by its first process" in capsys.readouterr().out
