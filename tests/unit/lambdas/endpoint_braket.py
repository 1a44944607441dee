"""The embedded Braket endpoint in place of the fake service: its own rules, store and life cycle, in this process."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from werkzeug.test import EnvironBuilder, run_wsgi_app
from werkzeug.wrappers import Response

from hybridjobs.local.braket import life_cycle
from hybridjobs.local.braket.cloud_facts import EmulatedCloudFacts
from hybridjobs.local.braket.database import Database
from hybridjobs.local.braket.job_store import JobStore
from hybridjobs.local.braket.jobs import JobOperations
from hybridjobs.local.braket.rules import RuleContext
from hybridjobs.local.braket.settings import EndpointSettings
from hybridjobs.local.braket.wsgi import BraketApplication
from hybridjobs.local.runners.base import Outcome
from tests.unit.lambdas.fake_braket import TERMINAL, FakeBraket, Raw


class _Instances:
    """Takes every job at once, as an account with free instances; it ends when the test says so."""

    def __init__(self, store: JobStore) -> None:
        self._store = store

    def notify(self) -> None:
        while job := self._store.take_next(life_cycle.now()):
            self._store.update(job.arn, lambda taken: life_cycle.started(taken, life_cycle.now()))

    def end(self, arn: str) -> None:
        """A cancelled job is CANCELLING until the test ends it."""


class EndpointBraket(FakeBraket):
    """What a test asks and does is the fake's; what answers the client is the endpoint."""

    def __init__(self, now: Callable[[], datetime], number: int = 0) -> None:
        super().__init__(now, number=number)
        self._folder = TemporaryDirectory()
        self._database = Database(Path(self._folder.name) / "braket.sqlite")
        self._store = JobStore(self._database)
        settings = EndpointSettings(max_concurrent_jobs=self.max_concurrent_jobs)
        context = RuleContext(settings, EmulatedCloudFacts({}))
        operations = JobOperations(self._store, _Instances(self._store), context)  # type: ignore[arg-type]
        self._application = BraketApplication(operations.handlers())

    def close(self) -> None:
        self._database.close()
        self._folder.cleanup()

    def answer(self, request: Any, **_: Any) -> AWSResponse:
        address = urlsplit(request.url)
        headers = {
            name: value.decode() if isinstance(value, bytes) else value for name, value in request.headers.items()
        }
        builder = EnvironBuilder(address.path, method=request.method, headers=headers, data=request.body or b"")
        environ = builder.get_environ() | {"RAW_URI": address.path}
        with self._at_this_moment():
            response = Response(*run_wsgi_app(self._application, environ))
        self._read()
        return AWSResponse(
            request.url, response.status_code, HTTPHeaders.from_dict(dict(response.headers)), Raw(response.data)
        )

    def end(self, name: str, status: str, *, reason: str | None = None, billable: int | None = None) -> str:
        arn = self.arn(name)
        outcome = Outcome(reason or "failed" if status == "FAILED" else None)
        with self._at_this_moment():
            self._store.update(arn, lambda job: life_cycle.ended(job, outcome, life_cycle.now()))
        self._read()
        return arn

    def _at_this_moment(self) -> Any:
        moment = self.now()
        return patch.object(life_cycle, "now", lambda: moment.replace(microsecond=moment.microsecond // 1000 * 1000))

    def _read(self) -> None:
        self.jobs = {
            job.arn: {**job.request, "jobArn": job.arn, "status": job.status} for job in self._store.newest_first()
        }
        living = [job for job in self.jobs.values() if job["status"] not in TERMINAL]
        self.most_at_once = max(self.most_at_once, len(living))
