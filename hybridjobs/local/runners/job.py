"""A job on its hosts: data in, the program on every host, data out. What a host is, each runner says itself."""

import queue
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from boto3.exceptions import Boto3Error
from botocore.exceptions import BotoCoreError, ClientError

from hybridjobs.local.runners.aws_clients import ClientCache, Clients
from hybridjobs.local.runners.base import JobRun, Outcome, Phase
from hybridjobs.local.runners.checkpoints import CheckpointFolder
from hybridjobs.local.runners.contract import (
    LOG_GROUP,
    HostLayout,
    HostResources,
    checkpoint_path,
    results_location,
    volume_bytes,
)
from hybridjobs.local.runners.failures import (
    ClientFaultError,
    HostEnd,
    JobStoppedError,
    algorithm_error,
    client_error,
    internal_error,
    stopped_reason,
)
from hybridjobs.local.runners.logs import LogStream
from hybridjobs.local.runners.storage import (
    S3Location,
    fetch_all,
    list_objects,
    planned_fetches,
    upload_archive,
    write_archive,
)


@dataclass(frozen=True)
class JobSettings:
    """Periods and limits, all in seconds or bytes.

    `watch_seconds` is how often checkpoints are copied and the volume is measured, `grace_seconds` what a program gets
    between SIGTERM and SIGKILL, `log_seconds` how long a log line may wait, `largest_volume_bytes` caps every job's
    volume where this machine has less than the instance would.
    """

    watch_seconds: float = 5.0
    grace_seconds: float = 10.0
    log_seconds: float = 0.5
    largest_volume_bytes: int | None = None


DEFAULT_SETTINGS = JobSettings()


@dataclass(frozen=True)
class HostPlan:
    """What one host needs to start; `more_environment` holds variables beyond the contract."""

    name: str
    layout: HostLayout
    resources: HostResources
    more_environment: Mapping[str, str]


class JobHost(Protocol):
    """One host of a job.

    `running_when_stopped` are the names of the processes that ran when the host was asked to stop.
    """

    plan: HostPlan
    running_when_stopped: Sequence[str]

    def prepare(self) -> None:
        """Make the folders, the configuration files and what else the program needs; ClientFaultError says what not."""
        ...

    def start(self, ended: Callable[[HostEnd], None]) -> None:
        """Start the program without waiting for it; `ended` is called once, from any thread, with its end."""
        ...

    def used_bytes(self) -> int:
        """Return how much of the job's volume the host takes now."""
        ...

    def stop(self) -> None:
        """End all of it; returns when it is gone. Safe to call at any time, and twice."""
        ...

    def clean_up(self) -> None:
        """Remove what lies outside the host's folder; called after the end."""
        ...


class HostedRunner(Protocol):
    """What a job asks of its runner."""

    settings: JobSettings
    clients: ClientCache

    def host_plans(self, run: JobRun) -> list[HostPlan]:
        """Return one plan for each host of the job, the main one first."""
        ...

    def make_host(self, run: JobRun, plan: HostPlan, log: LogStream) -> JobHost:
        """Return the host of a plan, nothing of it made yet."""
        ...


def allowed_bytes(run: JobRun, settings: JobSettings) -> int:
    """Return how many bytes the job's files may take on each host."""
    asked, most = volume_bytes(run.request), settings.largest_volume_bytes
    return asked if most is None else min(asked, most)


class HostedJob:
    """One job that runs; see base.RunningJob for what its methods promise."""

    def __init__(self, runner: HostedRunner, run: JobRun, on_phase: Callable[[Phase], None]) -> None:
        self._runner = runner
        self._run = run
        self._on_phase = on_phase
        self._stop_asked = threading.Event()
        self._ends: queue.SimpleQueue[HostEnd] = queue.SimpleQueue()
        self._outcome = Outcome(internal_error("the runner ended before the job"))
        self._hosts: list[JobHost] = []
        self._logs: list[LogStream] = []
        self._checkpoints: list[CheckpointFolder] = []
        self._volume = allowed_bytes(run, runner.settings)
        self._thread = threading.Thread(target=self._execute, name=f"job {run.job_name}", daemon=True)
        self._thread.start()

    def wait(self) -> Outcome:
        """Block until the job has ended on all hosts and its results are stored."""
        self._thread.join()
        return self._outcome

    def stop(self) -> None:
        """End the job's processes on all hosts; returns when they are gone, perhaps before `wait` does."""
        self._stop_asked.set()
        self._stop_hosts()

    def _execute(self) -> None:
        try:
            clients = self._runner.clients.get(self._run.aws_environment)
            self._outcome = Outcome(self._failure_reason(clients))
        except ClientFaultError as error:
            self._outcome = Outcome(client_error(str(error)))
        except JobStoppedError as error:
            self._outcome = Outcome(str(error))
        except (ClientError, BotoCoreError, Boto3Error) as error:
            self._outcome = Outcome(client_error(f"{type(error).__name__}: {error}"))
        except Exception as error:  # noqa: BLE001 - a defect of the runner must end the job, not leave it running
            traceback.print_exc()
            self._outcome = Outcome(internal_error(f"{type(error).__name__}: {error}"))
        finally:
            self._stop_hosts()
            for host in self._hosts:
                host.clean_up()
            for log in self._logs:
                log.close()

    def _failure_reason(self, clients: Clients) -> str | None:
        """Take the job through its phases; None when it succeeded."""
        self._on_phase("DOWNLOADING_DATA")
        self._make_hosts(clients)
        for host in self._hosts:
            self._fill(host, clients)
        self._check_stop()
        self._on_phase("RUNNING")
        failed = self._run_hosts()
        for checkpoints in self._checkpoints:
            checkpoints.store_changed(final=True)
        if any(host.running_when_stopped for host in self._hosts):
            self._check_stop()
        if failed is None:
            self._on_phase("UPLOADING_RESULTS")
            self._store_results(clients)
            return None
        self._check_stop()
        return algorithm_error(failed, several_hosts=len(self._hosts) > 1)

    def _make_hosts(self, clients: Clients) -> None:
        run = self._run
        for plan in self._runner.host_plans(run):
            log = LogStream(
                clients.logs,
                LOG_GROUP,
                f"{run.job_name}/{run.job_id}/{plan.name}",
                run.folder / "logs" / f"{plan.name}.log",
                self._runner.settings.log_seconds,
            )
            self._logs.append(log)
            self._hosts.append(self._runner.make_host(run, plan, log))

    def _fill(self, host: JobHost, clients: Clients) -> None:
        """Prepare one host's folders and bring its input channels and checkpoints."""
        request, layout = self._run.request, host.plan.layout
        try:
            local = layout.inside(checkpoint_path(request))
        except ValueError as error:
            raise ClientFaultError(str(error)) from error
        host.prepare()
        room = self._volume
        for channel in request.get("inputDataConfig", []):
            location = S3Location.parse(channel["dataSource"]["s3DataSource"]["s3Uri"])
            name = channel["channelName"]
            if name in (".", "..") or (layout.input_data / name).exists():
                raise ClientFaultError(f"channelName '{name}' is no folder name or given twice. Choose another")
            fetches = planned_fetches(location, list_objects(clients.s3, location))
            room -= sum(fetch.size for fetch in fetches)
            self._check_room(room)
            fetch_all(clients.s3, location.bucket, fetches, layout.input_data / name, self._keep_going)
            self._check_stop()
        local.mkdir(parents=True, exist_ok=True)
        if "checkpointConfig" in request:
            checkpoints = CheckpointFolder(clients.s3, S3Location.parse(request["checkpointConfig"]["s3Uri"]), local)
            checkpoints.restore(self._keep_going)
            self._checkpoints.append(checkpoints)
            self._check_stop()

    def _run_hosts(self) -> HostEnd | None:
        """Run all hosts to their end, the others ended when one fails; returns the first that failed."""
        for host in self._hosts:
            host.start(self._ends.put)
        failed: HostEnd | None = None
        running = len(self._hosts)
        while running:
            try:
                end = self._ends.get(timeout=self._runner.settings.watch_seconds)
            except queue.Empty:
                self._look_after()
                continue
            running -= 1
            if not end.succeeded and failed is None:
                failed = end
                self._stop_hosts()
        return failed

    def _look_after(self) -> None:
        for checkpoints, log in zip(self._checkpoints, self._logs, strict=False):
            try:
                checkpoints.store_changed(final=False)
            except (ClientError, BotoCoreError, Boto3Error) as error:
                log.write(f"Checkpoints could not be stored, trying again: {error}")
        for host in self._hosts:
            self._check_room(self._volume - host.used_bytes())

    def _check_room(self, room: int) -> None:
        if room < 0:
            gib = self._volume / (1 << 30)
            raise ClientFaultError(f"the job's files take more than its volume of {gib:g} GiB. Raise volumeSizeInGb")

    def _store_results(self, clients: Clients) -> None:
        archive = self._run.folder / "model.tar.gz"
        lost = write_archive([host.plan.layout.model for host in self._hosts], archive)
        for name in lost:
            self._logs[0].write(f"Not in model.tar.gz, another host has a file of that name: {name}")
        output = self._run.request["outputDataConfig"]
        upload_archive(
            clients.s3, archive, results_location(self._run.request).child("model.tar.gz"), output.get("kmsKeyId")
        )

    def _keep_going(self) -> bool:
        return not self._stop_asked.is_set()

    def _check_stop(self) -> None:
        if self._stop_asked.is_set():
            running = sorted(name for host in self._hosts for name in host.running_when_stopped)
            returned = any(host.plan.layout.code_finished.exists() for host in self._hosts)
            raise JobStoppedError(stopped_reason(running, returned))

    def _stop_hosts(self) -> None:
        threads = [threading.Thread(target=host.stop, daemon=True) for host in list(self._hosts)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
