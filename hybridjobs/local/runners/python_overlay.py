"""A Python of its own for each host of a job, in which an install touches nothing else."""

import json
import subprocess
from functools import cache
from pathlib import Path

_SITE_FOLDERS = "import json, site; print(json.dumps(site.getsitepackages()))"
_VERSION = "import sys; print('python%d.%d' % sys.version_info[:2])"


@cache
def _ask(python: Path, question: str) -> str:
    answer = subprocess.run([str(python), "-I", "-c", question], check=True, capture_output=True, text=True)
    return answer.stdout.strip()


def create_python(python: Path, folder: Path) -> Path:
    """Make a virtual environment in `folder` that sees the packages of `python`, and return its interpreter.

    What a job installs goes into the new environment and wins there; pip takes the packages of `python` as present.
    Editable installs of `python` stay invisible, as they would be in a container.
    """
    subprocess.run([str(python), "-I", "-m", "venv", "--without-pip", str(folder)], check=True, capture_output=True)
    inherited: list[str] = json.loads(_ask(python, _SITE_FOLDERS))
    own_site = folder / "lib" / _ask(python, _VERSION) / "site-packages"
    (own_site / "inherited.pth").write_text("".join(f"{entry}\n" for entry in inherited), encoding="utf-8")
    interpreter = folder / "bin" / "python"
    # The inherited environment's pip command would install into the inherited environment.
    for name in ("pip", "pip3"):
        command = folder / "bin" / name
        command.write_text(f'#!/bin/sh\nexec "{interpreter}" -m pip "$@"\n', encoding="utf-8")
        command.chmod(0o755)
    return interpreter
