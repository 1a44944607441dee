"""The operations on jobs: CreateJob, GetJob, CancelJob, SearchJobs."""

import hashlib
import json
import secrets
import uuid
from collections.abc import Mapping
from typing import Any

from hybridjobs.local.braket import life_cycle
from hybridjobs.local.braket.errors import ServiceError
from hybridjobs.local.braket.job_store import JobStore
from hybridjobs.local.braket.life_cycle import DEFAULT_MAXIMUM_RUNTIME_SECONDS, Job
from hybridjobs.local.braket.rules import DEFAULT_CHECKPOINT_FOLDER, RuleContext, check_create_job, check_quotas
from hybridjobs.local.braket.search import EQUAL, TEXT, TIME, FilterRule, search
from hybridjobs.local.braket.workers import JobWorkers
from hybridjobs.local.braket.wsgi import Handler

# Positions above this one are not told apart by the service.
LAST_SHOWN_POSITION = 15

SEARCH_RULES: Mapping[str, FilterRule] = {
    "jobArn": FilterRule(EQUAL, lambda job: job.arn, alone=True),
    "jobName": FilterRule(TEXT, lambda job: job.name),
    "deviceArn": FilterRule(EQUAL, lambda job: job.device),
    "createdAt": FilterRule(TIME, lambda job: job.created_at),
}


class JobOperations:
    """Answers the operations on jobs from the store, and wakes and stops the workers."""

    def __init__(self, store: JobStore, workers: JobWorkers, context: RuleContext):
        self._store = store
        self._workers = workers
        self._context = context

    def handlers(self) -> dict[str, Handler]:
        """Return the handlers by operation name."""
        return {
            "CreateJob": self.create,
            "GetJob": self.get,
            "CancelJob": self.cancel,
            "SearchJobs": self.search,
        }

    def create(self, request: dict[str, Any]) -> Mapping[str, Any]:
        """Accept a job, once for each client token."""
        client_token = request.pop("clientToken")
        fingerprint = fingerprint_of(request)
        job = self._store.repeated(client_token, fingerprint)
        if job is None:
            settings = self._context.settings
            check_create_job(request, self._context)
            job = self._store.create(
                self._new_job(client_token, fingerprint, request),
                admit=lambda active: check_quotas(request, active, settings),
            )
            self._workers.notify()
        return {"jobArn": job.arn}

    def _new_job(self, client_token: str, fingerprint: str, request: dict[str, Any]) -> Job:
        settings = self._context.settings
        job_id = str(uuid.uuid4())
        tags = request.pop("tags", {})
        job = Job(
            job_id=job_id,
            arn=f"arn:aws:braket:{settings.region}:{settings.account}:job/{job_id}",
            job_token=secrets.token_urlsafe(32),
            client_token=client_token,
            fingerprint=fingerprint,
            request=with_defaults(request),
            created_at=life_cycle.now(),
            tags=tags,
        )
        return life_cycle.queued(job)

    def get(self, request: dict[str, Any]) -> Mapping[str, Any]:
        """Describe a job; where it stands in the queue only on request."""
        job = self._store.get(request["jobArn"])
        queue_info = self._queue_info(job) if "QueueInfo" in request.get("additionalAttributeNames", ()) else None
        return {
            **job.request,
            "jobArn": job.arn,
            "status": job.status,
            "failureReason": job.failure_reason,
            "createdAt": job.created_at,
            "startedAt": job.started_at,
            "endedAt": job.ended_at,
            "billableDuration": job.billable_seconds,
            "events": [
                {"eventType": event.type, "timeOfEvent": event.time, "message": event.message} for event in job.events
            ],
            "tags": job.tags,
            "queueInfo": queue_info,
        }

    def _queue_info(self, job: Job) -> Mapping[str, Any]:
        if job.status == "QUEUED":
            # A worker that has just taken the job is about to start it: it is still the next one.
            position = max(1, self._store.position(job)) if not job.taken else 1
            shown = str(position) if position <= LAST_SHOWN_POSITION else f">{LAST_SHOWN_POSITION}"
            return {"queue": "JOBS_QUEUE", "position": shown}
        message = f"Job is in {job.status} status. AmazonBraket does not show queue position for this status."
        return {"queue": "JOBS_QUEUE", "position": "None", "message": message}

    def cancel(self, request: dict[str, Any]) -> Mapping[str, Any]:
        """Cancel a job; one that has ended otherwise is a conflict, one that is cancelled already is not."""
        job = self._store.update(request["jobArn"], lambda job: life_cycle.cancel_requested(job, life_cycle.now()))
        if job.status in {"COMPLETED", "FAILED"}:
            raise ServiceError("ConflictException", f"Job '{job.arn}' is {job.status} and can't be cancelled any more")
        if job.status == "CANCELLING":
            self._workers.end(job.arn)
        return {"jobArn": job.arn, "cancellationStatus": job.status}

    def search(self, request: dict[str, Any]) -> Mapping[str, Any]:
        """Find jobs, newest first, a page at a time."""
        page = search(request, SEARCH_RULES, self._store.newest_first)
        return {"jobs": [_summary(job) for job in page.found], "nextToken": page.next_token}


def with_defaults(request: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in what the service documents as default, so that readers and runners find one form only."""
    filled = {
        **request,
        "instanceConfig": {"instanceCount": 1, **request["instanceConfig"]},
        "stoppingCondition": {
            "maxRuntimeInSeconds": DEFAULT_MAXIMUM_RUNTIME_SECONDS,
            **request.get("stoppingCondition", {}),
        },
    }
    if "checkpointConfig" in request:
        filled["checkpointConfig"] = {"localPath": DEFAULT_CHECKPOINT_FOLDER, **request["checkpointConfig"]}
    return filled


def fingerprint_of(request: Mapping[str, Any]) -> str:
    """Return what two requests have in common exactly if they are the same, clientToken aside."""
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()


def _summary(job: Job) -> Mapping[str, Any]:
    return {
        "status": job.status,
        "jobArn": job.arn,
        "jobName": job.name,
        "device": job.device,
        "createdAt": job.created_at,
        "startedAt": job.started_at,
        "endedAt": job.ended_at,
        "tags": job.tags,
    }
