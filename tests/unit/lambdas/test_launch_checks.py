"""What the launcher checks before it asks for a job: properties, files, image and price."""

from __future__ import annotations

import json

import pytest

from errors import LaunchError
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
STOCK = "amazon-braket-base-jobs"
# It says of each image for which platform it is, so no configuration has to be downloaded.
INDEX = json.dumps(
    {
        "schemaVersion": 2,
        "mediaType": "application/vnd.docker.distribution.manifest.list.v2+json",
        "manifests": [{"digest": "sha256:0", "size": 1, "platform": {"os": "linux", "architecture": "amd64"}}],
    }
)


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
