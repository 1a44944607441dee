"""The record of a job that has ended: what is published of it. No AWS here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from clock import timestamp
from collect_result.billing import billable_seconds, cost_usd

if TYPE_CHECKING:
    from datetime import datetime

    from aws.braket_jobs import Job
    from collect_result.results_archive import Results
    from launches import Launch

SCHEMA = "hybrid-jobs/record/1"


def record_key(job_name: str) -> str:
    """Return where a job's record is published."""
    return f"records/{job_name}.json"


def make_record(launch: Launch, job: Job, results: Results, log_tail: list[str], *, stage: str) -> dict[str, Any]:
    """Put a record together; equal arguments make equal records.

    Args:
        launch: What was asked for.
        job: What Braket says of it.
        results: What the job saved.
        log_tail: The last lines it printed, for a job that didn't complete.
        stage: The stage's name.
    """
    spec = launch.spec or {}
    instance = spec.get("instance") or {
        "type": job.instance.get("instanceType"),
        "count": job.instance.get("instanceCount", 1),
        "volume_gb": job.instance.get("volumeSizeInGb"),
    }
    seconds = billable_seconds(job.billable, job.started_at, job.ended_at)
    count = int(instance["count"])
    most = spec.get("max_runtime_seconds")
    return {
        "schema": SCHEMA,
        "job_name": job.name,
        "job_arn": job.arn,
        "status": job.status,
        "reason": job.failure_reason or _reason(job, results),
        "log_tail": log_tail,
        "stage": stage,
        "spec": spec,
        "spec_hash": launch.identity.spec_hash,
        "stack_id": launch.identity.stack_id,
        "logical_id": launch.identity.logical_id,
        "run": launch.identity.run,
        "device": spec.get("device") or job.device,
        "instance": instance,
        "image_digest": launch.image_digest,
        "created_at": _time(job.created_at),
        "started_at": _time(job.started_at),
        "ended_at": _time(job.ended_at),
        "billable_seconds": seconds,
        "price": launch.price,
        "cost_usd": cost_usd(seconds, launch.price, count),
        "worst_case_usd": None if most is None else cost_usd(float(most), launch.price, count),
        "results": results.data,
        "source_sha256": (spec.get("source") or {}).get("sha256"),
    }


def read_record(content: bytes) -> dict[str, Any] | None:
    """Read what the record's key holds; None if that is no record, such as the half of one."""
    try:
        record = json.loads(content)
    except ValueError:
        return None
    return record if isinstance(record, dict) and record.get("schema") == SCHEMA else None


def document_bytes(document: dict[str, Any]) -> bytes:
    """Write a record or a summary as JSON that people can read and that has one form only."""
    text = json.dumps(document, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    # Half of a surrogate pair, which Python's JSON knows and many readers refuse, becomes the replacement character.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _reason(job: Job, results: Results) -> str | None:
    if job.status == "COMPLETED":
        return results.problem
    if job.status == "FAILED":
        return "Braket gives no reason: read log_tail"
    return None


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else timestamp(moment)
