"""An SSH agent that holds one throw-away key, for as long as a test needs it."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.debian_packages import install_package


@dataclass(frozen=True)
class Agent:
    """Where the agent listens, the file of its key, and what the key is called."""

    socket: Path
    key: Path
    key_name: str


@contextmanager
def ssh_agent() -> Iterator[Agent]:
    """Start an agent with a new key; NotInstallableError where there is none and none can be installed."""
    if shutil.which("ssh-agent") is None:
        install_package("openssh-client")
    with tempfile.TemporaryDirectory(prefix="ssh-") as name:  # short, since a socket's path may have 107 characters
        folder = Path(name)
        key, socket, key_name = folder / "key", folder / "agent", "throw-away-key-of-a-test"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", key_name, "-f", key], check=True)
        # In the foreground, so that it is ours to end.
        process = subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            process.stdout.readline()  # its first words come when it listens
            environment = {**os.environ, "SSH_AUTH_SOCK": str(socket)}
            subprocess.run(["ssh-add", "-q", key], env=environment, check=True)
            yield Agent(socket, key, key_name)
        finally:
            process.terminate()
            process.wait()
