"""The docker command of the CDK CLI in the embedded cloud, whose registry listens on loopback.

The CLI knows image repositories by their names in AWS, which no machine without an account can reach. Those names are
replaced by the address of the embedded registry, a login there is not needed, and everything else goes to the real
docker command.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

from hybridjobs.local.docker_program import NoDockerProgramError, builder_environment, docker_program
from hybridjobs.local.environment import ACCOUNT
from hybridjobs.local.run_folder import RunFolder

_REGISTRY = re.compile(rf"^(?:https://)?{ACCOUNT}\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com(?=/)")


def translated(arguments: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Return `arguments` with the names of the embedded cloud's repositories as this machine reaches them."""
    registry = urlsplit(environment["AWS_ENDPOINT_URL"]).netloc
    return [_REGISTRY.sub(registry, argument) for argument in arguments]


def is_login(arguments: Sequence[str]) -> bool:
    """Whether this is a login, of which the embedded registry has none."""
    return "login" in arguments[:3]


def write_command(folder: RunFolder) -> Path:
    """Write the program that the CDK CLI runs as docker; it wants one file, without arguments."""
    command = folder.path / "docker"
    root = Path(__file__).resolve().parents[2]
    start = f"PYTHONPATH={shlex.quote(str(root))} exec {shlex.quote(sys.executable)} -m {__name__}"
    command.write_text(f'#!/bin/sh\n{start} "$@"\n')
    command.chmod(0o700)
    return command


def main(arguments: Sequence[str]) -> NoReturn:
    """Become the real command; exits itself only after a login and where no command is installed."""
    if is_login(arguments):
        sys.stdin.read()  # the password, so that the caller's pipe does not break
        sys.exit(0)
    try:
        program = docker_program()
    except NoDockerProgramError as error:
        sys.exit(str(error))
    command = [program, *translated(arguments, os.environ)]
    if "push" not in arguments[:3]:
        os.execve(program, command, builder_environment())  # noqa: S606
    done = subprocess.run(command, check=False)
    # The port is another one in the next embedded cloud: the name would stay behind in the engine.
    subprocess.run([program, "image", "rm", "--no-prune", command[-1]], check=False, stdout=subprocess.DEVNULL)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main(sys.argv[1:])
