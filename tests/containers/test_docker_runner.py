"""Jobs in containers: the same contract as on the service, real limits, and no container left whatever happens."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import boto3
import pytest

from hybridjobs.local.processes import MARKER
from hybridjobs.local.run_folder import RunFolder
from hybridjobs.local.runners.base import JobRun
from hybridjobs.local.runners.choice import end_containers
from hybridjobs.local.runners.docker import DockerRunner
from hybridjobs.local.runners.engine import JOB_LABEL, RUNNER_LABEL, EngineMachine
from hybridjobs.local.runners.job import HostedJob, JobSettings
from tests.local.runners.conftest import BUCKET, QUICK, Ended, Workbench, read_json, services  # noqa: F401

pytestmark = pytest.mark.usefixtures("engine")

REPOSITORY = "amazon-braket-hybrid-jobs-test"
REGISTRY = "000000000000.dkr.ecr.us-east-1.amazonaws.com"
IMAGE = f"{REGISTRY}/{REPOSITORY}:1"
ONE = {"instanceType": "ml.m5.large", "volumeSizeInGb": 1, "instanceCount": 1}
TWO = {**ONE, "instanceCount": 2}
WAIT = "print('waiting', flush=True)\nimport time\ntime.sleep(600)\n"
# Leaves the session, the process group and its parent, as a daemon does.
DAEMON = (
    "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(600)\n    os._exit(0)\n"
)

SHOW = """
import json, os, pathlib
def read(*names):
    return next((pathlib.Path(name).read_text().strip() for name in names if os.path.exists(name)), None)
checkpoints = pathlib.Path(os.environ["AMZN_BRAKET_CHECKPOINT_DIR"])
seen = {
    "environment": dict(os.environ),
    "inputs": {path.name: path.read_text() for path in pathlib.Path("/opt/ml/input/data/numbers").iterdir()},
    "hyperparameters": json.loads(pathlib.Path("/opt/braket/input/config/hyperparameters.json").read_text()),
    "restored": {path.name: path.read_text() for path in checkpoints.iterdir()},
    "memory": read("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory.max"),
    "shared memory": os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize,
    "host": os.uname().nodename,
}
(checkpoints / "later").write_text("2")
print("to standard output")
pathlib.Path(os.environ["AMZN_BRAKET_JOB_RESULTS_DIR"], "seen.json").write_text(json.dumps(seen))
"""
TALK = """
import os, socket, time
if os.environ["SM_CURRENT_HOST"] == "algo-1":
    connection, _ = socket.create_server(("algo-1", int(os.environ["MASTER_PORT"]))).accept()
    print("heard", connection.recv(5).decode())
else:
    while True:
        try:
            connection = socket.create_connection(("algo-1", int(os.environ["MASTER_PORT"])))
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    connection.send(b"hello")
"""


@dataclass
class ContainerBench(Workbench):
    """A workbench whose jobs run in containers."""

    client: Any = None
    runner: DockerRunner = field(default_factory=DockerRunner)

    def run(self, files: Any, entry_point: str = "job.main", image: str = IMAGE, **changes: Any) -> JobRun:
        run = super().run(files, entry_point, **changes)
        script = {"containerImage": {"uri": image}, **run.request["algorithmSpecification"]}
        return replace(run, request={**run.request, "algorithmSpecification": script})

    def start(self, run: JobRun, settings: JobSettings | None = None) -> HostedJob:
        self.phases = []
        job = self.runner.start(run, self.phases.append)
        self.jobs.append(job)
        return job

    def containers_of(self, run: JobRun) -> list[Any]:
        found: list[Any] = self.client.containers.list(
            all=True, ignore_removed=True, filters={"label": f"{JOB_LABEL}={run.job_arn}"}
        )
        return found

    def has_said(self, run: JobRun, line: str, host: str = "algo-1") -> Callable[[], bool]:
        file = run.folder / "logs" / f"{host}.log"
        return lambda: file.exists() and line in file.read_text().splitlines()


@pytest.fixture(scope="module")
def registry(services: dict[str, str], engine_client: Any, base_image_name: str) -> dict[str, str]:  # noqa: F811
    """The variables of an embedded cloud whose repository holds the base image, while the engine forgot its name."""
    ecr: Any = boto3.session.Session("test", "test", region_name="us-east-1").client(
        "ecr", endpoint_url=services["AWS_ENDPOINT_URL"]
    )
    ecr.create_repository(repositoryName=REPOSITORY)
    address = services["AWS_ENDPOINT_URL"].removeprefix("http://") + f"/{REPOSITORY}"
    engine_client.images.get(base_image_name).tag(address, "1")
    for line in engine_client.images.push(address, "1", stream=True, decode=True):
        assert "error" not in line, line
    engine_client.images.remove(f"{address}:1", noprune=True)
    return services


@pytest.fixture(scope="module")
def runner() -> Iterator[DockerRunner]:
    runner = DockerRunner(settings=QUICK)
    yield runner
    runner.close()


@pytest.fixture
def bench(
    registry: dict[str, str], engine_client: Any, runner: DockerRunner, tmp_path: Path
) -> Iterator[ContainerBench]:
    session = boto3.session.Session("test", "test", region_name="us-east-1")
    s3: Any = session.client("s3", endpoint_url=registry["AWS_ENDPOINT_URL"])
    s3.create_bucket(Bucket=BUCKET)
    logs = session.client("logs", endpoint_url=registry["AWS_ENDPOINT_URL"])
    bench = ContainerBench(tmp_path, registry, s3, logs, client=engine_client, runner=runner)
    yield bench
    for job in bench.jobs:
        job.stop()
        job.wait()
    assert (
        engine_client.containers.list(
            all=True, ignore_removed=True, filters={"label": f"{RUNNER_LABEL}={runner.label}"}
        )
        == []
    )


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_job_runs_in_its_image_from_the_emulated_registry_as_on_the_service(bench: ContainerBench) -> None:
    bench.s3.put_object(Bucket=BUCKET, Key="numbers/one.txt", Body=b"1")
    bench.s3.put_object(Bucket=BUCKET, Key="kept/earlier", Body=b"1")
    numbers = {"s3DataSource": {"s3Uri": f"s3://{BUCKET}/numbers/"}}
    run = bench.run(
        {"job/main.py": SHOW},
        hyperParameters={"p": "2"},
        inputDataConfig=[{"channelName": "numbers", "dataSource": numbers}],
        checkpointConfig={"s3Uri": f"s3://{BUCKET}/kept", "localPath": "/opt/jobs/checkpoints"},
    )
    run = replace(
        run, aws_environment={**run.aws_environment, "PATH": "/of/this/machine", "TMPDIR": "/of/this/machine"}
    )
    ended = bench.finish(run, bench.start(run))
    seen = read_json(bench.results(ended)["seen.json"])
    assert ended.phases == ["DOWNLOADING_DATA", "RUNNING", "UPLOADING_RESULTS"]
    assert seen["inputs"] == {"one.txt": "1"}
    assert seen["hyperparameters"] == {"p": "2"}
    assert seen["restored"] == {"earlier": "1"}
    assert {f"{BUCKET}/kept/later"} <= {f"{BUCKET}/{key}" for key in bench.keys("kept/")}
    assert "to standard output" in bench.cloud_log(run)
    assert "Code Run Finished" in ended.log.splitlines()
    assert_environment_is_the_services(seen["environment"], run)
    assert int(seen["memory"]) == 8 << 30
    assert seen["shared memory"] == 4 << 30
    assert seen["host"] == "algo-1"
    names = {tag for image in bench.client.images.list() for tag in image.tags}
    assert IMAGE in names
    assert not any(name.startswith("127.0.0.1") for name in names), "the registry's port is not kept in a name"


def assert_environment_is_the_services(environment: dict[str, str], run: JobRun) -> None:
    expected = {
        "AMZN_BRAKET_JOB_NAME": run.job_name,
        "AMZN_BRAKET_DEVICE_ARN": run.request["deviceConfig"]["device"],
        "AMZN_BRAKET_JOB_RESULTS_DIR": "/opt/ml/model",
        "AMZN_BRAKET_CHECKPOINT_DIR": "/opt/jobs/checkpoints",
        "AMZN_BRAKET_INPUT_DIR": "/opt/ml/input/data",
        "AMZN_BRAKET_HP_FILE": "/opt/ml/input/config/hyperparameters.json",
        "AMZN_BRAKET_OUT_S3_BUCKET": BUCKET,
        "AMZN_BRAKET_SCRIPT_ENTRY_POINT": "job.main",
        "AWS_ENDPOINT_URL": run.aws_environment["AWS_ENDPOINT_URL"],
        "SM_CURRENT_HOST": "algo-1",
        "OMP_NUM_THREADS": str(min(2, os.cpu_count() or 1)),
    }
    assert expected.items() <= environment.items()
    assert "/of/this/machine" not in environment.values()


def test_every_kind_of_end_is_told_apart(bench: ContainerBench) -> None:
    """All at once, as the cores allow: what counts is each one's reason."""
    cases: dict[str, tuple[str, dict[str, Any]]] = {
        "AlgorithmError: ValueError: boom, exit code: 1": ("raise ValueError('boom')", {}),
        "AlgorithmError: SystemExit: 3, exit code: 3": ("import sys; sys.exit(3)", {}),
        "ClientError: image '" + REGISTRY + "/no-such:1' is not in the container engine": (
            "",
            {"image": f"{REGISTRY}/no-such:1"},
        ),
        "ClientError: image '292282985366.dkr.ecr.us-east-1.amazonaws.com/amazon-braket-base-jobs:latest' is not": (
            "",
            {"image": "292282985366.dkr.ecr.us-east-1.amazonaws.com/amazon-braket-base-jobs:latest"},
        ),
    }
    jobs = {}
    for reason, (code, changes) in cases.items():
        run = bench.run({"job/main.py": code}, **changes)
        jobs[reason] = (run, bench.start(run))
    for reason, (run, job) in jobs.items():
        ended = bench.finish(run, job)
        assert ended.reason.startswith(reason), ended.reason + ended.log
        assert bench.containers_of(run) == []


def test_lack_of_memory_is_told_apart_from_other_ends(bench: ContainerBench, monkeypatch: pytest.MonkeyPatch) -> None:
    small = EngineMachine(cpus=2, memory_bytes=192 << 20, gpus=0)
    monkeypatch.setattr("hybridjobs.local.runners.docker.machine_of", lambda client: small)
    bench.runner = DockerRunner(settings=QUICK)
    try:
        ended = bench.complete({"job/main.py": "numbers = [bytes([1]) * (1 << 20) for _ in range(1000)]"})
        harmless = "import subprocess\nsubprocess.run(['python', '-c', 'bytes([1]) * (1 << 30)'])\n"
        assert bench.complete({"job/main.py": harmless}).outcome.failure_reason is None
    finally:
        bench.runner.close()
    assert ended.reason.startswith("AlgorithmError: OutOfMemory: "), ended.reason
    assert ended.reason.endswith("exit code: 137")


def test_image_without_the_train_command_is_refused_with_a_remedy(bench: ContainerBench) -> None:
    name = f"{REGISTRY}/other:1"
    bench.client.api.import_image_from_data(bytes(10240), repository=name.rpartition(":")[0], tag="1")
    ended = bench.complete({"job/main.py": ""}, image=name)
    assert ended.reason.startswith(f"ClientError: image '{name}' can't run the command train")
    assert "Install sagemaker-training" in ended.reason


def test_stop_ends_the_whole_container_and_can_be_repeated(bench: ContainerBench) -> None:
    run = bench.run({"job/main.py": "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + DAEMON + WAIT})
    job = bench.start(run)
    until(bench.has_said(run, "waiting"))
    job.stop()
    ended = bench.finish(run, job)
    assert ended.reason.startswith("the job was stopped while it ran (python")
    assert bench.containers_of(run) == []
    assert bench.keys(f"{run.job_name}/data") == set()
    job.stop()
    early = bench.run({"job/main.py": WAIT})
    job = bench.start(early)
    job.stop()
    assert "the job was stopped" in bench.finish(early, job).reason
    assert bench.containers_of(early) == []


def test_daemon_child_ends_with_a_job_that_succeeds(bench: ContainerBench) -> None:
    ended = bench.complete({"job/main.py": DAEMON})
    assert ended.outcome.failure_reason is None, ended.log
    assert bench.containers_of(ended.run) == []


def test_hosts_reach_each_other_by_name_and_the_failure_of_one_ends_the_others(bench: ContainerBench) -> None:
    fail = "import os, time\nif os.environ['SM_CURRENT_HOST'] == 'algo-2': raise ValueError('boom')\ntime.sleep(600)\n"
    failing = bench.run({"job/main.py": fail}, instanceConfig=TWO)
    job = bench.start(failing)
    talking = bench.complete({"job/main.py": TALK}, instanceConfig=TWO)
    assert talking.outcome.failure_reason is None, talking.log
    assert "heard hello" in talking.log
    assert bench.cloud_log(talking.run, "algo-2")
    ended = bench.finish(failing, job)
    assert ended.reason == "AlgorithmError: ValueError: boom (on algo-2), exit code: 1"
    assert bench.containers_of(failing) == []


RUN_ONE = """
import json, sys
from pathlib import Path
from hybridjobs.local.runners.base import JobRun
from hybridjobs.local.runners.docker import DockerRunner
values = json.loads(sys.stdin.readline())
values["folder"] = Path(values["folder"])
DockerRunner().start(JobRun(**values), lambda phase: None).wait()
"""


def start_elsewhere(bench: ContainerBench, run: JobRun) -> "subprocess.Popen[str]":
    """Run a job with a runner in another process, and return that once the job's code runs."""
    process = subprocess.Popen(
        [sys.executable, "-c", RUN_ONE],
        stdin=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps({**vars(run), "folder": str(run.folder)}) + "\n")
    process.stdin.flush()
    until(bench.has_said(run, "waiting"))
    return process


def test_containers_of_a_killed_runner_are_removed(bench: ContainerBench) -> None:
    run = bench.run({"job/main.py": WAIT})
    process = start_elsewhere(bench, run)
    assert len(bench.containers_of(run)) == 1
    process.send_signal(signal.SIGKILL)
    process.wait()
    until(lambda: bench.containers_of(run) == [])


def test_end_of_an_embedded_cloud_removes_the_containers_of_its_jobs_only(bench: ContainerBench) -> None:
    folder = RunFolder(bench.folder / "project")
    folder.create()
    end_containers(folder)
    others = bench.run({"job/main.py": WAIT})
    bench.start(others)
    run = bench.run({"job/main.py": WAIT})
    run = replace(run, aws_environment={**run.aws_environment, MARKER: str(folder.path)})
    job = bench.start(run)
    until(bench.has_said(run, "waiting"))
    until(bench.has_said(others, "waiting"))
    end_containers(folder)
    assert bench.containers_of(run) == []
    assert len(bench.containers_of(others)) == 1
    assert "SIGKILL" in bench.finish(run, job).reason


def test_files_that_a_container_made_are_given_to_whoever_runs_the_embedded_cloud(
    bench: ContainerBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 12345)
    monkeypatch.setattr("os.getegid", lambda: 54321)
    code = "import os\nos.makedirs('/opt/ml/model/deep')\nopen('/opt/ml/model/deep/file', 'w').close()\n"
    ended = bench.complete({"job/main.py": code})
    monkeypatch.undo()
    assert ended.outcome.failure_reason is None, ended.log
    made = [path.lstat() for path in (ended.host() / "opt" / "ml" / "model").rglob("*")]
    assert [(status.st_uid, status.st_gid) for status in made] == [(12345, 54321)] * 2


def test_an_engine_that_goes_away_fails_the_job_with_a_reason(
    bench: ContainerBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stood for by a wait that fails: the engine itself is needed by the other tests."""
    from docker.models.containers import Container
    from requests.exceptions import ConnectionError as EngineGoneError

    def gone(*_: object, **__: object) -> None:
        raise EngineGoneError("engine stopped")

    monkeypatch.setattr(Container, "wait", gone)
    ended = bench.complete({"job/main.py": ""})
    assert ended.reason.startswith("AlgorithmError: Lost: the container engine did not tell how the container ended")


def test_files_in_the_containers_own_layer_count_against_the_volume(
    registry: dict[str, str], engine_client: Any, tmp_path: Path
) -> None:
    runner = DockerRunner(settings=replace(QUICK, largest_volume_bytes=20 << 20))
    session = boto3.session.Session("test", "test", region_name="us-east-1")
    s3: Any = session.client("s3", endpoint_url=registry["AWS_ENDPOINT_URL"])
    s3.create_bucket(Bucket=BUCKET)
    logs = session.client("logs", endpoint_url=registry["AWS_ENDPOINT_URL"])
    bench = ContainerBench(tmp_path, registry, s3, logs, client=engine_client, runner=runner)
    try:
        fill = "import time\nopen('/root-file', 'wb').write(bytes(30 << 20))\ntime.sleep(600)\n"
        ended = bench.complete({"job/main.py": fill})
    finally:
        runner.close()
    assert "take more than its volume of 0.0195312 GiB. Raise volumeSizeInGb" in ended.reason


def test_log_lines_of_both_streams_arrive_whole(bench: ContainerBench) -> None:
    code = "import sys\nfor i in range(2000): print('x' * 100, i); print('warned', i, file=sys.stderr)\n"
    ended: Ended = bench.complete({"job/main.py": code})
    lines = ended.log.splitlines()
    assert [line for line in lines if line.startswith("x")] == [f"{'x' * 100} {i}" for i in range(2000)]
    assert [line for line in lines if line.startswith("warned")] == [f"warned {i}" for i in range(2000)]


def test_no_line_is_lost_when_a_job_ends_right_after_much_output(bench: ContainerBench) -> None:
    """5 MB, more than pipes and engine hold: much is still on its way when the program is gone."""
    code = "import os, sys\nfor i in range(50_000): print(i, 'x' * 95)\nsys.stdout.flush()\nos._exit(0)\n"
    started = [(run, bench.start(run)) for run in (bench.run({"job/main.py": code}) for _ in range(3))]
    for run, job in started:
        lines = [line for line in bench.finish(run, job).log.splitlines() if line.endswith("xx")]
        assert lines == [f"{number} {'x' * 95}" for number in range(50_000)]
