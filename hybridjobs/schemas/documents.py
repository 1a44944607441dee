"""The published documents as types: the record of a job, and the summary of a benchmark run.

The JSON Schemas are made from these (`python -m hybridjobs.schemas`). Within a version fields are only added, so a
reader takes fields that it doesn't know, and every field that it knows is there.
"""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Time = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$", description="ISO 8601, in UTC.")]
Amount = Annotated[float, Field(ge=0)]
Status = Literal["COMPLETED", "FAILED", "CANCELLED"]


class Document(BaseModel):
    """A document, or a part of one."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)


class Instance(Document):
    """The machines of a job."""

    type: str
    count: Annotated[int, Field(ge=1)]
    volume_gb: Annotated[int, Field(ge=1)]


class Price(Document):
    """What one instance costs, and who says so."""

    usd_per_minute: Amount
    source: str
    as_of: Annotated[str, Field(description="The date of the price, ISO 8601.")]


class Record(Document):
    """What is known of a hybrid job that has ended; what is not known is null."""

    format: Literal["hybrid-jobs/record/1"] = Field(alias="schema")
    stage: str
    job_name: Annotated[str, Field(max_length=50)]
    job_arn: str
    stack_id: str
    logical_id: str
    run: Annotated[str, Field(description="The stage's run; raised to launch an unchanged job again.")]
    status: Status
    reason: Annotated[str | None, Field(description="Why the job failed, or why it has no results.")]
    log_tail: Annotated[list[str], Field(description="The last lines of a job that did not complete.", max_length=50)]
    spec: Annotated[dict[str, Any], Field(description="The launch document: everything that was asked for.")]
    spec_hash: Annotated[Sha256, Field(description="SHA-256 of the launch document.")]
    source_sha256: Annotated[Sha256 | None, Field(description="SHA-256 of the source archive.")]
    image_digest: Annotated[
        str | None, Field(pattern="^sha256:[0-9a-f]{64}$", description="The image that ran; null for a stock image.")
    ]
    device: str
    instance: Instance
    created_at: Time
    started_at: Time | None
    ended_at: Time | None
    billable_seconds: Annotated[Amount | None, Field(description="Billed time of one instance.")]
    price: Price | None
    cost_usd: Annotated[Amount | None, Field(description="Cost of the billed time of all instances.")]
    worst_case_usd: Annotated[Amount | None, Field(description="Cost of the time limit.")]
    results: Annotated[
        dict[str, Any] | None, Field(description="What the job passed to save_job_result; null for NaN and infinities.")
    ]


class BenchmarkJob(Document):
    """One job of a benchmark run."""

    job: Annotated[str, Field(description="The job's name in its jobs.toml.")]
    job_name: str
    baseline: bool
    status: Annotated[
        Literal["COMPLETED", "FAILED", "CANCELLED", "REJECTED"], Field(description="REJECTED: it was never started.")
    ]
    reason: str | None
    device: str
    instance: Instance
    distribution: str | None
    seconds_per_iteration: Annotated[
        Amount | None, Field(description="Median over all iterations but the first, if there are others.")
    ]
    iteration_cost_usd: Amount | None
    speed_up: Annotated[Amount | None, Field(description="Baseline's time an iteration over this job's.")]
    cost_ratio: Annotated[Amount | None, Field(description="This job's cost an iteration over the baseline's.")]
    billable_seconds: Amount | None
    cost_usd: Amount | None
    price: Price | None
    results: Annotated[dict[str, Any], Field(description="The part of the job's results that the comparison needs.")]


class PublishedInstance(Document):
    """The machines of a published figure."""

    type: str
    count: Annotated[int, Field(ge=1)]


class PublishedFigure(Document):
    """A figure that others have published for the same benchmark."""

    device: str
    instance: PublishedInstance
    gpus: Annotated[int, Field(ge=0, description="How many GPUs worked.")]
    distribution: str
    seconds_per_iteration: Amount
    iterations: Annotated[int, Field(ge=1)]
    cost_usd: Amount
    source: str


class BenchmarkSummary(Document):
    """The jobs of a benchmark run side by side, once all of them have ended."""

    format: Literal["hybrid-jobs/benchmark-summary/1"] = Field(alias="schema")
    benchmark: str
    run: str
    stage: str
    stack_id: str
    requested_at: Annotated[Time, Field(description="When the last of the run's jobs was asked for.")]
    baseline: Annotated[str | None, Field(description="The job that the others are compared with.")]
    jobs: Annotated[list[BenchmarkJob], Field(min_length=1)]
    published: list[PublishedFigure]


DOCUMENTS: Final[Mapping[str, type[Document]]] = MappingProxyType(
    {"record-1": Record, "benchmark-summary-1": BenchmarkSummary}
)


def schema_text(name: str) -> str:
    """The JSON Schema of the document `name`, one of DOCUMENTS, as its file holds it."""
    schema = DOCUMENTS[name].model_json_schema(by_alias=True)
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"hybrid-jobs/{name}.json"}
    return json.dumps(dialect | schema, indent=2) + "\n"
