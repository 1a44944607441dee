"""SearchJobs: the documented filters, refusals of others, and pages that miss nothing."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from hybridjobs.local.braket.endpoint import EndpointSettings
from tests.local.braket.fake_cloud import Cloud, code_of
from tests.local.braket.fake_runner import FakeRunner

StartCloud = Callable[..., Cloud]


def test_searches_filter_by_name_device_arn_and_time(cloud: Cloud) -> None:
    first, second, third = cloud.create_many(3)
    created = cloud.braket.get_job(jobArn=second)["createdAt"]
    week = timedelta(days=7)

    def found(name: str, operator: Any, *values: str) -> set[str]:
        filters: Any = [{"name": name, "operator": operator, "values": list(values)}]
        return {job["jobArn"] for job in cloud.braket.search_jobs(filters=filters)["jobs"]}

    everything = {first, second, third}
    assert found("jobName", "EQUAL", "job-1") == {second}
    assert found("jobName", "CONTAINS", "ob-") == everything
    assert found("jobArn", "EQUAL", third) == {third}
    assert found("deviceArn", "EQUAL", "local:pennylane/lightning.qubit") == everything
    assert found("deviceArn", "EQUAL", "local:pennylane/lightning.gpu") == set()
    assert found("createdAt", "EQUAL", created.isoformat()) >= {second}
    assert found("createdAt", "LT", (created - week).isoformat()) == set()
    assert found("createdAt", "LTE", created.isoformat()) >= {first, second}
    assert found("createdAt", "GT", (created - week).isoformat()) == everything
    assert found("createdAt", "GTE", created.isoformat()) >= {second, third}
    assert found("createdAt", "BETWEEN", (created - week).isoformat(), (created + week).isoformat()) == everything


@pytest.mark.parametrize(
    ("filters", "field"),
    [
        ([{"name": "status", "operator": "EQUAL", "values": ["RUNNING"]}], r"filters\[0\].name"),
        ([{"name": "jobName", "operator": "GT", "values": ["a"]}], r"filters\[0\].operator"),
        ([{"name": "createdAt", "operator": "BETWEEN", "values": ["2026-01-01T00:00:00Z"]}], r"filters\[0\].values"),
        ([{"name": "createdAt", "operator": "LT", "values": ["yesterday"]}], "yesterday"),
        (
            [
                {"name": "jobName", "operator": "EQUAL", "values": ["a"]},
                {"name": "jobArn", "operator": "EQUAL", "values": ["b"]},
            ],
            "combined",
        ),
    ],
)
def test_searches_that_the_service_does_not_document_are_refused(cloud: Cloud, filters: Any, field: str) -> None:
    with pytest.raises(ClientError, match=field) as error:
        cloud.braket.search_jobs(filters=filters)
    assert code_of(error) == ("ValidationException", 400)


def test_pages_hold_every_job_once_although_jobs_are_added_meanwhile(start_cloud: StartCloud) -> None:
    cloud = start_cloud(
        runner=FakeRunner(finish_at_once=True),
        settings=EndpointSettings(max_concurrent_jobs=50, instance_quotas={"ml.m5.large": 50}),
    )
    arns = cloud.create_many(7)
    pages = cloud.braket.get_paginator("search_jobs").paginate(filters=[], PaginationConfig={"PageSize": 3})
    seen = []
    for page in pages:
        assert len(page["jobs"]) <= 3
        seen += [job["jobArn"] for job in page["jobs"]]
        cloud.create(jobName="added-meanwhile")
    assert seen == arns[::-1]


def test_a_page_token_of_another_search_is_refused(cloud: Cloud) -> None:
    cloud.create_many(2)
    token = cloud.braket.search_jobs(filters=[], maxResults=1)["nextToken"]
    filters: Any = [{"name": "jobName", "operator": "EQUAL", "values": ["job-0"]}]
    for other in (token, "nonsense"):
        with pytest.raises(ClientError, match="nextToken") as error:
            cloud.braket.search_jobs(filters=filters, nextToken=other)
        assert code_of(error) == ("ValidationException", 400)
