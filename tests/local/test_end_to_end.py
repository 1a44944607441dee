"""Deploy, redeploy, change, fail, destroy: with the real CDK CLI, the real Lambdas and jobs that really run."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from hybridjobs.deployment import Deployment, Launch
from hybridjobs.local.cdk_cli import CdkCliError
from hybridjobs.local.cloud import LocalCloud
from tests.local.small_project import SmallProject

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(600)]


class World:
    """A small project in its own embedded cloud."""

    def __init__(self, cloud: LocalCloud, project: SmallProject) -> None:
        self.cloud = cloud
        self.project = project

    @property
    def deployment(self) -> Deployment:
        return Deployment.connect("local", self.cloud.environment())

    def braket_jobs(self) -> dict[str, str]:
        """Every job that Braket knows, name -> status."""
        pages = self.cloud.client("braket").get_paginator("search_jobs").paginate(filters=[])
        return {job["jobName"]: job["status"] for page in pages for job in page["jobs"]}

    def wait(self, prefix: str, *states: str) -> Launch:
        """The latest launch of the job `prefix` once it is in one of `states`."""
        deadline = time.monotonic() + 120
        while True:
            launch = [each for each in self.deployment.launches() if each.job_name.startswith(f"{prefix}-")][-1]
            if launch.state in states:
                return launch
            assert time.monotonic() < deadline, f"{launch} did not become {states}"
            time.sleep(0.3)

    def record(self, job_name: str) -> dict[str, Any]:
        [record] = [each for each in self.deployment.records() if each["job_name"] == job_name]
        return record


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    project = SmallProject(tmp_path_factory.mktemp("project"))
    with LocalCloud(project.root).session() as cloud:
        project.declare(quick="save", broken="raise")
        cloud.deploy("local")
        yield World(cloud, project)


def test_a_deployed_job_runs_and_leaves_a_record_with_its_results(world: World) -> None:
    launch = world.wait("quick", "COMPLETED")
    record = world.record(launch.job_name)
    assert record["status"] == "COMPLETED"
    assert record["results"] == {"seen": {"behaviour": "save", "layers": "1"}}
    assert record["job_arn"] == launch.job_arn
    assert record["worst_case_usd"] == pytest.approx(0.00768 * 700 / 60)
    assert 0 < record["cost_usd"] < record["worst_case_usd"]


def test_a_job_that_raises_is_a_failed_record_with_its_message_while_the_deploy_is_green(world: World) -> None:
    launch = world.wait("broken", "FAILED")
    record = world.record(launch.job_name)
    assert record["status"] == "FAILED"
    assert "ValueError: the ansatz has no layers" in record["reason"]
    assert any("ValueError: the ansatz has no layers" in line for line in record["log_tail"])
    stacks = world.cloud.client("cloudformation").describe_stacks()["Stacks"]
    assert {stack["StackStatus"] for stack in stacks} == {"CREATE_COMPLETE"}


def test_the_contract_names_what_was_deployed(world: World) -> None:
    parameters = world.deployment.parameters
    assert parameters["contract-version"] == "1"
    assert parameters["jobs/quick"] == world.wait("quick", "COMPLETED").job_name
    bucket = world.cloud.client("s3").list_objects_v2(Bucket=parameters["job-bucket"], Prefix="records/")
    assert bucket["KeyCount"] == 2
    role = parameters["job-role-arn"].rsplit("/", 1)[1]
    assert world.cloud.client("iam").get_role(RoleName=role)["Role"]["Path"] == "/service-role/"


def test_deploying_again_launches_nothing_and_a_changed_hyperparameter_launches_one_job(world: World) -> None:
    world.wait("quick", "COMPLETED")
    world.wait("broken", "FAILED")
    before = world.braket_jobs()

    world.cloud.deploy("local")
    assert world.braket_jobs() == before

    world.project.declare(layers=2, quick="save")
    world.cloud.deploy("local")
    launch = world.wait("quick", "COMPLETED")
    after = world.braket_jobs()
    assert after.keys() - before.keys() == {launch.job_name}
    assert {name: after[name] for name in before} == before
    assert world.record(launch.job_name)["results"]["seen"]["layers"] == "2"


def test_a_spec_that_braket_would_refuse_fails_at_synth_and_changes_nothing(world: World) -> None:
    before = world.braket_jobs()
    world.project.declare(layers=3, quick="save", instance="ml.p3.2xlarge")
    with pytest.raises(CdkCliError) as refusal:
        world.cloud.deploy("local")
    for part in ("jobs.toml", "jobs.quick.instance.type", "ml.p3.2xlarge", "ml.g6.xlarge"):
        assert part in str(refusal.value)
    assert world.braket_jobs() == before


def test_destroying_the_stacks_cancels_the_job_that_runs(world: World) -> None:
    world.project.declare(sleeper="sleep")
    world.cloud.deploy("local")
    launch = world.wait("sleeper", "STARTED")
    assert world.braket_jobs()[launch.job_name] in {"QUEUED", "RUNNING"}

    world.cloud.destroy("local")

    deadline = time.monotonic() + 60
    while world.braket_jobs()[launch.job_name] != "CANCELLED":
        assert time.monotonic() < deadline
        time.sleep(0.2)
    stacks = world.cloud.client("cloudformation").describe_stacks()["Stacks"]
    assert {stack["StackName"] for stack in stacks} <= {"CDKToolkit"}
