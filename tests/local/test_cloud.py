"""An embedded cloud starts once, stays on loopback, and leaves nothing behind, however it ends."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from botocore.exceptions import ClientError

from hybridjobs.local import processes
from hybridjobs.local.cloud import LocalCloud, LocalCloudError
from hybridjobs.local.run_folder import CloudState, RunFolder
from tests.local.tiny_cloud import alive, create_function, eventually, invoke, start_job

_ECHO = "import os\ndef handle(event, context):\n    return dict(os.environ)\n"
_PROCESS = "import os\ndef handle(event, context):\n    return os.getpid()\n"
_SILENT = "def handle(event, context):\n    pass\n"


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[LocalCloud]:
    cloud = LocalCloud(tmp_path)
    cloud.up()
    yield cloud
    cloud.down()


def daemon(root: Path) -> psutil.Process:
    state = RunFolder(root).read_state()
    assert state is not None
    return psutil.Process(state.pid)


def job_log(cloud: LocalCloud) -> str:
    """Everything that jobs have written so far."""
    logs = cloud.client("logs")
    if not logs.describe_log_groups(logGroupNamePrefix="/aws/braket/jobs")["logGroups"]:
        return ""
    return "".join(event["message"] for event in logs.filter_log_events(logGroupName="/aws/braket/jobs")["events"])


def test_all_listeners_are_on_loopback_and_answer(cloud: LocalCloud, tmp_path: Path) -> None:
    addresses = {c.laddr.ip for c in daemon(tmp_path).net_connections("inet") if c.status == psutil.CONN_LISTEN}
    assert addresses == {"127.0.0.1"}
    assert cloud.client("sts").get_caller_identity()["Account"] == "000000000000"
    assert cloud.client("braket").search_jobs(filters=[])["jobs"] == []


@pytest.mark.parametrize("content", ["file", "state.json"])
def test_what_stands_in_the_place_of_its_folder_is_named(tmp_path: Path, content: str) -> None:
    """A folder in the place of the state file is removed with the rest; a file in the place of the folder is kept."""
    place = tmp_path / ".hybridjobs"
    if content == "file":
        place.write_text("mine")
        with pytest.raises(LocalCloudError, match="hybridjobs cannot be made"):
            LocalCloud(tmp_path).up()
        assert place.read_text() == "mine"
    else:
        (place / content).mkdir(parents=True)
        assert not LocalCloud(tmp_path).running()
        LocalCloud(tmp_path).down()
        assert not place.exists()


def test_starting_a_running_cloud_changes_nothing(cloud: LocalCloud, tmp_path: Path) -> None:
    before, environment = daemon(tmp_path).pid, cloud.environment()
    LocalCloud(tmp_path).up()
    assert daemon(tmp_path).pid == before
    assert LocalCloud(tmp_path).environment() == environment


def test_a_session_does_not_take_over_a_running_cloud(cloud: LocalCloud, tmp_path: Path) -> None:
    with pytest.raises(LocalCloudError, match="hybridjobs local down"), LocalCloud(tmp_path).session():
        pass
    assert cloud.running()


def test_two_starts_at_once_make_one_cloud(tmp_path: Path) -> None:
    try:
        with ThreadPoolExecutor() as pool:
            for start in [pool.submit(LocalCloud(tmp_path).up) for _ in range(3)]:
                start.result()
        assert [each.pid for each in processes.started_by(tmp_path / ".hybridjobs")] == [daemon(tmp_path).pid]
    finally:
        LocalCloud(tmp_path).down()


def test_the_callers_own_aws_settings_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "no-such-profile")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("PERSIST_STATE", "1")
    monkeypatch.setenv("AUTH", "true")
    with LocalCloud(tmp_path).session() as cloud:
        cloud.client("s3").create_bucket(Bucket="amazon-braket-tiny")
        create_function(cloud, "echo", _ECHO)
        seen = invoke(cloud, "echo")
        assert cloud.environment()["NO_PROXY"].endswith("127.0.0.1,localhost")
    assert not {"AWS_PROFILE", "AWS_ENDPOINT_URL_S3", "HTTP_PROXY", "AUTH"} & seen.keys()


def test_a_function_sees_both_endpoints_and_keeps_its_files_in_the_run_folder(
    cloud: LocalCloud, tmp_path: Path
) -> None:
    create_function(cloud, "echo", _ECHO)
    seen = invoke(cloud, "echo")
    environment = cloud.environment()
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_BRAKET"):
        assert seen[name] == environment[name]
    for name in ("TMPDIR", "HOME", "LAMBDA_TASK_ROOT"):
        assert Path(seen[name]).is_relative_to(tmp_path / ".hybridjobs")


def test_down_ends_functions_jobs_and_pending_waits_and_removes_every_file(cloud: LocalCloud, tmp_path: Path) -> None:
    create_function(cloud, "process", _PROCESS)
    silent = create_function(cloud, "silent", _SILENT)
    function = psutil.Process(invoke(cloud, "process"))
    # This custom resource is never answered: CloudFormation would wait for an hour.
    waiting = {"Type": "Custom::Silent", "Properties": {"ServiceToken": silent, "ServiceTimeout": "3600"}}
    cloud.client("cloudformation").create_stack(
        StackName="waiting", TemplateBody=json.dumps({"Resources": {"Waiting": waiting}})
    )
    start_job(cloud, "sleeper", "import time\nprint('asleep')\ntime.sleep(600)\n")
    assert eventually(lambda: "asleep" in job_log(cloud))
    started = processes.started_by(tmp_path / ".hybridjobs")
    server = daemon(tmp_path)
    # The daemon, two functions, and at least the job's supervisor and program.
    assert {server, function} < set(started)
    assert len(started) >= 5

    cloud.down()

    assert not any(alive(each) for each in started)
    assert list(tmp_path.iterdir()) == []
    assert not cloud.running()
    cloud.down()


def test_what_a_crashed_cloud_left_is_ended_by_the_next_start(cloud: LocalCloud, tmp_path: Path) -> None:
    left = psutil.Popen(["sleep", "600"], env=os.environ | {processes.MARKER: str(tmp_path / ".hybridjobs")})
    crashed = daemon(tmp_path)
    crashed.kill()
    crashed.wait()
    assert not cloud.running()
    with pytest.raises(LocalCloudError, match="hybridjobs local up"):
        cloud.environment()

    cloud.up()

    assert cloud.running()
    assert not alive(left)


def test_the_quota_of_concurrent_jobs_can_be_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBRIDJOBS_MAX_CONCURRENT_JOBS", "1")
    with LocalCloud(tmp_path).session() as cloud:
        start_job(cloud, "first", "import time\ntime.sleep(600)\n")
        with pytest.raises(ClientError, match="quota of concurrent hybrid jobs is 1") as refused:
            start_job(cloud, "second", "pass\n")
    assert refused.value.response["Error"]["Code"] == "ServiceQuotaExceededException"
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 402
    monkeypatch.setenv("HYBRIDJOBS_MAX_CONCURRENT_JOBS", "many")
    with pytest.raises(LocalCloudError, match="HYBRIDJOBS_MAX_CONCURRENT_JOBS = 'many'"):
        LocalCloud(tmp_path).up()


def test_a_process_that_got_the_pid_of_a_crashed_cloud_is_left_alone(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.create()
    with subprocess.Popen(["sleep", "600"]) as stranger:
        folder.write_state(CloudState(stranger.pid, created=1.0, aws_port=1, braket_url="http://127.0.0.1:2"))
        cloud = LocalCloud(tmp_path)
        assert not cloud.running()
        cloud.down()
        assert stranger.poll() is None
        stranger.kill()


_OWNER = """
import signal, sys, time
from pathlib import Path
from hybridjobs.local.cloud import LocalCloud
# A test run in the background of a shell may have been told to ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
with LocalCloud(Path(sys.argv[1])).session():
    print("up", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_session_ends_with_its_owner_whatever_ends_that(tmp_path: Path, signal_number: signal.Signals) -> None:
    owner = subprocess.Popen([sys.executable, "-c", _OWNER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    assert owner.stdout.readline() == "up\n"
    server = daemon(tmp_path)
    owner.send_signal(signal_number)
    owner.communicate(timeout=60)
    assert eventually(lambda: not alive(server))
    assert eventually(lambda: list(tmp_path.iterdir()) == [])


def test_a_cloud_that_cannot_start_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("raise RuntimeError('no such simulator')")
    with pytest.raises(LocalCloudError, match="no such simulator"):
        LocalCloud(tmp_path, daemon=(str(broken),)).up()
    assert list(tmp_path.iterdir()) == [broken]
