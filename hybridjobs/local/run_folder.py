"""Where a running embedded cloud keeps its files: one folder in the project, removed as a whole when the cloud ends."""

import json
import re
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

NAME = ".hybridjobs"


@dataclass(frozen=True)
class CloudState:
    """The running embedded cloud.

    `created` is the start time of process `pid` (seconds since the epoch, as psutil reports it): a pid alone may by now
    belong to somebody else's process.
    """

    pid: int
    created: float
    aws_port: int
    braket_url: str


@dataclass(frozen=True)
class RunFolder:
    """The layout of the folder `.hybridjobs` in the project `root`."""

    root: Path

    @property
    def path(self) -> Path:
        """The folder itself."""
        return self.root / NAME

    @property
    def temporary(self) -> Path:
        """TMPDIR of everything that the embedded cloud starts."""
        return self.path / "tmp"

    @property
    def home(self) -> Path:
        """HOME of everything that the embedded cloud starts, so that no cache lands in the user's own."""
        return self.path / "home"

    @property
    def emulator(self) -> Path:
        """What the AWS emulator would keep on disk."""
        return self.path / "emulator"

    @property
    def braket(self) -> Path:
        """The Braket endpoint's job store and the folders of its jobs."""
        return self.path / "braket"

    @property
    def assembly(self) -> Path:
        """The cloud assemblies that the CDK CLI synthesizes, a folder each."""
        return self.path / "cdk.out"

    @property
    def engine(self) -> Path:
        """Present once a job ran in a container: where the engine is that may still hold some."""
        return self.path / "engine.json"

    @property
    def log(self) -> Path:
        """What the background process wrote."""
        return self.path / "daemon.log"

    @property
    def state_file(self) -> Path:
        """Present while an embedded cloud answers."""
        return self.path / "state.json"

    def create(self) -> None:
        """Make the folders; only their owner may look into them."""
        for folder in (self.path, self.temporary, self.home, self.emulator, self.braket):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def remove(self) -> None:
        """Remove the folder, and the bytecode that Python kept for files in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        if sys.pycache_prefix:
            shutil.rmtree(Path(sys.pycache_prefix, *self.path.parts[1:]), ignore_errors=True)

    def write_state(self, state: CloudState) -> None:
        """Publish `state` in one step: a reader sees all of it or nothing."""
        draft = self.state_file.with_suffix(".draft")
        draft.write_text(json.dumps(asdict(state)))
        draft.replace(self.state_file)

    def read_state(self) -> CloudState | None:
        """The published state, or None where there is none or it is not one of ours."""
        try:
            state = CloudState(**json.loads(self.state_file.read_text()))
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except (ValueError, TypeError):
            return None
        numbers = isinstance(state.pid, int) and isinstance(state.created, float) and isinstance(state.aws_port, int)
        url = isinstance(state.braket_url, str) and re.fullmatch(r"http://127\.0\.0\.1:\d+", state.braket_url)
        return state if numbers and url and state.pid > 0 else None
