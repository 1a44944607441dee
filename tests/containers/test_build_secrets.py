"""What a build may use and no image may keep: passwords of private indexes, and keys of an SSH agent."""

import base64
import io
import json
import re
import shutil
import subprocess
import threading
import zipfile
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from hybridjobs.local.docker_program import builder_environment, docker_program
from tests.containers.container_output import output_of
from tests.containers.ssh_agent import ssh_agent
from tests.debian_packages import NotInstallableError

# Images are built.
pytestmark = [
    pytest.mark.timeout(3600),
    pytest.mark.skipif("os.environ.get('HYBRIDJOBS_BUILD_IMAGES') is None", reason="`make test-images` builds images"),
]

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "images.md"


class PrivateIndex:
    """A package index on loopback that holds one package and asks for a password."""

    password = "correct-horse-battery"

    def __init__(self) -> None:
        wheel = io.BytesIO()
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("team_package.py", "ANSWER = 42\n")
            information = "team_package-1.0.dist-info"
            archive.writestr(f"{information}/METADATA", "Metadata-Version: 2.1\nName: team-package\nVersion: 1.0\n")
            archive.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            archive.writestr(f"{information}/RECORD", "")
        name = "team_package-1.0-py3-none-any.whl"
        pages = {"/simple/team-package/": f'<a href="{name}">{name}</a>'.encode()}
        pages[f"/simple/team-package/{name}"] = wheel.getvalue()
        wanted = "Basic " + base64.b64encode(f"builder:{self.password}".encode()).decode()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page = pages.get(self.path)
                allowed = self.headers.get("Authorization") == wanted
                self.send_response(200 if allowed and page else 404 if allowed else 401)
                self.send_header("WWW-Authenticate", "Basic")
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write((page or b"") if allowed else b"")

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://builder:{self.password}@127.0.0.1:{self._server.server_port}/simple/"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def holds(client: Any, image: str, secret: str) -> bool:
    """Whether an image has a text in its history or anywhere in its layers."""
    found = client.images.get(image)
    history = json.dumps(found.history())
    return secret in history or secret.encode() in b"".join(found.save())


def test_password_of_a_private_index_is_in_no_layer_as_documented(
    engine_client: Any, images: Mapping[str, str], tmp_path: Path
) -> None:
    (documented,) = re.findall(r"```dockerfile\n(.*?)```", DOCUMENTATION.read_text(), re.DOTALL)
    index = PrivateIndex()
    (tmp_path / "pip.conf").write_text(f"[global]\nindex-url = {index.url}\ntrusted-host = 127.0.0.1\n")
    leaking = "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nARG INDEX\nRUN pip install --no-deps -i $INDEX team-package==1.0\n"
    names = {}
    try:
        for kind, dockerfile, more in (
            ("kept", documented, ["--secret", f"id=pip-configuration,src={tmp_path}/pip.conf"]),
            ("leaked", leaking, ["--build-arg", f"INDEX={index.url}"]),
        ):
            folder = tmp_path / kind
            folder.mkdir()
            (folder / "Dockerfile").write_text(dockerfile)
            names[kind] = f"hybrid-jobs-test-{kind}:1"
            base = ["--build-arg", f"BASE_IMAGE={images['cpp']}", "--tag", names[kind]]
            command = [docker_program(), "build", "--network", "host", *base, *more, str(folder)]
            done = subprocess.run(command, env=builder_environment(), capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr[-2000:]
    finally:
        index.close()
    assert (
        output_of(engine_client, names["kept"], ["python", "-c", "import team_package as t; print(t.ANSWER)"]) == "42\n"
    )
    assert not holds(engine_client, names["kept"], index.password)
    assert holds(engine_client, names["leaked"], index.password), "the check sees what it is to see"
    for name in names.values():
        engine_client.images.remove(name)


# Asks the agent for its keys, as `ssh-add -L` does: no image of the project has a client for SSH.
ASK_AGENT = """
import os, socket, struct, sys
with socket.socket(socket.AF_UNIX) as agent:
    agent.connect(os.environ["SSH_AUTH_SOCK"])
    agent.sendall(struct.pack(">IB", 1, 11))
    answer = agent.makefile("rb")
    (length,) = struct.unpack(">I", answer.read(4))
    kind, keys = struct.unpack(">BI", answer.read(length)[:5])
sys.exit(0 if (kind, keys) == (12, 1) else f"the agent answers {kind} with {keys} keys")
"""


def test_ssh_agent_serves_a_step_of_a_build_and_is_in_no_layer(
    engine_client: Any, base_image_name: str, tmp_path: Path
) -> None:
    (tmp_path / "ask.py").write_text(ASK_AGENT)
    asking = f"FROM {base_image_name}\nRUN --mount=type=bind,target=/context --mount=type=ssh python /context/ask.py\n"
    names = {kind: f"hybrid-jobs-test-ssh-{kind}:1" for kind in ("kept", "leaked")}

    def built(kind: str, dockerfile: str, *more: str) -> "subprocess.CompletedProcess[str]":
        (tmp_path / "Dockerfile").write_text(dockerfile)
        command = [docker_program(), "build", "--network", "host", "--tag", names[kind], *more, str(tmp_path)]
        return subprocess.run(command, env=builder_environment(), capture_output=True, text=True, check=False)

    try:
        with ssh_agent() as agent:
            assert built("kept", asking).returncode != 0, "the check sees that there is no agent"
            done = built("kept", asking, "--ssh", f"default={agent.socket}")
            assert done.returncode == 0, done.stderr[-2000:]
            shutil.copy(agent.key, tmp_path / "key")
            assert built("leaked", f"FROM {base_image_name}\nCOPY key /key\n").returncode == 0
            private = agent.key.read_text().splitlines()[3]  # the first lines are alike in many keys
    except NotInstallableError as error:
        pytest.skip(str(error))
    assert holds(engine_client, names["leaked"], private), "the check sees what it is to see"
    for secret in (private, agent.key_name, str(agent.socket)):
        assert not holds(engine_client, names["kept"], secret), secret
    assert "SSH_AUTH_SOCK" not in str(engine_client.images.get(names["kept"]).attrs["Config"])
    for name in names.values():
        engine_client.images.remove(name)
