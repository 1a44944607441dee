"""Start, use and end the embedded cloud of a project."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from hybridjobs.local import docker_for_cdk, processes
from hybridjobs.local.cdk_cli import CdkCli, OnEvent
from hybridjobs.local.environment import (
    ACCOUNT,
    REGION,
    aws_environment,
    client_session,
    loopback_without_proxy,
    process_environment,
)
from hybridjobs.local.left_out import gpu_context, left_out
from hybridjobs.local.run_folder import CloudState, RunFolder
from hybridjobs.local.runners.choice import check_choice, end_containers
from hybridjobs.model import image_build
from hybridjobs.model.errors import ProjectError

_START_SECONDS = 60.0
_STOP_SECONDS = 15.0
_POLL_SECONDS = 0.05
_DAEMON = ("-m", "hybridjobs.local.daemon")


class LocalCloudError(ProjectError):
    """The embedded cloud could not be started or used, with what to do about it."""


class LocalCloud:
    """The embedded cloud of the project in `root`: at most one, with everything that it keeps in `root`/.hybridjobs.

    `daemon` is how Python starts the background process.
    """

    def __init__(self, root: Path, daemon: Sequence[str] = _DAEMON) -> None:
        self._folder = RunFolder(root.resolve())
        self._daemon = tuple(daemon)
        self._process: subprocess.Popen[bytes] | None = None

    def running(self) -> bool:
        """Whether the background process lives and both of its listeners are its own."""
        return self._state() is not None

    def up(self, *, bound: bool = False) -> None:
        """Start the embedded cloud and return when it answers; does nothing when it runs already.

        What a crashed one left is removed first.

        Args:
            bound: End the cloud, and remove its files, when the calling process ends in whatever way.

        Raises:
            LocalCloudError: It did not start; the message holds the end of its log.
            ProjectError: Jobs are to run in containers, and no engine answers.
        """
        with self._alone():
            if self.running():
                return
            check_choice()
            self._clear()
            try:
                self._folder.create()
            except OSError as error:
                raise LocalCloudError(
                    f"{error.filename} cannot be made: {error.strerror}. Remove what is in its place, or use a copy of "
                    "the project in a folder that you may write"
                ) from error
            with self._folder.log.open("wb") as log:
                process = subprocess.Popen(
                    [sys.executable, *self._daemon, str(self._folder.root), *(["--bound"] if bound else [])],
                    cwd=self._folder.root,
                    env=process_environment(self._folder),
                    # The daemon reads this pipe's end as our own. Its write end is never closed while we live.
                    stdin=subprocess.PIPE if bound else subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            try:
                self._wait_until_up(process)
            except BaseException:
                self._clear()
                raise
            # Kept, so that it is neither collected (which would close the pipe) nor left as a zombie after `down`.
            self._process = process

    def down(self) -> None:
        """End the embedded cloud with everything that it started, and remove its folder; safe when none runs."""
        with self._alone():
            self._clear()

    @contextmanager
    def session(self) -> Iterator["LocalCloud"]:
        """A cloud that lives as long as the block, also when SIGTERM, SIGHUP or an exception ends it.

        Raises:
            LocalCloudError: One runs already, which the end of the block would end; or as for `up`.
        """
        if self.running():
            raise LocalCloudError(
                f"an embedded cloud runs already in {self._folder.root}. End it first: hybridjobs local down"
            )
        with _signals_as_exit():
            try:
                self.up(bound=True)
                yield self
            finally:
                self.down()

    def environment(self) -> dict[str, str]:
        """The variables that point any AWS client at the running cloud.

        `hybridjobs.local.environment.UNSET` names those that must not be set beside them.

        Raises:
            LocalCloudError: No embedded cloud runs in this project.
        """
        state = self._required_state()
        return aws_environment(state.aws_port, state.braket_url) | loopback_without_proxy(os.environ)

    def client(self, service: str) -> Any:
        """A boto3 client of the running cloud, whatever the caller's own AWS settings are."""
        variables = self.environment()
        endpoint = variables["AWS_ENDPOINT_URL_BRAKET" if service == "braket" else "AWS_ENDPOINT_URL"]
        session: Any = client_session(variables)
        return session.client(service, endpoint_url=endpoint)

    def deploy(self, stage: str = "local", on_event: OnEvent | None = None, app: Path | None = None) -> None:
        """Deploy all stacks of a stage with the CDK CLI, bootstrapping the cloud first when that is still to do.

        Args:
            stage: Given to the app as its context value `stage`.
            on_event: Called with each resource event as it happens.
            app: The folder of the CDK app; the project by default.

        Raises:
            CdkCliError: The CLI failed.
            LocalCloudError: No embedded cloud runs in this project.
        """
        cli = self._cli(stage, app)
        with _locked(self._folder.path):
            if not self._bootstrapped():
                cli.bootstrap(ACCOUNT, REGION, on_event)
            cli.deploy(self._context(stage), on_event)

    def left_out(self, stage: str = "local") -> dict[str, str]:
        """Return the jobs of a stage that a deployment on this machine does not launch, each with its reason."""
        return left_out(self._folder.root, stage)

    def diff(self, stage: str = "local", app: Path | None = None) -> str:
        """What a deployment of `stage` would change, in the words of the CDK CLI."""
        return self._cli(stage, app).diff(self._context(stage))

    def destroy(
        self,
        stage: str = "local",
        on_event: OnEvent | None = None,
        app: Path | None = None,
        stacks: Sequence[str] = ("--all",),
    ) -> None:
        """Destroy all stacks of a stage as they were last deployed, or those that `stacks` names.

        The other arguments and the errors are those of `deploy`.
        """
        cli = self._cli(stage, app)
        with _locked(self._folder.path):
            cli.destroy({"stage": stage}, on_event, stacks)

    def _context(self, stage: str) -> dict[str, str]:
        context = {"stage": stage} | gpu_context()
        if settings := os.environ.get(image_build.VARIABLE):
            context[image_build.CONTEXT] = str(Path(settings).resolve())
        return context

    def _cli(self, stage: str, app: Path | None) -> CdkCli:
        environment = process_environment(self._folder) | self.environment()
        home = self._folder.home
        return CdkCli(
            program=self._folder.root / "node_modules" / ".bin" / "cdk",
            app=app or self._folder.root,
            assembly=self._folder.assembly / (f"{app.name}-{stage}" if app else stage),
            environment=environment
            | {
                # The prebuild of image assets looks for a repository that an earlier stack makes only then.
                "CDK_ASSET_PREBUILD": "false",
                "CDK_DOCKER": str(docker_for_cdk.write_command(self._folder)),
                "CDK_DISABLE_CLI_TELEMETRY": "true",
                "CDK_DISABLE_VERSION_CHECK": "true",
                "CDK_HOME": f"{home}/.cdk",
                # The built-in template validation costs 9 s and has its own place, the checks of the synthesis.
                "CDK_VALIDATION": "false",
                # To fill the cache takes longer than one synthesis gains by it, and it would be gone with the cloud.
                "JSII_RUNTIME_PACKAGE_CACHE": "disabled",
                "JSII_RUNTIME_PACKAGE_CACHE_ROOT": f"{home}/.cache/jsii",
                "npm_config_cache": f"{home}/.npm",
            },
        )

    def _bootstrapped(self) -> bool:
        stacks = self.client("cloudformation").get_paginator("list_stacks")
        pages = stacks.paginate(StackStatusFilter=["CREATE_COMPLETE", "UPDATE_COMPLETE"])
        return any(stack["StackName"] == "CDKToolkit" for page in pages for stack in page["StackSummaries"])

    def _required_state(self) -> CloudState:
        state = self._state()
        if state is None:
            raise LocalCloudError(f"no embedded cloud runs in {self._folder.root}. Start it: hybridjobs local up")
        return state

    def _state(self) -> CloudState | None:
        state = self._folder.read_state()
        process = processes.find(state.pid, state.created) if state else None
        if state is None or process is None:
            return None
        ports = {state.aws_port, int(state.braket_url.rsplit(":", 1)[1])}
        return state if ports <= processes.listening_ports(process) else None

    def _wait_until_up(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not self.running():
            if process.poll() is not None:
                raise LocalCloudError(f"the embedded cloud ended while it started; its log ends:\n{self._log_end()}")
            if time.monotonic() > deadline:
                raise LocalCloudError(
                    f"the embedded cloud did not answer within {_START_SECONDS:g} s; its log ends:\n{self._log_end()}"
                )
            time.sleep(_POLL_SECONDS)

    def _log_end(self) -> str:
        return "\n".join(self._folder.log.read_text(errors="replace").splitlines()[-20:])

    def _clear(self) -> None:
        """End what runs, the daemon first and in its own way, and remove the folder."""
        state = self._folder.read_state()
        daemon = processes.find(state.pid, state.created) if state else None
        if daemon is not None:
            processes.end([daemon], grace_seconds=_STOP_SECONDS)
        processes.end_all(self._folder.path)
        end_containers(self._folder)
        self._folder.remove()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Only one process at a time starts or ends the cloud."""
        with _locked(self._folder.root):
            yield


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of `folder` during the block; it is on the folder itself and leaves no file."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _signals_as_exit() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the block like Ctrl-C does, with its `finally` clauses."""

    def leave(signal_number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + signal_number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
