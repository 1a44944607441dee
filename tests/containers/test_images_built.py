"""The images of the project, built on stand-in bases, and their jobs from `cdk deploy` to the records of the report."""

import base64
import io
import json
import re
import shutil
import subprocess
import threading
import zipfile
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from hybridjobs.console import Progress
from hybridjobs.demo import wait_for_jobs
from hybridjobs.deployment import Deployment
from hybridjobs.images.build import build_command, build_image
from hybridjobs.images.checks import problems_of
from hybridjobs.images.probe import facts_of
from hybridjobs.local.cloud import LocalCloud
from hybridjobs.local.docker_program import builder_environment, docker_program
from hybridjobs.model.image_build import VARIABLE, load_image_build
from hybridjobs.report.rows import row
from hybridjobs.report.table import table
from qaoa_source.graph_files import read_graph
from tests.containers.container_output import output_of
from tests.containers.ssh_agent import ssh_agent
from tests.containers.stand_ins import BRAKET, CERTIFICATES, NoStandInError, settings_file
from tests.debian_packages import NotInstallableError
from tests.jobs.qaoa import oracle

# Debian systems are installed and compilers run.
pytestmark = [
    pytest.mark.timeout(3600),
    pytest.mark.skipif("os.environ.get('HYBRIDJOBS_BUILD_IMAGES') is None", reason="`make test-images` builds images"),
]

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "container_assets"
FOLDERS = ("cpp", "julia", "pennylane")
BUILD_TOOLS = ("g++", "gcc", "cc", "make", "cmake", "ld")
# What an image may add to its base, in megabytes.
LARGEST = {"cpp": 250, "julia": 800, "pennylane": 1200}
PARAMETERS = [[0.5, 0.9], [0.4, 0.2]]
STAGE = f"""
launch = ["qaoa-18-cpu", "qaoa-18-cpu-auto", "maxcut-18-cpp", "maxcut-18-julia"]
removal = "destroy"
account = "000000000000"
region = "us-east-1"
max_spend_usd = 2.0
overrides.qaoa-18-cpu.image = "asset:pennylane:cpu"
overrides.qaoa-18-cpu-auto.image = "asset:pennylane:braket"
overrides.qaoa-18-cpu.hyperparameters.initial_parameters = "{PARAMETERS}"
overrides.qaoa-18-cpu-auto.hyperparameters.initial_parameters = "{PARAMETERS}"
overrides.maxcut-18-cpp.hyperparameters.initial_parameters = "{PARAMETERS}"
overrides.maxcut-18-julia.hyperparameters.initial_parameters = "{PARAMETERS}"
"""


@pytest.fixture(scope="module")
def settings(engine_client: Any) -> Path:
    """This machine's build settings, with bases that can be had here."""
    try:
        return settings_file(engine_client)
    except NoStandInError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def images(settings: Path) -> dict[str, str]:
    """Names of the built images by their folder."""
    names = {folder: f"hybrid-jobs-test-{folder}:1" for folder in FOLDERS}
    for folder, name in names.items():
        build_image(ASSETS, folder, build_command(folder, tag=name, settings=load_image_build(str(settings))))
    return names


@pytest.fixture(scope="module")
def braket_image(settings: Path, images: Mapping[str, str]) -> str:
    """The name of the image that adds this project's entry point to Braket's own, for which the target cpu stands."""
    assert images["pennylane"] == BRAKET
    name = "hybrid-jobs-test-braket:1"
    command = build_command("pennylane", target="braket", tag=name, settings=load_image_build(str(settings)))
    build_image(ASSETS, "pennylane", command)
    return name


def run(client: Any, image: str, *command: str) -> str:
    """What a command prints in a new container of an image."""
    return output_of(client, image, command)


@pytest.mark.parametrize("folder", FOLDERS)
def test_image_has_what_the_service_asks_for_and_no_build_tool(
    engine_client: Any, images: Mapping[str, str], folder: str
) -> None:
    image = images[folder]
    assert problems_of(facts_of(engine_client, image), 30) == []
    found = run(engine_client, image, "sh", "-c", f"for n in {' '.join(BUILD_TOOLS)}; do command -v $n || true; done")
    assert found == ""
    assert run(engine_client, image, "ls", "/opt/ml/code").split() == ["braket_entrypoint.py"]
    writable = "find / -xdev -type f -perm -0002 2>/dev/null"
    assert run(engine_client, image, "sh", "-c", f"{writable} || true") == "", "files that anybody may change"


@pytest.mark.parametrize("folder", FOLDERS)
def test_structure_of_the_image(images: Mapping[str, str], folder: str) -> None:
    program = shutil.which("container-structure-test")
    if program is None:
        pytest.skip("container-structure-test is not installed: make test-images installs it")
    command = [program, "test", "--image", images[folder], "--config", ASSETS / folder / "structure.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("folder", FOLDERS)
def test_image_is_small_and_lists_what_it_holds_with_licences(
    engine_client: Any, images: Mapping[str, str], folder: str
) -> None:
    image = engine_client.images.get(images[folder])
    base = engine_client.images.get(f"hybrid-jobs-stand-in-{'python' if folder == 'pennylane' else 'bookworm'}:1")
    assert image.attrs["Size"] - base.attrs["Size"] < LARGEST[folder] * 1e6
    bill = json.loads(run(engine_client, images[folder], "cat", "/opt/licences/sbom.cdx.json"))
    components = {each["name"]: each for each in bill["components"]}
    own = {"cpp": ["nlohmann-json", "libstdc++"], "julia": ["julia"], "pennylane": ["pennylane", "scipy"]}[folder]
    for name in ("sagemaker_training", "botocore", "libc6", *own):
        (text, *_) = components[name]["properties"]
        assert run(engine_client, images[folder], "head", "-c", "200", text["value"]).strip(), name
    assert not {"gcc", "g++", "numpy" if folder != "pennylane" else "gcc"} & components.keys()


def test_bill_of_materials_names_what_another_tool_finds(images: Mapping[str, str], engine_client: Any) -> None:
    program = shutil.which("syft")
    if program is None:
        pytest.skip("syft is not installed: make test-images installs it")
    command = [program, "scan", f"docker:{images['cpp']}", "--output", "cyclonedx-json", "--quiet"]
    scanned = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    packages = {
        re.sub(r"[-_.]+", "-", each["name"].lower())
        for each in scanned["components"]
        if each.get("purl", "").startswith(("pkg:pypi/", "pkg:deb/"))
    }
    bill = json.loads(run(engine_client, images["cpp"], "cat", "/opt/licences/sbom.cdx.json"))
    listed = {re.sub(r"[-_.]+", "-", each["name"].lower()) for each in bill["components"]}
    # Debian's Python keeps setuptools' own copies of packages, which no package manager knows.
    assert packages - listed <= {"setuptools", "wheel"}, packages - listed


@pytest.mark.parametrize("folder", FOLDERS)
def test_build_secrets_are_in_no_layer(engine_client: Any, images: Mapping[str, str], folder: str) -> None:
    assert_no_build_secrets(engine_client, images[folder])


def assert_no_build_secrets(client: Any, image: str) -> None:
    for layer in client.images.get(image).history():
        assert str(CERTIFICATES) not in layer["CreatedBy"]
    show = "cat /etc/pip.conf /run/secrets/* 2>/dev/null | wc -c"
    assert run(client, image, "sh", "-c", show).strip() == "0"


def test_image_on_brakets_own_runs_jobs_and_adds_next_to_nothing(engine_client: Any, braket_image: str) -> None:
    assert problems_of(facts_of(engine_client, braket_image), 30) == []
    image, base = (engine_client.images.get(name) for name in (braket_image, BRAKET))
    assert image.attrs["Size"] - base.attrs["Size"] < 2e6
    bill = json.loads(run(engine_client, braket_image, "cat", "/opt/licences/sbom.cdx.json"))
    assert bill["metadata"]["component"]["name"] == "hybrid-jobs-braket"
    assert {"sagemaker_training", "boto3", "pennylane", "libc6"} <= {each["name"] for each in bill["components"]}
    assert_no_build_secrets(engine_client, braket_image)


def test_julia_computes_the_same_in_arrays_of_another_kind(engine_client: Any, images: Mapping[str, str]) -> None:
    """No GPU is here: an array that only the methods for GPUs can serve stands for CUDA.jl's."""
    places = {ROOT / "job_sources" / "julia_source": "/source", Path(__file__).parent: "/tests"}
    output = output_of(
        engine_client,
        images["julia"],
        ["julia", "--startup-file=no", "/tests/other_arrays.jl", "/source/maxcut.jl"],
        volumes={str(folder): {"bind": place, "mode": "ro"} for folder, place in places.items()},
    )
    assert float(output) < 1e-12


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
    (documented,) = re.findall(r"```dockerfile\n(.*?)```", (ROOT / "docs" / "images.md").read_text(), re.DOTALL)
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
    assert run(engine_client, names["kept"], "python", "-c", "import team_package as t; print(t.ANSWER)") == "42\n"
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


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This project with one stage, whose jobs run in images and begin at the same parameters."""
    root = tmp_path_factory.mktemp("project")
    for name in ("app.py", "cdk.json"):
        shutil.copy(ROOT / name, root)
    for name in ("stacks", "lambdas", "container_assets", "job_sources", "node_modules"):
        (root / name).symlink_to(ROOT / name)
    (root / "stages").mkdir()
    (root / "stages" / "images.toml").write_text(STAGE)
    return root


@pytest.fixture(scope="module")
def records(project: Path, settings: Path, braket_image: str) -> Iterator[list[dict[str, Any]]]:
    """The records of the stage's jobs, deployed and run in containers of the images that the CDK CLI built."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HYBRIDJOBS_RUNNER", "docker")
        patch.setenv(VARIABLE, str(settings))
        cloud = LocalCloud(project)
        with cloud.session():
            cloud.deploy("images")
            deployment = Deployment.connect("images", cloud.environment())
            console = Console(file=io.StringIO())
            ended = wait_for_jobs(deployment, Progress(console), 900)
            assert {launch.state for launch in ended} == {"COMPLETED"}, [launch.reason for launch in ended]
            yield deployment.records()


def test_jobs_run_by_digest_in_the_images_of_the_deployment(records: list[dict[str, Any]]) -> None:
    assert len(records) == 4
    digests = {record["image_digest"] for record in records}
    assert len(digests) == 4
    assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", digest) for digest in digests)


def test_julia_cpp_and_python_agree_with_each_other_and_with_brute_force(records: list[dict[str, Any]]) -> None:
    results = {record["spec"]["image"]: record["results"] for record in records}
    names = ("pennylane:cpu", "pennylane:braket", "cpp", "julia")
    python, braket, cpp, julia = (results[f"asset:{name}"] for name in names)
    for other in (braket, cpp, julia):
        for key in ("cost", "costs", "params"):
            assert np.array(other[key]) == pytest.approx(np.array(python[key]), abs=1e-9), key
    assert cpp.keys() == julia.keys()
    problem = read_graph(ROOT / "job_sources" / "qaoa_source" / "inputs" / "gnm_18_24.adjlist")
    assert python["costs"][0] == pytest.approx(oracle.cost(problem, np.array(PARAMETERS)), abs=1e-9)
    assert python["optimum"] == braket["optimum"] == cpp["optimum"] == julia["optimum"] == 21


def test_report_shows_the_jobs_side_by_side(records: list[dict[str, Any]]) -> None:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(table([row(record) for record in records]))
    text = console.export_text()
    for name in ("qaoa-18-cpu", "qaoa-18-cpu-auto", "maxcut-18-cpp", "maxcut-18-julia"):
        assert name in text
    assert text.count("COMPLETED") == 4
