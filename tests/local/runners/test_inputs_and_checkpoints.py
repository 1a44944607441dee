"""Input channels and checkpoints: what comes from S3, where it lies, and what goes back."""

import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridjobs.local.runners.failures import ClientFaultError
from hybridjobs.local.runners.storage import S3Location, planned_fetches

from .conftest import BUCKET, Workbench

LIST_INPUT = """
import json, os, pathlib
root = pathlib.Path(os.environ["AMZN_BRAKET_INPUT_DIR"])
found = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
json.dump(found, open(os.environ["AMZN_BRAKET_JOB_RESULTS_DIR"] + "/found.json", "w"))
"""
COUNT = """
import os, pathlib, time
folder = pathlib.Path(os.environ["AMZN_BRAKET_CHECKPOINT_DIR"])
file = folder / "deep" / "count"
file.parent.mkdir(exist_ok=True)
count = int(file.read_text()) + 1 if file.exists() else 1
file.write_text(str(count))
print("count", count, flush=True)
"""


def channel(name: str, key: str) -> dict[str, Any]:
    return {"channelName": name, "dataSource": {"s3DataSource": {"s3Uri": f"s3://{BUCKET}/{key}"}}}


def put(workbench: Workbench, *keys: str) -> None:
    for key in keys:
        workbench.s3.put_object(Bucket=BUCKET, Key=key, Body=b"data")


def test_channels_by_folder_by_prefix_and_by_single_object(workbench: Workbench) -> None:
    import json

    put(workbench, "in/graphs/a.txt", "in/graphs/deep/b.txt", "in/graphs/", "in/sonar.data", "in/sonar.data.bak")
    put(workbench, "in/alone.csv")
    channels = [channel("folder", "in/graphs/"), channel("bare", "in/graphs"), channel("prefix", "in/sonar")]
    ended = workbench.complete({"job/main.py": LIST_INPUT}, inputDataConfig=[*channels, channel("one", "in/alone.csv")])
    assert ended.outcome.failure_reason is None, ended.log
    assert json.loads(workbench.results(ended)["found.json"]) == [
        "bare/a.txt",
        "bare/deep/b.txt",
        "folder/a.txt",
        "folder/deep/b.txt",
        "one/alone.csv",
        "prefix/sonar.data",
        "prefix/sonar.data.bak",
    ]


def test_channel_without_data_fails_the_job_before_its_code_runs(workbench: Workbench) -> None:
    ended = workbench.complete({"job/main.py": ""}, inputDataConfig=[channel("graph", "nothing/here")])
    assert ended.reason.startswith(f"ClientError: no object found under s3://{BUCKET}/nothing/here")
    assert ended.phases == ["DOWNLOADING_DATA"]


def test_inputs_larger_than_the_volume_are_not_downloaded(workbench: Workbench) -> None:
    from dataclasses import replace

    put(workbench, "large/a")
    settings = replace(workbench.settings, largest_volume_bytes=3)
    ended = workbench.complete({"job/main.py": ""}, inputDataConfig=[channel("large", "large/")], settings=settings)
    assert "Raise volumeSizeInGb" in ended.reason


def plan(key: str, objects: Sequence[str]) -> list[str]:
    return [str(fetch.path) for fetch in planned_fetches(S3Location("bucket", key), [(name, 1) for name in objects])]


@pytest.mark.parametrize(
    "key", ["in/../out", "in/a/../../out", "in//etc/passwd", "in/./a", "in/a\0b", "in/..\\out", "in/a//b"]
)
def test_key_that_would_leave_its_folder_is_refused(key: str) -> None:
    with pytest.raises(ClientFaultError, match="can't be stored as a file below its folder"):
        plan("in/", [key])


def test_object_below_another_object_is_refused_by_name() -> None:
    with pytest.raises(ClientFaultError, match="'in/a/b' lies below another object, 'a'"):
        plan("in/", ["in/a", "in/a/b"])


@given(st.text(alphabet="a./\\\0", min_size=1, max_size=12))
def test_no_key_whatsoever_is_placed_outside(rest: str) -> None:
    try:
        paths = plan("in/", [f"in/{rest}"])
    except ClientFaultError:
        return
    assert all(not path.startswith("/") and ".." not in path.split("/") for path in paths)


def checkpoint(prefix: str) -> dict[str, str]:
    return {"s3Uri": f"s3://{BUCKET}/{prefix}", "localPath": "/opt/jobs/checkpoints"}


def test_checkpoints_are_kept_and_restored_by_the_next_job(workbench: Workbench) -> None:
    put(workbench, "counted-elsewhere/other")
    for expected in ("1", "2"):
        ended = workbench.complete({"job/main.py": COUNT}, checkpointConfig=checkpoint("counted"))
        assert f"count {expected}" in ended.log
        body = workbench.s3.get_object(Bucket=BUCKET, Key="counted/deep/count")["Body"].read()
        assert body == expected.encode()


def test_failed_job_keeps_its_checkpoints(workbench: Workbench) -> None:
    workbench.complete({"job/main.py": COUNT + "raise ValueError"}, checkpointConfig=checkpoint("failed"))
    assert workbench.keys("failed") == {"failed/deep/count"}


def test_checkpoints_arrive_while_the_job_runs_and_links_are_not_followed(workbench: Workbench) -> None:
    code = COUNT + "(folder / 'link').symlink_to('/etc/passwd')\ntime.sleep(600)\n"
    run = workbench.run({"job/main.py": code}, checkpointConfig=checkpoint("running"))
    job = workbench.start(run)
    deadline = time.monotonic() + 60
    while not workbench.keys("running"):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    job.stop()
    job.wait()
    assert workbench.keys("running") == {"running/deep/count"}


@pytest.mark.parametrize("path", ["relative", "/opt/../../etc"])
def test_checkpoint_path_that_leaves_the_host_is_refused(workbench: Workbench, path: str) -> None:
    ended = workbench.complete(
        {"job/main.py": ""}, checkpointConfig={"s3Uri": f"s3://{BUCKET}/refused", "localPath": path}
    )
    assert f"checkpointConfig.localPath '{path}'" in ended.reason
