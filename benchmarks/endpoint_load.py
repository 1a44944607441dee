"""How the embedded cloud bears many jobs at once: every one must end, none may be lost, memory must stay bounded.

    .venv/bin/python benchmarks/endpoint_load.py [--jobs 200] [--json]

Starts an embedded cloud of its own in a temporary folder, with the quota of concurrent jobs raised, and submits trivial
jobs, which run as real processes. `seconds` is from the first CreateJob call until the last job has ended, `ratio` the
seconds per job over those of a job that has the cloud to itself, `peak_rss_mb` the most memory (10**6 bytes) that the
cloud's one process (AWS emulator and Braket endpoint) ever held, `jobs` how many were COMPLETED.
"""

import argparse
import io
import json
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hybridjobs.local import daemon
from hybridjobs.local.braket.endpoint import BraketEndpoint, EndpointSettings
from hybridjobs.local.cloud import LocalCloud
from hybridjobs.local.run_folder import RunFolder
from hybridjobs.local.runners.process import ProcessRunner

SERVE = "--serve"
BUCKET = "amazon-braket-endpoint-load"
ROLE = "AmazonBraketJobsExecutionRole-EndpointLoad"
INSTANCE = "ml.m5.large"
ENDED = frozenset({"COMPLETED", "FAILED", "CANCELLED"})
SUBMITTERS = 8
PATIENCE_SECONDS_A_JOB = 30.0
TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "braket.amazonaws.com"}, "Action": "sts:AssumeRole"},
    ],
}


@dataclass(frozen=True)
class Row:
    """One line of the result; the module's docstring says what the figures mean."""

    name: str
    seconds: float
    ratio: float
    peak_rss_mb: float
    jobs: int


def endpoint(
    folder: Path, environment: dict[str, str], publish_event: Callable[[Mapping[str, Any]], None]
) -> BraketEndpoint:
    """The daemon's own endpoint but for the quotas; how many jobs run at once stays bounded by the cores."""
    unlimited = EndpointSettings(max_concurrent_jobs=10_000, instance_quotas={INSTANCE: 10_000})
    return BraketEndpoint(folder, ProcessRunner(), environment, publish_event, unlimited)


def source() -> bytes:
    """Pack a job that does nothing."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        content = b"print('done')\n"
        header = tarfile.TarInfo("trivial/job.py")
        header.size = len(content)
        archive.addfile(header, io.BytesIO(content))
    return packed.getvalue()


def prepare(cloud: LocalCloud) -> None:
    """Make what every job needs: its role, its bucket, its source."""
    cloud.client("iam").create_role(RoleName=ROLE, Path="/service-role/", AssumeRolePolicyDocument=json.dumps(TRUST))
    s3 = cloud.client("s3")
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(Bucket=BUCKET, Key="source.tar.gz", Body=source())


def request(name: str) -> dict[str, Any]:
    """The CreateJob request of one job."""
    return {
        "clientToken": name,
        "jobName": name,
        "roleArn": f"arn:aws:iam::000000000000:role/service-role/{ROLE}",
        "algorithmSpecification": {
            "scriptModeConfig": {
                "entryPoint": "trivial.job",
                "s3Uri": f"s3://{BUCKET}/source.tar.gz",
                "compressionType": "GZIP",
            }
        },
        "outputDataConfig": {"s3Path": f"s3://{BUCKET}/jobs/{name}/data"},
        "instanceConfig": {"instanceType": INSTANCE, "volumeSizeInGb": 1},
        "deviceConfig": {"device": "local:none/none"},
        "stoppingCondition": {"maxRuntimeInSeconds": 600},
    }


def states(braket: Any) -> dict[str, str]:
    """Return the state of every job that the endpoint knows, by its name."""
    pages = braket.get_paginator("search_jobs").paginate(filters=[])
    return {job["jobName"]: job["status"] for page in pages for job in page["jobs"]}


def run_jobs(braket: Any, names: Sequence[str]) -> float:
    """Submit all jobs at once, wait until they have ended and return the seconds; RuntimeError when one is lost."""
    begin = time.monotonic()
    with ThreadPoolExecutor(SUBMITTERS) as pool:
        list(pool.map(lambda name: braket.create_job(**request(name)), names))
    deadline = time.monotonic() + PATIENCE_SECONDS_A_JOB * len(names)
    while True:
        known = states(braket)
        lost = [name for name in names if name not in known]
        open_jobs = [name for name in names if known.get(name) not in ENDED]
        if lost:
            raise RuntimeError(f"{len(lost)} jobs were accepted and are unknown now: {lost[:5]}")
        if not open_jobs:
            return time.monotonic() - begin
        if time.monotonic() > deadline:
            raise RuntimeError(f"{len(open_jobs)} jobs have not ended: {open_jobs[:5]}")
        time.sleep(0.05 if len(names) == 1 else 0.5)


def peak_rss_mb(pid: int) -> float:
    """Return the most memory that process `pid` has held so far, as Linux counts it, in 10**6 bytes."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024 / 1e6


def measure(jobs: int) -> list[Row]:
    """Run one job alone and then `jobs` at once; RuntimeError when one is lost, hangs or fails."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="endpoint-load-") as folder:
        root = Path(folder).resolve()
        with LocalCloud(root, daemon=(str(Path(__file__).resolve()), SERVE)).session() as cloud:
            prepare(cloud)
            braket = cloud.client("braket")
            run_jobs(braket, ["first"])  # the clients of the endpoint are made with the first job
            state = RunFolder(root).read_state()
            assert state is not None
            for name, names in (
                ("one job alone", ["alone"]),
                (f"{jobs} jobs at once", [f"job-{number}" for number in range(jobs)]),
            ):
                seconds = run_jobs(braket, names)
                each = seconds / len(names)
                ratio = each / rows[0].seconds if rows else 1.0
                known = states(braket)
                completed = sum(known[job] == "COMPLETED" for job in names)
                rows.append(Row(name, round(seconds, 2), round(ratio, 2), round(peak_rss_mb(state.pid), 1), completed))
                if completed != len(names):
                    raise RuntimeError(f"{len(names) - completed} of {len(names)} jobs did not succeed: {known}")
    return rows


def main() -> int:
    """Measure and print."""
    if SERVE in sys.argv:
        sys.argv.remove(SERVE)
        daemon.main(endpoint)
    parser = argparse.ArgumentParser(description="Many jobs at once on an embedded cloud of its own.")
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--json", action="store_true", help="print one JSON object with the key rows")
    arguments = parser.parse_args()
    rows = measure(arguments.jobs)
    if arguments.json:
        print(json.dumps({"rows": [asdict(row) for row in rows]}))
        return 0
    print(f"{'':24}{'seconds':>10}{'ratio':>8}{'peak RSS MB':>13}{'jobs':>6}")
    for row in rows:
        print(f"{row.name:24}{row.seconds:10.2f}{row.ratio:8.2f}{row.peak_rss_mb:13.1f}{row.jobs:6d}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
