"""One host of a job as a container."""

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from docker.errors import APIError, DockerException, NotFound
from docker.types import DeviceRequest, LogConfig, Mount
from requests.exceptions import RequestException

from hybridjobs.local.processes import MARKER
from hybridjobs.local.runners.base import JobRun
from hybridjobs.local.runners.container_images import ContainerImages, check_image_fits, wanted_image
from hybridjobs.local.runners.container_pip import NO_PIP_SETTINGS, PipSettings
from hybridjobs.local.runners.contract import (
    HostLayout,
    braket_environment,
    checkpoint_path,
    host_names,
    volume_bytes,
    write_configuration,
)
from hybridjobs.local.runners.engine import JOB_LABEL
from hybridjobs.local.runners.failures import ClientFaultError, HostEnd
from hybridjobs.local.runners.job import HostPlan
from hybridjobs.local.runners.logs import LONGEST_EVENT_BYTES, LogStream
from hybridjobs.local.runners.storage import used_bytes

COMMAND = "train"
_INSIDE = HostLayout(Path("/"))
_LONGEST_FAILURE_BYTES = 64 * 1024
_PATIENCE_SECONDS = 10.0
# Other variables describe this machine, such as its search path and temporary folder, and mean nothing in a container.
_PASSED_ON = ("AWS_", "AMZN_", "NO_PROXY", "no_proxy", MARKER)


def container_variables(run: JobRun, plan: HostPlan) -> dict[str, str]:
    """Return the variables that a container is started with.

    They are the service's own. SM_* are not among them: on AWS, too, the `train` command of the image makes those from
    the files below /opt/ml/input/config, and SAGEMAKER_PROGRAM is what the image says.
    """
    passed_on = {name: value for name, value in run.aws_environment.items() if name.startswith(_PASSED_ON)}
    return {**braket_environment(run, _INSIDE), **passed_on, **plan.more_environment}


def container_mounts(run: JobRun, layout: HostLayout) -> dict[str, Path]:
    """Return which folder of the host is seen where in the container.

    /opt/ml itself is not mounted, since the image's program lies in /opt/ml/code. The checkpoint folder is mounted
    where its links lead: /opt/braket must stay free for the link to /opt/ml that the entry point makes.
    """
    checkpoints = layout.inside(checkpoint_path(run.request)).resolve()
    inside = PurePosixPath("/", checkpoints.relative_to(layout.root.resolve()))
    return {
        "/opt/ml/input": layout.ml / "input",
        "/opt/ml/model": layout.model,
        "/opt/ml/output": layout.output,
        "/opt/ml/code/customer_code": layout.code / "customer_code",
        "/tmp": layout.temporary,  # noqa: S108 - it counts against the job's volume, as on an instance
        str(inside): checkpoints,
    }


def _mounts(folders: Mapping[str, Path]) -> list[Mount]:
    return [Mount(target, str(source), type="bind") for target, source in folders.items()]


def container_options(
    run: JobRun, plan: HostPlan, memory_bytes: int, labels: Mapping[str, str], pip: PipSettings = NO_PIP_SETTINGS
) -> dict[str, Any]:
    """Return the arguments of docker's `containers.create` beyond the image.

    The network is this machine's own, since the embedded cloud listens on loopback only; the names of the job's hosts
    all mean this machine.
    """
    first_gpu = host_names(run.request).index(plan.name) * plan.resources.gpus
    gpus = [str(gpu) for gpu in range(first_gpu, first_gpu + plan.resources.gpus)]
    return {
        "command": [COMMAND],
        "name": f"braket-{run.job_id}-{plan.name}",
        "hostname": plan.name,
        "network_mode": "host",
        "extra_hosts": dict.fromkeys(host_names(run.request), "127.0.0.1"),
        "environment": {**pip.variables, **container_variables(run, plan)},
        "labels": {**labels, JOB_LABEL: run.job_arn},
        "mounts": [
            *_mounts(container_mounts(run, plan.layout)),
            *(Mount(target, str(source), type="bind", read_only=True) for target, source in pip.mounts.items()),
        ],
        "nano_cpus": plan.resources.cpus * 1_000_000_000,
        "mem_limit": memory_bytes,
        "memswap_limit": memory_bytes,  # no swap on top
        "shm_size": memory_bytes // 2,  # the usual share; what is in it counts as memory used
        "device_requests": [DeviceRequest(device_ids=gpus, capabilities=[["gpu"]])] if gpus else [],
        # The lines are read as they come, and a second copy on the engine's disk would count against nobody's volume.
        "log_config": LogConfig(type="none"),
    }


def lines_of(chunks: Iterator[tuple[bytes | None, bytes | None]]) -> Iterator[str]:
    """Put the pieces of standard output and standard error together to lines, each stream's own."""
    rests = [b"", b""]
    for chunk in chunks:
        for stream, piece in enumerate(chunk):
            *lines, rest = (rests[stream] + (piece or b"")).split(b"\n")
            while len(rest) >= LONGEST_EVENT_BYTES:
                lines.append(rest[:LONGEST_EVENT_BYTES])
                rest = rest[LONGEST_EVENT_BYTES:]
            rests[stream] = rest
            yield from (line.decode(errors="replace").rstrip("\r") for line in lines)
    yield from (rest.decode(errors="replace") for rest in rests if rest)


class ContainerHost:
    """One host, see job.JobHost, with `memory_bytes` at most and `labels` to find its container by.

    `client` is a docker.DockerClient. Files that the container made are given to `owner` (user, group) if named.
    """

    def __init__(
        self,
        run: JobRun,
        plan: HostPlan,
        log: LogStream,
        client: Any,
        images: ContainerImages,
        memory_bytes: int,
        labels: Mapping[str, str],
        grace_seconds: float,
        owner: tuple[int, int] | None,
        pip: PipSettings,
    ) -> None:
        self.plan = plan
        self.running_when_stopped: Sequence[str] = ()
        self._run = run
        self._log = log
        self._client = client
        self._images = images
        self._memory = memory_bytes
        self._labels = labels
        self._grace = math.ceil(grace_seconds)
        self._owner = owner
        self._pip = pip
        self._image: Any = None
        self._container: Any = None
        self._started = False
        self._stopped = False
        self._lock = threading.Lock()
        self._over = threading.Event()

    def prepare(self) -> None:
        """Get the image, and make the folders and configuration files."""
        wanted = wanted_image(self._run)
        self._image = self._images.obtain(wanted, lambda: not self._stopped)
        check_image_fits(wanted.uri, self._image.attrs, volume_bytes(self._run.request))
        layout = self.plan.layout
        layout.create()
        write_configuration(self._run, layout, self.plan.name, self.plan.resources)
        layout.temporary.chmod(0o1777)
        for folder in container_mounts(self._run, layout).values():
            folder.mkdir(parents=True, exist_ok=True)

    def start(self, ended: Callable[[HostEnd], None]) -> None:
        """Run `train` in a new container."""
        with self._lock:
            if self._stopped:
                self._over.set()
                ended(HostEnd(self.plan.name, None, None))
                return
            options = container_options(self._run, self.plan, self._memory, self._labels, self._pip)
            self._container = self._client.containers.create(self._image.id, **options)
            # Before the start, so that no line is missed; the engine makes a program wait whose lines nobody takes.
            output = self._container.attach(stream=True, demux=True)
            self._run_command()
            self._started = True
        pump = threading.Thread(target=self._pump, args=(output,), daemon=True)
        pump.start()
        threading.Thread(target=self._watch, args=(pump, ended), daemon=True).start()

    def used_bytes(self) -> int:
        """Return how much disk the mounted folders and the container's own layer take."""
        return used_bytes(self.plan.layout.root) + self._layer_bytes()

    def stop(self) -> None:
        """Ask the program to end, kill the container after the grace; returns when it has ended."""
        with self._lock:
            self._stopped = True
        if not self._started or self._over.is_set():
            return
        try:
            self.running_when_stopped = self.running_when_stopped or self._running()
            self._container.stop(timeout=self._grace)
        except NotFound:  # somebody else removed it
            pass
        except (DockerException, RequestException) as error:
            self._log.write(f"(the container {self._container.name} could not be stopped: {error})")
        self._over.wait(_PATIENCE_SECONDS)

    def clean_up(self) -> None:
        """Remove the container."""
        if self._container is None:
            return
        try:
            self._container.remove(force=True, v=True)
        except NotFound:
            return
        except (DockerException, RequestException) as error:
            # The reaper tries again when the runner ends.
            self._log.write(f"(the container {self._container.name} could not be removed: {error})")

    def _layer_bytes(self) -> int:
        if self._container is None:
            return 0
        try:
            (found,) = self._client.api.containers(all=True, size=True, filters={"id": self._container.id}) or [{}]
        except (DockerException, RequestException):  # measured again at the next look
            return 0
        return int(found.get("SizeRw") or 0)

    def _run_command(self) -> None:
        try:
            self._container.start()
        except APIError as error:
            explanation = str(error.explanation or error)
            if f'"{COMMAND}"' not in explanation:
                raise
            raise ClientFaultError(
                f"image '{wanted_image(self._run).uri}' can't run the command {COMMAND}, with which the service starts"
                f" a job: {explanation}. Install sagemaker-training in the image"
            ) from error

    def _running(self) -> list[str]:
        """Return the names of the processes in the container; none where it has just ended."""
        try:
            listed = self._container.top(ps_args="-o pid,comm")
        except APIError:
            return []
        return sorted(process[-1] for process in listed["Processes"] or [])

    def _pump(self, output: Iterator[tuple[bytes | None, bytes | None]]) -> None:
        for line in lines_of(output):
            self._log.write(line)

    def _watch(self, pump: threading.Thread, ended: Callable[[HostEnd], None]) -> None:
        end = HostEnd(self.plan.name, None, "Lost: the container engine did not tell how the container ended")
        try:
            code: int = self._container.wait(timeout=None)["StatusCode"]
            pump.join(_PATIENCE_SECONDS)
            self._give_files_back()
            failure = self._failure(code)
            # The engine reports a signal as the shell does, 128 above its number.
            end = HostEnd(self.plan.name, 128 - code if 128 < code < 192 else code, failure)
        except (DockerException, RequestException) as error:
            self._log.write(f"(the container engine failed: {error})")
        finally:
            self._over.set()
            ended(end)

    def _failure(self, code: int) -> str | None:
        """Return the failure text, with lack of memory told apart: the kernel's kill looks like any other."""
        text = self._read_failure()
        if (code or text) and self._killed_for_memory() and not (text or "").startswith("OutOfMemory"):
            limit = f"{self._memory / (1 << 30):.3g} GiB"
            rest = f" {text}" if text else ""
            return (
                f"OutOfMemory: the job used more than the {limit} of memory of its host. Use a larger instance.{rest}"
            )
        return text

    def _killed_for_memory(self) -> bool:
        try:
            self._container.reload()
        except NotFound:
            return False
        return bool(self._container.attrs["State"]["OOMKilled"])

    def _read_failure(self) -> str | None:
        failure = self.plan.layout.failure
        if failure.is_symlink() or not failure.is_file():  # a link would lead out of the job's folder, a pipe block
            return None
        with failure.open("rb") as file:
            return file.read(_LONGEST_FAILURE_BYTES).decode(errors="replace")

    def _give_files_back(self) -> None:
        """Let the owner remove what the container's root made."""
        if self._owner is None:
            return
        folders = container_mounts(self._run, self.plan.layout)
        try:
            self._client.containers.run(
                self._image.id,
                entrypoint=["chown"],
                command=["-R", "{}:{}".format(*self._owner), *folders],
                user="0",
                network_mode="none",
                mounts=_mounts(folders),
                labels={**self._labels, JOB_LABEL: self._run.job_arn},
                remove=True,
            )
        except DockerException as error:  # an image need not have chown
            self._log.write(f"(files of the container stay with its user: {error})")
