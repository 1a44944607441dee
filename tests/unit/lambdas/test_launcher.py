"""What CloudFormation can send to the launcher, and what must come of it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clock import timestamp
from errors import LaunchError
from launches import Released, State
from tests.unit.lambdas.stage import (
    ACCOUNT,
    REGION,
    REPOSITORY,
    Stage,
    StageClients,
    document_of,
    name_of,
    properties_of,
)

INVENTED = "HybridJobs-local-Jobs-JobA-1ABCDEFGHIJKL"
A = properties_of(document_of(hyperparameters={"p": "2"}))
B = properties_of(document_of(hyperparameters={"p": "3"}))
STOCK = "amazon-braket-base-jobs"
# It says of each image for which platform it is, so no configuration has to be downloaded.
INDEX = json.dumps(
    {
        "schemaVersion": 2,
        "mediaType": "application/vnd.docker.distribution.manifest.list.v2+json",
        "manifests": [{"digest": "sha256:0", "size": 1, "platform": {"os": "linux", "architecture": "amd64"}}],
    }
)


def test_two_deliveries_of_one_create_launch_one_job(stage: Stage) -> None:
    event = stage.event("Create", A)
    assert stage.launch(event) == stage.launch(event)
    assert len(stage.braket.jobs) == 1


def test_the_event_is_logged_without_the_url_that_answers_it(
    stage: Stage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from launch_job import handler

    monkeypatch.setattr(handler, "services", lambda: stage.services)
    handler.handle(stage.event("Create", A), None)
    output = capsys.readouterr().out
    assert json.loads(output.splitlines()[0])["event"]["LogicalResourceId"] == "JobA"
    assert "pre-signed" not in output


def test_an_update_of_the_spec_launches_the_new_one_and_the_delete_that_follows_cancels_the_old_one(
    stage: Stage,
) -> None:
    old = stage.create(A)
    new = stage.launch(stage.event("Update", B, physical_id=old, old=A))["PhysicalResourceId"]
    assert new != old
    assert len(stage.braket.active()) == 2, "an update itself cancels nothing: it may be rolled back"
    stage.launch(stage.event("Delete", A, physical_id=old))
    assert [job["jobName"] for job in stage.braket.active()] == [new]


def test_an_update_of_something_else_launches_nothing(stage: Stage) -> None:
    name = stage.create(A)
    changed = {**A, "Price": "null", "SourceArchive": "s3://elsewhere/source.tar.gz"}
    assert stage.launch(stage.event("Update", changed, physical_id=name, old=A))["PhysicalResourceId"] == name
    assert len(stage.braket.jobs) == 1


def test_a_raised_run_launches_the_same_spec_again(stage: Stage) -> None:
    name = stage.create(A)
    again = stage.launch(stage.event("Update", {**A, "Run": "2"}, physical_id=name, old=A))["PhysicalResourceId"]
    assert again != name
    assert len(stage.braket.jobs) == 2


def test_the_rollback_of_a_finished_update_goes_back_without_a_relaunch(stage: Stage) -> None:
    old = stage.create(A)
    stage.changed(stage.braket.end(old, "COMPLETED"))
    new = stage.launch(stage.event("Update", B, physical_id=old, old=A))["PhysicalResourceId"]
    back = stage.launch(stage.event("Update", A, physical_id=new, old=B))
    assert back["PhysicalResourceId"] == old
    stage.launch(stage.event("Delete", B, physical_id=new))
    assert len(stage.braket.jobs) == 2
    assert stage.braket.active() == []


def test_the_rollback_of_an_update_that_was_never_answered_ends_its_job(stage: Stage) -> None:
    old = stage.create(A)
    new = stage.launch(stage.event("Update", B, physical_id=old, old=A))["PhysicalResourceId"]
    # The answer was lost: CloudFormation holds the old id, and no Delete of the new one will ever come.
    back = stage.launch(stage.event("Update", A, physical_id=old, old=B))
    assert back["PhysicalResourceId"] == old
    assert [job["jobName"] for job in stage.braket.active()] == [old]
    assert stage.braket.named(new)[0]["status"] == "CANCELLING"


def test_an_update_that_arrives_after_its_own_rollback_starts_nothing(stage: Stage) -> None:
    old = stage.create(A)
    late = stage.event("Update", B, physical_id=old, old=A)
    stage.launch(stage.event("Update", A, physical_id=old, old=B))
    with pytest.raises(LaunchError, match="overtaken"):
        stage.launch(late)
    assert len(stage.braket.jobs) == 1


def test_a_delete_that_overtakes_the_create_leaves_no_job(stage: Stage) -> None:
    late = stage.event("Create", A)
    stage.launch(stage.event("Delete", A, physical_id=INVENTED))
    with pytest.raises(LaunchError, match="overtaken"):
        stage.launch(late)
    assert stage.braket.jobs == {}


def test_a_delete_with_an_invented_id_after_a_lost_answer_cancels(stage: Stage) -> None:
    stage.create(A)
    stage.launch(stage.event("Delete", A, physical_id=INVENTED))
    assert stage.braket.active() == []


def test_a_delete_in_the_middle_of_create_job_leaves_no_active_job(stage: Stage) -> None:
    def before(name: str, _: int) -> None:
        if name == "CreateJob":
            stage.plan.heal()
            stage.launch(stage.event("Delete", A, physical_id=INVENTED))

    stage.plan.before = before
    with pytest.raises(LaunchError, match="overtaken"):
        stage.launch(stage.event("Create", A))
    assert len(stage.braket.jobs) == 1
    assert stage.braket.active() == []


@pytest.mark.parametrize("lives", [0, 1])
def test_a_delete_while_the_files_are_copied_leaves_no_job(stage: Stage, lives: int) -> None:
    for _ in range(lives):
        name = stage.create(A)
        stage.launch(stage.event("Delete", A, physical_id=name))

    def before(name: str, _: int) -> None:
        if name == "HeadObject":
            stage.plan.heal()
            stage.launch(stage.event("Delete", A, physical_id=INVENTED))

    stage.plan.before = before
    with pytest.raises(LaunchError, match="overtaken"):
        stage.launch(stage.event("Create", A))
    assert len(stage.braket.jobs) == lives
    assert stage.braket.active() == []


def test_a_late_create_is_refused_also_when_an_interrupted_start_has_freed_an_older_name(stage: Stage) -> None:
    first = stage.create(A)
    launch = stage.ledger(first)
    # The start was interrupted before CreateJob, and its Delete couldn't know that yet.
    stage.braket.jobs.clear()
    starting = launch.moved(State.STARTING, launch.updated_at, job_arn=None, released=Released.DELETED)
    stage.services.ledger.replace(starting)
    late = stage.event("Create", A)
    stage.launch(stage.event("Delete", A, physical_id=INVENTED))
    stage.clock.pass_time(300)
    stage.sweep()
    assert stage.ledger(first).state is State.WITHDRAWN
    with pytest.raises(LaunchError, match="overtaken"):
        stage.launch(late)
    assert stage.braket.jobs == {}


def test_a_job_that_a_delete_cancelled_is_launched_again_when_it_is_added_again(stage: Stage) -> None:
    first = stage.create(A)
    stage.launch(stage.event("Delete", A, physical_id=first))
    stage.changed(stage.braket.end(first, "CANCELLED"))
    second = stage.create(A)
    assert second == name_of(A, generation=1)
    assert [job["jobName"] for job in stage.braket.active()] == [second]
    stage.launch(stage.event("Delete", A, physical_id=second))
    assert stage.braket.active() == []


def test_deliveries_that_are_late_by_a_whole_life_change_nothing(stage: Stage) -> None:
    create, name = stage.event("Create", A), name_of(A)
    stage.launch(create)
    delete = stage.event("Delete", A, physical_id=name)
    stage.launch(delete)
    again = stage.create(A)
    stage.launch(delete)
    with pytest.raises(LaunchError, match="overtaken"):
        stage.launch(create)
    assert [job["jobName"] for job in stage.braket.active()] == [again]


def test_a_second_delivery_of_a_delete_spares_a_waiting_launch_that_was_made_since(clients: StageClients) -> None:
    stage = Stage(clients, in_memory=True, max_concurrent_jobs=1)
    stage.create(B, logical_id="Other")
    name = stage.create(A)
    delete = stage.event("Delete", A, physical_id=name)
    stage.launch(delete)
    assert stage.ledger(name).state is State.WITHDRAWN
    assert stage.create(A) == name, "it never had a job, so its name is free"
    stage.launch(delete)
    assert stage.ledger(name).state is State.PENDING


def test_a_second_delivery_of_a_delete_with_an_invented_id_spares_the_next_launch(stage: Stage) -> None:
    stage.create(A)
    delete = stage.event("Delete", A, physical_id=INVENTED)
    stage.launch(delete)
    again = stage.create(A)
    stage.launch(delete)
    assert [job["jobName"] for job in stage.braket.active()] == [again]


def test_what_a_dying_function_let_go_is_ended_before_it_is_launched_again(stage: Stage) -> None:
    first = stage.create(A)
    launch = stage.ledger(first)
    stage.services.ledger.replace(launch.moved(State.STARTED, launch.updated_at, released=Released.FAILED))
    second = stage.create(A)
    assert [job["jobName"] for job in stage.braket.active()] == [second]
    assert second != first


@pytest.mark.parametrize("status", ["COMPLETED", "FAILED", "CANCELLED", "CANCELLING"])
def test_deleting_a_job_that_has_ended_or_is_ending_succeeds(stage: Stage, status: str) -> None:
    name = stage.create(A)
    stage.braket.named(name)[0]["status"] = status
    stage.launch(stage.event("Delete", A, physical_id=name))
    assert stage.braket.named(name)[0]["status"] == status


def test_deleting_a_job_that_braket_does_not_know_succeeds(stage: Stage) -> None:
    name = stage.create(A)
    stage.braket.jobs.clear()
    stage.launch(stage.event("Delete", A, physical_id=name))


def test_a_job_of_ours_that_the_ledger_has_lost_is_found_by_its_name_and_cancelled(stage: Stage) -> None:
    name = stage.create(A)
    stage.clients.dynamodb.delete_item(TableName=stage.table, Key={"kind": {"S": "launch"}, "name": {"S": name}})
    stage.launch(stage.event("Delete", A, physical_id=name))
    assert stage.braket.active() == []


def test_a_stranger_job_of_the_same_name_is_left_alone(stage: Stage) -> None:
    name = stage.create(A)
    stage.clients.dynamodb.delete_item(TableName=stage.table, Key={"kind": {"S": "launch"}, "name": {"S": name}})
    stage.braket.named(name)[0]["tags"]["hybrid-jobs:stack-id"] = "another stack"
    stage.launch(stage.event("Delete", A, physical_id=name))
    assert len(stage.braket.active()) == 1


def test_the_physical_id_of_another_resource_deletes_nothing_of_it(stage: Stage) -> None:
    name = stage.create(A, logical_id="JobA")
    stage.launch(stage.event("Delete", B, physical_id=name, logical_id="JobB"))
    assert len(stage.braket.active()) == 1


def test_only_a_missing_permission_fails_a_delete_and_says_which(stage: Stage) -> None:
    name = stage.create(A)
    stage.plan.refuse("CancelJob", "AccessDeniedException")
    with pytest.raises(LaunchError, match=r"CancelJob: AccessDeniedException.*permission for CancelJob"):
        stage.launch(stage.event("Delete", A, physical_id=name))
    stage.plan.heal()
    stage.launch(stage.event("Delete", A, physical_id=name))
    assert stage.braket.active() == []


def test_a_throttled_cancel_is_tried_again_and_the_delete_succeeds(stage: Stage) -> None:
    name = stage.create(A)
    stage.plan.refuse("CancelJob", "ThrottlingException", times=2)
    stage.launch(stage.event("Delete", A, physical_id=name))
    assert stage.braket.active() == []
    assert stage.clock.slept < 30


def test_an_old_property_format_is_deleted_by_its_physical_id(stage: Stage) -> None:
    name = stage.create(A)
    stage.launch(stage.event("Delete", {"SpecVersion": "0", "Job": "?"}, physical_id=name))
    assert stage.braket.active() == []
    stage.launch(stage.event("Delete", {"SpecVersion": "0", "Job": "?"}, physical_id=INVENTED))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"SpecVersion": "2"}, "SpecVersion = '2'"),
        ({"SpecHash": "0" * 64}, "SpecHash"),
        ({"Spec": ""}, "SpecHash"),
    ],
)
def test_properties_that_cannot_be_trusted_launch_nothing(stage: Stage, change: dict[str, str], message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        stage.launch(stage.event("Create", {**A, **change}))
    assert stage.braket.jobs == {}


def test_a_spec_that_lacks_something_says_what(stage: Stage) -> None:
    document = document_of()
    del document["device"], document["image"]
    with pytest.raises(LaunchError, match="the spec of qaoa-18-cpu has no device, image"):
        stage.launch(stage.event("Create", properties_of(document)))
    stage.launch(stage.event("Delete", properties_of(document), physical_id=INVENTED))


def test_a_missing_archive_fails_the_create_with_its_address_and_leaves_nothing(stage: Stage) -> None:
    properties = {**A, "SourceArchive": "s3://assets/gone.tar.gz"}
    with pytest.raises(LaunchError, match=r"s3://assets/gone.tar.gz is not there.*cdk deploy"):
        stage.launch(stage.event("Create", properties))
    assert stage.braket.jobs == {}
    assert stage.services.ledger.open_launches() == []
    assert stage.create(A) == name_of(A), "the next deploy launches it"


def test_an_archive_that_is_not_what_was_synthesized_is_not_run(stage: Stage) -> None:
    properties = {**A, "SourceArchive": "s3://assets/graph.adjlist"}
    with pytest.raises(LaunchError, match="SHA-256"):
        stage.launch(stage.event("Create", properties))
    with pytest.raises(LaunchError, match="SHA-256"):
        stage.launch(stage.event("Create", properties))
    assert stage.braket.jobs == {}


def test_files_are_copied_once(stage: Stage) -> None:
    stage.create(A)
    copied = stage.plan.calls.count("CopyObject")
    stage.create(B, logical_id="JobB")
    assert copied == 2
    assert stage.plan.calls.count("CopyObject") == copied


def test_a_tag_is_resolved_to_the_digest_it_stands_for_now(stage: Stage) -> None:
    tag = "pennylane-0123456789abcdef"
    registry = f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com"
    properties = properties_of(document_of(image="asset:pennylane"), ImageUri=f"{registry}/{REPOSITORY}:{tag}")
    with pytest.raises(LaunchError, match=f"image {REPOSITORY}:{tag} is not in the registry"):
        stage.launch(stage.event("Create", properties))
    image = stage.clients.ecr.put_image(repositoryName=REPOSITORY, imageManifest=INDEX, imageTag=tag)
    digest = image["image"]["imageId"]["imageDigest"]
    name = stage.create(properties)
    (job,) = stage.braket.named(name)
    assert job["algorithmSpecification"]["containerImage"]["uri"] == f"{registry}/{REPOSITORY}@{digest}"
    assert stage.ledger(name).image_digest == digest
    gone = f"{registry}/{REPOSITORY}@sha256:{'0' * 64}"
    with pytest.raises(LaunchError, match=r"@sha256:0+ is not in the registry.*`hybridjobs image push`"):
        stage.launch(stage.event("Create", properties_of(document_of(image=gone)), logical_id="Gone"))
    by_digest = stage.create(properties_of(document_of(image=f"{registry}/{REPOSITORY}@{digest}")), logical_id="Named")
    assert stage.ledger(by_digest).image_digest == digest


@pytest.mark.parametrize(
    ("image", "problem"),
    [
        (f"{ACCOUNT}.dkr.ecr.us-west-2.amazonaws.com/{REPOSITORY}:1", "is in us-west-2, and the job runs in us-east-1"),
        (f"292282985366.dkr.ecr.us-west-2.amazonaws.com/{STOCK}:1", "is in us-west-2, and the job runs in us-east-1"),
        (f"111122223333.dkr.ecr.{REGION}.amazonaws.com/amazon-braket-x:1", "named by a tag of account 111122223333"),
        (f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/amazon-braket-x:1", "amazon-braket-x:1 is not in the registry"),
    ],
    ids=["other region", "other region of Braket's own", "tag of another account", "absent from a sister repository"],
)
def test_an_image_that_can_t_be_pulled_or_is_not_certain_is_refused(stage: Stage, image: str, problem: str) -> None:
    with pytest.raises(LaunchError, match=f"{problem}.*hybridjobs image push"):
        stage.launch(stage.event("Create", properties_of(document_of(image=image))))
    assert stage.braket.jobs == {}


@pytest.mark.parametrize(
    "image",
    [
        f"292282985366.dkr.ecr.{REGION}.amazonaws.com/{STOCK}:1.0-cpu-py312-ubuntu24.04",
        f"111122223333.dkr.ecr.{REGION}.amazonaws.com/amazon-braket-x@sha256:{'c' * 64}",
    ],
    ids=["Braket's own", "digest of another account"],
)
def test_an_image_of_a_registry_that_the_launcher_may_not_read_is_named_as_the_job_names_it(
    stage: Stage, image: str
) -> None:
    name = stage.create(properties_of(document_of(image=image)))
    (job,) = stage.braket.named(name)
    assert job["algorithmSpecification"]["containerImage"]["uri"] == image
    assert not [call for call in stage.plan.calls if "Image" in call]


def test_a_tag_in_another_repository_of_the_account_is_resolved_too(stage: Stage) -> None:
    repository, registry = "amazon-braket-sister", f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com"
    stage.clients.ecr.create_repository(repositoryName=repository)
    image = stage.clients.ecr.put_image(repositoryName=repository, imageManifest=INDEX, imageTag="1")
    name = stage.create(properties_of(document_of(image=f"{registry}/{repository}:1")))
    (job,) = stage.braket.named(name)
    digest = image["image"]["imageId"]["imageDigest"]
    assert job["algorithmSpecification"]["containerImage"]["uri"] == f"{registry}/{repository}@{digest}"


def test_a_job_that_may_cost_more_than_the_stage_allows_is_not_launched(clients: StageClients) -> None:
    stage = Stage(clients, max_spend_usd=0.1)
    with pytest.raises(LaunchError, match=r"may cost 0\.46 USD, the stage allows 0\.10"):
        stage.launch(stage.event("Create", A))
    assert stage.braket.jobs == {}


BILLED_BY_TASK = properties_of(document_of(device="arn:aws:braket:us-east-1::device/qpu/ionq/Forte-1"))


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({**A, "Price": "null"}, r"its instance type ml\.\S+ has no price"),
        (BILLED_BY_TASK, r"its device arn:\S+/Forte-1 bills its tasks on top"),
    ],
    ids=["no price", "quantum hardware"],
)
@pytest.mark.parametrize("allowed", [True, False])
def test_a_job_of_unknown_price_is_launched_only_if_the_stage_allows_it(
    clients: StageClients, allowed: bool, properties: dict[str, str], why: str
) -> None:
    stage = Stage(clients, max_spend_usd=100.0, allow_unknown_price=allowed)
    event = stage.event("Create", properties)
    if allowed:
        stage.launch(event)
    else:
        with pytest.raises(
            LaunchError, match=rf"nobody knows what qaoa-18-cpu may cost: {why}.*allow_unknown_price = true"
        ):
            stage.launch(event)
    assert len(stage.braket.jobs) == allowed


def test_a_launch_that_braket_rejects_fails_the_create_and_the_next_deploy_tries_again(stage: Stage) -> None:
    stage.plan.refuse(
        "CreateJob", "AccessDeniedException", message="This account is not authorized to use this resource"
    )
    with pytest.raises(LaunchError, match=r"not its IAM policies.*Service Quotas"):
        stage.launch(stage.event("Create", A))
    assert stage.services.ledger.open_launches() == []
    stage.plan.heal()
    assert stage.create(A) == name_of(A)
    assert len(stage.braket.active()) == 1


def test_a_job_is_found_by_the_launch_it_was_asked_for_with(stage: Stage) -> None:
    name = stage.create(A)
    launch = stage.ledger(name)
    assert launch.state is State.STARTED
    assert launch.job_arn == stage.braket.arn(name)
    assert launch.requested_at < timestamp(stage.clock.now())


@settings(max_examples=60, deadline=None)
@given(physical_id=st.text(max_size=200))
def test_no_physical_id_whatever_fails_a_delete(clients: StageClients, physical_id: str) -> None:
    stage = Stage(clients)
    stage.launch(stage.event("Delete", {}, physical_id=physical_id))
    assert not {"CancelJob", "GetJob"} & set(stage.plan.calls)
