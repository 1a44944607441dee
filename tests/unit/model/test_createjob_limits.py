"""The model's limits against those that the AWS SDK ships for CreateJob."""

import re
from collections.abc import Callable
from typing import Any

import botocore.session
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hybridjobs.model.errors import SpecError
from hybridjobs.model.instances import INSTANCE_TYPES, RETIRED
from hybridjobs.model.job_fields import (
    LONGEST_JOB_NAME,
    LONGEST_RUNTIME_SECONDS,
    MOST_HYPERPARAMETERS,
    MOST_INPUT_CHANNELS,
)
from hybridjobs.model.job_spec import JobSpec

MakeSpec = Callable[..., JobSpec]

LAUNCH_SUFFIX = "-0123456789"


@pytest.fixture(scope="module")
def create_job() -> Any:
    """The members of the CreateJob request."""
    model = botocore.session.get_session().get_service_model("braket")
    request = model.operation_model("CreateJob").input_shape
    assert request is not None
    return request.members


def test_instance_types_are_those_of_the_api(create_job: Any) -> None:
    known = set(create_job["instanceConfig"].members["instanceType"].enum)

    assert set(INSTANCE_TYPES) <= known
    # Older SDKs still list what the service has retired.
    assert known <= set(INSTANCE_TYPES) | set(RETIRED)


def test_numbers_are_those_of_the_api(create_job: Any) -> None:
    runtime = create_job["stoppingCondition"].members["maxRuntimeInSeconds"].metadata
    hyperparameters = create_job["hyperParameters"]

    assert create_job["jobName"].metadata["max"] == LONGEST_JOB_NAME + len(LAUNCH_SUFFIX)
    assert (runtime["min"], runtime["max"]) == (1, LONGEST_RUNTIME_SECONDS)
    assert hyperparameters.metadata["max"] == MOST_HYPERPARAMETERS
    assert create_job["inputDataConfig"].metadata["max"] == MOST_INPUT_CHANNELS


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.text(st.sampled_from("aZ09-_."), min_size=0, max_size=42))
def test_every_name_with_its_suffix_is_accepted_exactly_when_the_api_accepts_it(
    create_job: Any, make_spec: MakeSpec, name: str
) -> None:
    limits = create_job["jobName"].metadata
    launched = name + LAUNCH_SUFFIX
    accepted_by_api = bool(re.fullmatch(limits["pattern"], launched)) and len(launched) <= limits["max"]

    try:
        make_spec(name)
        accepted = True
    except SpecError:
        accepted = False

    # A name may end with dashes for the API, because the suffix follows; such names are refused as slips.
    assert accepted == (accepted_by_api and not name.endswith("-") and bool(name))


@pytest.mark.parametrize(("length", "accepted"), [(1, True), (256, True), (257, False)])
def test_length_of_a_hyperparameter_name(make_spec: MakeSpec, length: int, accepted: bool) -> None:
    check(make_spec, accepted, hyperparameters={"k" * length: "1"})


@pytest.mark.parametrize(("length", "accepted"), [(0, False), (1, True), (2500, True), (2501, False)])
def test_length_of_a_hyperparameter_value(make_spec: MakeSpec, length: int, accepted: bool) -> None:
    check(make_spec, accepted, hyperparameters={"k": "v" * length})


@pytest.mark.parametrize(("count", "accepted"), [(0, True), (100, True), (101, False)])
def test_number_of_hyperparameters(make_spec: MakeSpec, count: int, accepted: bool) -> None:
    check(make_spec, accepted, hyperparameters={f"k{number}": number for number in range(count)})


@pytest.mark.parametrize(("count", "accepted"), [(98, True), (99, False)])
def test_data_parallelism_needs_two_hyperparameters_of_the_hundred(
    make_spec: MakeSpec, count: int, accepted: bool
) -> None:
    check(
        make_spec,
        accepted,
        distribution="data_parallel",
        instance={"type": "ml.m5.2xlarge", "count": 2},
        hyperparameters={f"k{number}": number for number in range(count)},
    )


@pytest.mark.parametrize(("count", "accepted"), [(20, True), (21, False)])
def test_number_of_input_channels(make_spec: MakeSpec, count: int, accepted: bool) -> None:
    check(make_spec, accepted, inputs={f"channel-{number}": "inputs/graph" for number in range(count)})


@pytest.mark.parametrize(
    ("channel", "accepted"),
    [("input-graph", True), ("a.b_C-1", True), ("a" * 64, True), ("a" * 65, False), ("a b", False), ("..", False)],
)
def test_names_of_input_channels(make_spec: MakeSpec, channel: str, accepted: bool) -> None:
    check(make_spec, accepted, inputs={channel: "inputs/graph"})


@pytest.mark.parametrize(("seconds", "accepted"), [(0, False), (1, True), (432_000, True), (432_001, False)])
def test_run_time(make_spec: MakeSpec, seconds: int, accepted: bool) -> None:
    check(make_spec, accepted, limits={"max_runtime_seconds": seconds})


@pytest.mark.parametrize(
    ("key", "number", "accepted"),
    [
        ("count", 0, False),
        ("count", 1, True),
        ("volume_gb", 0, False),
        ("volume_gb", 1, True),
        ("volume_gb", 16_384, True),
        ("volume_gb", 16_385, False),
    ],
)
def test_instances_and_volume(make_spec: MakeSpec, key: str, number: int, accepted: bool) -> None:
    check(make_spec, accepted, instance={"type": "ml.m5.2xlarge", key: number})


@pytest.mark.parametrize(
    ("device", "accepted"),
    [
        ("local:pennylane/lightning.qubit", True),
        ("local:hybridjobs/contraction", True),
        ("arn:aws:braket:::device/quantum-simulator/amazon/sv1", True),
        ("arn:aws:braket:us-east-1::device/qpu/ionq/Aria-1", True),
        ("local:a/" + "x" * 248, True),
        ("local:a/" + "x" * 249, False),
        ("", False),
        ("lightning.qubit", False),
        ("local:lightning.qubit", False),
        ("local:pennylane/lightning qubit", False),
        ("arn:aws:s3:::bucket", False),
    ],
)
def test_devices(make_spec: MakeSpec, device: str, accepted: bool) -> None:
    check(make_spec, accepted, device=device)


def check(make_spec: MakeSpec, accepted: bool, **changes: Any) -> None:
    if accepted:
        make_spec(**changes)
    else:
        with pytest.raises(SpecError):
            make_spec(**changes)
