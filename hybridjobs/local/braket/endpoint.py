"""The Braket endpoint: composes store, workers, events and operations behind one loopback listener."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from hybridjobs.local.braket import life_cycle
from hybridjobs.local.braket.cloud_facts import EmulatedCloudFacts
from hybridjobs.local.braket.database import Database
from hybridjobs.local.braket.device_operations import DeviceOperations
from hybridjobs.local.braket.events import EventPublisher
from hybridjobs.local.braket.job_store import JobStore
from hybridjobs.local.braket.jobs import JobOperations
from hybridjobs.local.braket.rules import RuleContext
from hybridjobs.local.braket.settings import EndpointSettings
from hybridjobs.local.braket.tags import TaggedKind, TagOperations, Tags
from hybridjobs.local.braket.task_store import TaskStore
from hybridjobs.local.braket.task_workers import S3ResultStore, TaskWorkers
from hybridjobs.local.braket.tasks import TaskOperations
from hybridjobs.local.braket.workers import RESTARTED_REASON, JobWorkers
from hybridjobs.local.braket.wsgi import BraketApplication
from hybridjobs.local.runners.base import Runner

__all__ = ["BraketEndpoint", "EndpointSettings"]

LOOPBACK = "127.0.0.1"
# How long the listener may take to notice that it is to close.
_POLL_SECONDS = 0.1

_DEFAULT_SETTINGS = EndpointSettings()


class BraketEndpoint:
    """The Amazon Braket API on a free port of 127.0.0.1, executing jobs with `runner`.

    `folder` holds everything that outlives the process (`braket.sqlite`) and the jobs' private folders.
    `aws_environment` points jobs, and the checks of roles, buckets and images, at the embedded cloud. `publish_event`
    gets one EventBridge PutEvents entry for each state change, at least once: it is called again when it raised.
    """

    def __init__(
        self,
        folder: Path,
        runner: Runner,
        aws_environment: Mapping[str, str],
        publish_event: Callable[[Mapping[str, Any]], None],
        settings: EndpointSettings = _DEFAULT_SETTINGS,
    ):
        self._folder = folder
        self._runner = runner
        self._aws_environment = dict(aws_environment)
        self._publish_event = publish_event
        self._settings = settings
        self._server: BaseWSGIServer | None = None

    def start(self) -> str:
        """Take up what an earlier process left, listen, and return the URL.

        Jobs that were running in an earlier process become FAILED, those that waited are executed.
        sqlite3.OperationalError when another process uses the folder.
        """
        self._database = Database(self._folder / "braket.sqlite")
        self._jobs = JobStore(self._database)
        self._tasks = TaskStore(self._database)
        self._jobs.interrupt_all(RESTARTED_REASON, life_cycle.now())
        self._tasks.interrupt_all(RESTARTED_REASON, life_cycle.now())
        self._events = EventPublisher(self._database, self._publish_event)
        count = max(1, min(self._settings.max_workers, self._settings.max_concurrent_jobs))
        job_environment = dict(self._aws_environment)
        self._workers = JobWorkers(self._jobs, self._runner, self._folder / "jobs", job_environment, count=count)
        results = S3ResultStore(self._aws_environment)
        self._task_workers = TaskWorkers(self._tasks, results, count=self._settings.max_task_workers)
        self._server = make_server(LOOPBACK, 0, self._application(), threaded=True, request_handler=_QuietHandler)
        url = f"http://{LOOPBACK}:{self._server.server_port}"
        # Jobs create quantum tasks here, and the port is known only now.
        job_environment["AWS_ENDPOINT_URL_BRAKET"] = url
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=[_POLL_SECONDS], name="braket-endpoint", daemon=True
        )
        self._events.start()
        self._workers.start()
        self._task_workers.start()
        self._thread.start()
        return url

    def stop(self) -> None:
        """Close the listener, end every job's processes, deliver what events can be; safe to call twice."""
        if self._server is None:
            return
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._server = None
        self._workers.stop()
        self._task_workers.stop()
        self._events.stop()
        self._database.close()

    def _application(self) -> BraketApplication:
        context = RuleContext(self._settings, EmulatedCloudFacts(self._aws_environment))
        jobs = JobOperations(self._jobs, self._workers, context)
        tasks = TaskOperations(self._tasks, self._jobs, self._task_workers, context)
        devices = DeviceOperations(self._jobs, self._tasks)
        tags = TagOperations(
            [
                TaggedKind(":job/", lambda arn: self._jobs.get(arn).tags, self._change_job_tags),
                TaggedKind(":quantum-task/", lambda arn: self._tasks.get(arn).tags, self._change_task_tags),
            ]
        )
        return BraketApplication({**jobs.handlers(), **tasks.handlers(), **devices.handlers(), **tags.handlers()})

    def _change_job_tags(self, arn: str, change: Callable[[Tags], Tags]) -> None:
        self._jobs.update(arn, lambda job: replace(job, tags=change(job.tags)))

    def _change_task_tags(self, arn: str, change: Callable[[Tags], Tags]) -> None:
        self._tasks.update(arn, lambda task: replace(task, tags=change(task.tags)))


class _QuietHandler(WSGIRequestHandler):
    """Keeps connections open between requests, for five minutes at most, and the access log silent."""

    protocol_version = "HTTP/1.1"
    timeout = 300

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Write nothing for a request."""
