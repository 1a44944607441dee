"""The smallest image that can run a job, made of this machine's own Python, without any registry.

It has what a job's image needs: `python`, boto3, the entry point in /opt/ml/code, SAGEMAKER_PROGRAM and a `train`
command, here a stand-in for sagemaker-training's that does what the entry point relies on.
"""

import io
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import boto3

NAME, TAG = "hybrid-jobs-test-base", "1"

_PROGRAMS = ("sh", "cat", "chown", "env", "id", "ls", "sleep")
_PACKAGES = ("boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six.py", "urllib3")
_SERVICES = ("s3", "sts")
_NOT_NEEDED = re.compile(
    r"__pycache__|site-packages|tests?|idlelib|tkinter|turtledemo|ensurepip|lib2to3|pydoc_data|config-.*|_tkinter.*"
)
_ENTRY_POINT = Path(__file__).parents[2] / "container_assets" / "entrypoint" / "braket_entrypoint.py"
_CHANGES = ["ENV PATH=/usr/local/bin:/usr/bin:/bin", "ENV SAGEMAKER_PROGRAM=braket_entrypoint.py"]
_FIRST_RUN = "import boto3, compileall; boto3.client('s3', region_name='us-east-1'); compileall.compile_dir('/opt/ml')"
_TRAIN = """#!/usr/bin/python
import json, os, pathlib
files = {name: json.loads(pathlib.Path(f"/opt/ml/input/config/{name}.json").read_text())
         for name in ("hyperparameters", "resourceconfig", "inputdataconfig")}
parameters = files["hyperparameters"]
os.environ |= {
    "SM_HPS": json.dumps(parameters),
    "SM_HOSTS": json.dumps(files["resourceconfig"]["hosts"]),
    "SM_CURRENT_HOST": files["resourceconfig"]["current_host"],
    "SM_CHANNELS": json.dumps(sorted(files["inputdataconfig"])),
}
arguments = [part for name in sorted(parameters) for part in (f"--{name}", parameters[name])]
program = "/opt/ml/code/" + os.environ["SAGEMAKER_PROGRAM"]
os.execv("/usr/bin/python", ["python", program, *arguments])
"""


def base_image(client: Any) -> str:
    """Return the name of the image in the engine of `client` (docker.DockerClient), made now if it isn't there."""
    if not client.images.list(f"{NAME}:{TAG}"):
        client.api.import_image_from_data(_file_system(), repository=NAME, tag="raw", changes=_CHANGES)
        # Once, so that not every job compiles what it imports.
        command = ["python", "-c", _FIRST_RUN]
        container = client.containers.create(f"{NAME}:raw", command, network_mode="none", labels={"test": NAME})
        try:
            container.start()
            if container.wait()["StatusCode"]:
                raise RuntimeError(f"the base image does not run: {container.logs().decode()}")
            container.commit(NAME, TAG)
        finally:
            container.remove(force=True)
    return f"{NAME}:{TAG}"


def _file_system() -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        tree = _Tree(archive)
        python = Path(sys.base_prefix, "bin", f"python{sys.version_info[0]}.{sys.version_info[1]}")
        library = Path(sysconfig.get_path("stdlib"))
        extensions = sorted((library / "lib-dynload").glob("*.so"))
        tree.add(python)
        tree.add_folder(library)
        programs = [Path(found) for name in _PROGRAMS if (found := shutil.which(name, path="/usr/bin:/bin"))]
        for program in programs:
            tree.add(program, f"/usr/bin/{program.name}")
        for file in _libraries([python, *extensions, *programs]):
            tree.add(file)
        packages = Path(boto3.__file__).parents[1]
        for package in _PACKAGES:
            tree.add_folder(packages / package, library / "site-packages" / package)
        tree.link("/usr/bin/python", str(python))
        tree.link("/usr/bin/python3", str(python))
        tree.link("/bin", "usr/bin")
        tree.write("/opt/ml/code/braket_entrypoint.py", _ENTRY_POINT.read_bytes())
        tree.write("/usr/local/bin/train", _TRAIN.encode())
        tree.write("/etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n")
    return raw.getvalue()


class _Tree:
    """A file system in the making; what is added twice is there once."""

    def __init__(self, archive: tarfile.TarFile) -> None:
        self._archive = archive
        self._names: set[str] = set()

    def add(self, file: Path, name: str | None = None) -> None:
        """Add a file, at its own path or at `name`, links followed."""
        place = (name or str(file)).lstrip("/")
        if place not in self._names:
            self._names.add(place)
            self._archive.add(file.resolve(), place, recursive=False)

    def add_folder(self, folder: Path, target: Path | None = None) -> None:
        """Add a file or a folder with all that a job may need of it."""
        target = target or folder
        if folder.is_file():
            self.add(folder, str(target))
            return
        for entry in sorted(folder.iterdir()):
            if not _NOT_NEEDED.fullmatch(entry.name) and _is_used(entry):
                self.add_folder(entry, target / entry.name)

    def write(self, name: str, content: bytes) -> None:
        """Add a file of a certain content that anybody may run."""
        header = tarfile.TarInfo(name.lstrip("/"))
        header.size, header.mode = len(content), 0o755
        self._archive.addfile(header, io.BytesIO(content))

    def link(self, name: str, target: str) -> None:
        """Add a symbolic link."""
        header = tarfile.TarInfo(name.lstrip("/"))
        header.type, header.linkname = tarfile.SYMTYPE, target
        self._archive.addfile(header)


def _is_used(file: Path) -> bool:
    """Leave out the models of the services that no job here calls: they are most of botocore."""
    in_models = file.parent.name == "data" and file.parent.parent.name in ("botocore", "boto3")
    return not in_models or file.is_file() or file.name in _SERVICES


def _libraries(programs: Iterable[Path]) -> set[Path]:
    """Return the shared libraries that the programs load, and the loader itself."""
    done = subprocess.run(["ldd", *map(str, programs)], check=False, capture_output=True, text=True)
    return {Path(found) for found in re.findall(r"(/\S+) \(0x", done.stdout)}
