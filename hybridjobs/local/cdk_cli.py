"""The real CDK CLI, run against the embedded cloud."""

import re
import subprocess
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from hybridjobs.local import processes
from hybridjobs.model.errors import ProjectError

_LAST_LINES = 40
# Stack | 3/10 | 9:21:33 PM | CREATE_COMPLETE | AWS::S3::Bucket | Storage/Jobs (StorageJobs1A2B) [why]
_EVENT = re.compile(
    r"^\s*(?P<stack>\S+) \|\s+[\d/ ]+\| [^|]+ \|\s+(?P<status>[A-Z]+(?:_[A-Z]+)+)\s+\| (?P<type>\S+)\s+\| (?P<rest>.*)$"
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")

# Everything goes to standard output, nothing is asked, and nothing is sent home.
_OPTIONS = ("--ci", "--no-color", "--no-notices", "--no-version-reporting")


class CdkCliError(ProjectError):
    """A CDK CLI command that failed, with the last lines that it wrote."""


@dataclass(frozen=True)
class DeployEvent:
    """One step of one resource, as CloudFormation reports it.

    `resource` is the path in the construct tree where the CLI knows it, else the logical id. `reason` is empty unless
    CloudFormation gives one; it does for every failure.
    """

    stack: str
    resource: str
    resource_type: str
    status: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.stack} {self.resource} {self.status}" + (f" ({self.reason})" if self.reason else "")


OnEvent = Callable[[DeployEvent], None]


def parse_event(line: str) -> DeployEvent | None:
    """The resource event that `line` of the CLI's output reports, or None for any other line."""
    match = _EVENT.match(_COLOUR.sub("", line))
    if match is None:
        return None
    resource, _, reason = match["rest"].strip().partition(" ")
    # "Path/Of/Construct (LogicalId) reason": the logical id in parentheses is left out.
    if reason.startswith("("):
        _, _, reason = reason.partition(")")
    return DeployEvent(match["stack"], resource, match["type"], match["status"], reason.strip())


@contextmanager
def _started(arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """The running command in a session of its own, which is ended as a whole when the block is left early.

    Without that an interrupted deployment would go on for as long as the emulator answers it.
    """
    with subprocess.Popen(
        arguments,
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            yield process
            process.wait()
        finally:
            if process.poll() is None:
                leader = psutil.Process(process.pid)
                processes.end([leader, *leader.children(recursive=True)])


@dataclass(frozen=True)
class CdkCli:
    """Runs commands of the CDK CLI on the app in the folder `app`.

    `program` is the CLI, `environment` all of its variables, and `assembly` the folder for the cloud assembly.
    """

    program: Path
    app: Path
    assembly: Path
    environment: Mapping[str, str]

    def bootstrap(self, account: str, region: str, on_event: OnEvent | None = None) -> None:
        """Create the CDK toolkit stack that deployments need: asset bucket, image repository, roles."""
        # In a folder without a cdk.json: in the app's own the CLI would synthesize the app, and not use it.
        with TemporaryDirectory(dir=self.environment.get("TMPDIR")) as folder:
            self._run(["bootstrap", f"aws://{account}/{region}"], {}, on_event, Path(folder))

    def deploy(self, context: Mapping[str, str], on_event: OnEvent | None = None) -> None:
        """Synthesize the app and deploy all of its stacks in the order of their dependencies."""
        self._run(["deploy", "--all", "--progress=events", "--require-approval=never"], context, on_event)

    def destroy(
        self, context: Mapping[str, str], on_event: OnEvent | None = None, stacks: Sequence[str] = ("--all",)
    ) -> None:
        """Destroy `stacks`, all of the app's by default, in the reverse order of their dependencies.

        Where the app was synthesized before, those stacks are destroyed and it is not synthesized again.
        """
        known = [f"--app={self.assembly}"] if (self.assembly / "manifest.json").is_file() else []
        self._run(["destroy", *stacks, "--force", *known], context, on_event)

    def diff(self, context: Mapping[str, str]) -> str:
        """What a deployment would change, in the words of the CLI."""
        return "\n".join(self._run(["diff", "--all"], context))

    def _run(
        self,
        command: Sequence[str],
        context: Mapping[str, str],
        on_event: OnEvent | None = None,
        folder: Path | None = None,
    ) -> Sequence[str]:
        """Run one command to its end; return its last lines.

        Raises:
            CdkCliError: The CLI is not installed, or the command failed.
        """
        if not self.program.is_file():
            raise CdkCliError(f"the CDK CLI is not at {self.program}. Install it: npm ci")
        settings = [part for name, value in context.items() for part in ("--context", f"{name}={value}")]
        arguments = [str(self.program), *command, *_OPTIONS, f"--output={self.assembly}", *settings]
        lines: deque[str] = deque(maxlen=None if command[0] == "diff" else _LAST_LINES)
        with _started(arguments, folder or self.app, self.environment) as process:
            for line in process.stdout or ():
                lines.append(line.rstrip())
                event = parse_event(line) if on_event else None
                if event is not None and on_event is not None:
                    on_event(event)
        if process.returncode:
            raise CdkCliError(
                f"cdk {' '.join(command)} failed with exit code {process.returncode}; its last lines:\n"
                + "\n".join(line for line in list(lines)[-_LAST_LINES:] if line)
            )
        return list(lines)
