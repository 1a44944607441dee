"""Starts a host's workers with PyTorch's elastic launcher and sees that the job ends when one of them does.

Nothing is restarted in place: a failure ends the job with the failed worker's own error, and a new job continues from
the checkpoint.
"""

import os
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from torch.distributed.elastic.multiprocessing.api import DefaultLogsSpecs, SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from qml_source import failures
from qml_source.failures import Failure, RankFailedError, TerminatedError
from qml_source.host_watch import LONGEST_START, HostWatch
from qml_source.ranks import network_variables
from qml_source.topology import THREAD_VARIABLES, Topology

WORKER = "qml_source.worker"
LAUNCHER_VARIABLE = "QML_LAUNCHER_PID"
MONITOR_SECONDS = 0.1


def launch(topology: Topology, worker: str = WORKER) -> None:
    """Runs this host's workers, each the module `worker`, to their end.

    Raises:
        RankFailedError: A worker failed, here or on another host.
        TerminatedError: This process was asked to end, and has ended its workers.
    """
    watch = HostWatch(topology)
    with tempfile.TemporaryDirectory(prefix="qml-failures-") as name, _variables(worker_variables(topology, name)):
        folder = Path(name)
        watch.start()
        try:
            elastic_launch(_configuration(topology, folder / "logs"), sys.executable)("-u", "-m", worker)
        except ChildFailedError as error:
            raise _failed(topology, watch, _local_cause(error, folder, topology.current)) from None
        except SignalException as error:
            if watch.lost is not None:
                raise _failed(topology, watch, watch.lost) from None
            reason = f"{topology.current} was asked to end by {error.sigval.name}"
            watch.report(Failure(f"TerminatedError: {reason}"))
            raise TerminatedError(reason) from None
        finally:
            watch.end()


def worker_variables(topology: Topology, failure_folder: str) -> dict[str, str]:
    """What this host's workers find in their environment beside the job's variables and the elastic launcher's."""
    package_folder = str(Path(__file__).resolve().parents[1])
    search_path = [package_folder, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    interfaces = [name for _, name in socket.if_nameindex()]
    return {
        "PYTHONPATH": os.pathsep.join(search_path),
        failures.FOLDER_VARIABLE: failure_folder,
        LAUNCHER_VARIABLE: str(os.getpid()),
        **dict.fromkeys(THREAD_VARIABLES, str(topology.threads_per_worker)),
        **network_variables(os.environ, len(topology.hosts), interfaces),
    }


def _configuration(topology: Topology, logs: Path) -> LaunchConfig:
    return LaunchConfig(
        min_nodes=len(topology.hosts),
        max_nodes=len(topology.hosts),
        nproc_per_node=topology.workers_per_host,
        logs_specs=DefaultLogsSpecs(log_dir=str(logs)),
        run_id=os.environ.get("AMZN_BRAKET_JOB_NAME") or "training",
        rdzv_backend="static",
        rdzv_endpoint=f"{topology.address}:{topology.port}",
        rdzv_configs={"rank": topology.host_rank, "timeout": int(LONGEST_START.total_seconds())},
        max_restarts=0,
        monitor_interval=MONITOR_SECONDS,
    )


def _local_cause(error: ChildFailedError, folder: Path, host: str) -> Failure:
    ends = {rank: (end.exitcode, end.signal_name()) for rank, end in error.failures.items()}
    told = failures.recorded(folder)
    found = failures.cause([*told, *failures.silent(ends, told, host)])
    return found or Failure(str(error))


def _failed(topology: Topology, watch: HostWatch, failure: Failure) -> RankFailedError:
    """The error that this host ends with; where another host's failure is the cause, that one's."""
    if failure.consequence:
        failure = watch.cause() or failure
    watch.report(failure)
    return RankFailedError(failures.described(failure, topology.workers, len(topology.hosts) > 1))


@contextmanager
def _variables(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
