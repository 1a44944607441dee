"""Builds the project's images without their registries: small Debian systems stand in for the bases that they name."""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hybridjobs.local.docker_program import builder_environment, docker_program
from tests.debian_packages import NotInstallableError, install_package

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "stand-ins"
# The image of the target cpu, once a test has built it: it has what a job needs of Braket's own base image.
BRAKET = "hybrid-jobs-test-pennylane:1"
CERTIFICATES = Path(os.environ.get("SSL_CERT_FILE") or "/etc/ssl/certs/ca-certificates.crt")

_BOOTSTRAP_SECONDS = 1500

# A Julia of Debian's, moved to where the official image has its own.
_JULIA_FILES = """FROM {base} AS debian
RUN mkdir -p /usr/local/julia/bin /usr/local/julia/lib /usr/local/julia/debian/usr/bin \\
        /usr/local/julia/debian/usr/lib/x86_64-linux-gnu /usr/local/julia/debian/usr/share \\
    && cp /usr/bin/julia /usr/local/julia/debian/usr/bin/ \\
    && cp -rL /usr/lib/x86_64-linux-gnu/julia /usr/local/julia/debian/usr/lib/x86_64-linux-gnu/ \\
    && cp -rL /usr/share/julia /usr/local/julia/debian/usr/share/ \\
    && find /usr/lib/x86_64-linux-gnu /lib/x86_64-linux-gnu -maxdepth 1 -name '*.so*' \\
        ! -name 'libc.*' ! -name 'libc-*' ! -name 'ld-*' ! -name 'libm.*' ! -name 'libm-*' ! -name 'libpthread*' \\
        ! -name 'libdl*' ! -name 'librt*' -exec cp -a {{}} /usr/local/julia/lib/ \\; \\
    && cp -a /etc/alternatives/. /usr/local/julia/lib/ || true
ENV LIBRARIES=/usr/local/julia/debian/usr/lib/x86_64-linux-gnu/julia:/usr/local/julia/lib
RUN printf '#!/bin/sh\\nLD_LIBRARY_PATH=%s exec /usr/local/julia/debian/usr/bin/julia "$@"\\n' $LIBRARIES \\
        > /usr/local/julia/bin/julia && chmod 755 /usr/local/julia/bin/julia \\
    && cp /usr/share/doc/julia/copyright /usr/local/julia/LICENSE.md
"""


class NoStandInError(Exception):
    """No stand-in can be made on this machine, with the reason."""


def debian(client: Any, suite: str, *packages: str) -> str:
    """Return the name of an image of a Debian release with some packages, made now if it isn't there."""
    name = f"hybrid-jobs-stand-in-{suite}:1"
    if not client.images.list(name):
        archive = _bootstrapped(suite, packages)
        subprocess.run([docker_program(), "import", str(archive), name], check=True, capture_output=True)
    return name


def python(client: Any) -> str:
    """Return the name of an image that has Python as the official slim one does: Debian's own."""
    name = "hybrid-jobs-stand-in-python:1"
    if not client.images.list(name):
        install = "apt-get update && apt-get install -y --no-install-recommends python3 python3-dev python3-venv"
        dockerfile = (
            f"FROM {debian(client, 'bookworm')}\nRUN {install} && rm -rf /var/lib/apt/lists/* /var/cache/apt/*\n"
        )
        command = [docker_program(), "build", "-q", "--network", "host", "-t", name, "-"]
        subprocess.run(command, input=dockerfile.encode(), env=builder_environment(), check=True, capture_output=True)
    return name


def julia(client: Any) -> str:
    """Return the name of an image that holds /usr/local/julia as the official one does."""
    name = "hybrid-jobs-stand-in-julia:1"
    if not client.images.list(name):
        base = debian(client, "bullseye", "julia")
        dockerfile = _JULIA_FILES.format(base=base)
        subprocess.run([docker_program(), "build", "-q", "-t", name, "-"], input=dockerfile.encode(), check=True)
    return name


def settings_file(client: Any) -> Path:
    """Write how images are built on this machine (hybridjobs.model.image_build), with stand-ins for their bases."""
    base = debian(client, "bookworm")
    arguments = {
        "cpp": {"BASE_IMAGE": base},
        "julia": {"BASE_IMAGE": base, "JULIA_IMAGE": julia(client)},
        "pennylane": {"BASE_IMAGE": python(client), "BRAKET_IMAGE": BRAKET},
    }
    secrets = CACHE / "secrets"
    secrets.mkdir(parents=True, exist_ok=True)
    configuration = secrets / "pip.conf"
    configuration.write_text("[global]\ncert = /run/secrets/certificates\n" if CERTIFICATES.exists() else "")
    lines = ['network = "host"', "[secrets]", f'pip-configuration = "{configuration}"']
    lines += [f'certificates = "{CERTIFICATES}"'] if CERTIFICATES.exists() else []
    for folder, values in arguments.items():
        lines += [f"[arguments.{folder}]", *(f'{name} = "{value}"' for name, value in values.items())]
    file = secrets / "image-build.toml"
    file.write_text("\n".join(lines) + "\n")
    return file


def _bootstrapped(suite: str, packages: Sequence[str]) -> Path:
    """Return the archive of a Debian system, kept for later runs."""
    CACHE.mkdir(parents=True, exist_ok=True)
    archive = CACHE / f"{suite}.tar"
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            _bootstrap(suite, packages, archive)
    return archive


def _bootstrap(suite: str, packages: Sequence[str], archive: Path) -> None:
    programs = f"{os.environ['PATH']}:/usr/sbin"
    if shutil.which("debootstrap", path=programs) is None:
        try:
            install_package("debootstrap")
        except NotInstallableError as error:
            raise NoStandInError(f"the bases of images can't be pulled here, and for stand-ins {error}") from error
    program = shutil.which("debootstrap", path=programs)
    if program is None:
        raise NoStandInError("the package debootstrap brought no program of that name")
    folder = CACHE / f"{suite}.partial"
    shutil.rmtree(folder, ignore_errors=True)
    command = [
        program,
        "--variant=minbase",
        f"--include={','.join(['ca-certificates', *packages])}",
        suite,
        str(folder),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_BOOTSTRAP_SECONDS)
    if done.returncode:
        raise NoStandInError(f"debootstrap could not make a stand-in for Debian {suite}: {done.stdout[-500:]}")
    writing = archive.with_suffix(".writing")
    subprocess.run(["tar", "-C", folder, "--one-file-system", "-cf", writing, "."], check=True)
    writing.rename(archive)
    shutil.rmtree(folder, ignore_errors=True)
