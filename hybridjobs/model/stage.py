"""What a stage launches, where, and how much it may cost: `stages/<stage>.toml`."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator, Field, PlainValidator

from hybridjobs.model.catalogue import CatalogueEntry, revised_entry
from hybridjobs.model.errors import SpecError, SpecProblem, suggestion
from hybridjobs.model.images import STOCK_ACCOUNT, EcrImage, parse_image
from hybridjobs.model.instances import REGIONS
from hybridjobs.model.job_fields import AtLeastOne
from hybridjobs.model.job_spec import JobSpec
from hybridjobs.model.validation import Declaration, read_toml, refuse, toml_key, validated

# The stage's name is part of the job bucket's name (63 characters at most) and of the job role's (64).
LONGEST_STAGE_NAME: Final = 12

_STAGE_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
# A hundred years; beyond it somebody has mistyped, or means to keep records for ever.
LONGEST_RETENTION_DAYS: Final = 36_500

_POLICY: Final = re.compile(r"arn:aws[a-z-]*:iam::(\d{12}|aws):policy/[\w+=,.@/-]+", re.ASCII)
_KEY: Final = re.compile(r"arn:aws[a-z-]*:kms:(?P<region>[a-z0-9-]+):\d{12}:key/[\w-]+", re.ASCII)
_TOPIC: Final = re.compile(r"arn:aws[a-z-]*:sns:(?P<region>[a-z0-9-]+):\d{12}:[\w.-]+", re.ASCII)
_PRINCIPAL: Final = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:(root|role/[\w+=,.@/-]+)", re.ASCII)


def _stage_name(name: str) -> str:
    if len(name) > LONGEST_STAGE_NAME or not _STAGE_NAME.fullmatch(name):
        raise refuse(
            f"a stage's name is part of bucket names: up to {LONGEST_STAGE_NAME} lower-case letters, digits and inner "
            "dashes, beginning with a letter",
            "Rename the stage's file",
        )
    return name


def _launch(names: tuple[str, ...]) -> tuple[str, ...]:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise refuse(f"{', '.join(twice)} would be launched twice", "Name each job once; raise run to launch it again")
    return names


def _account(account: str) -> str:
    if not re.fullmatch(r"[0-9]{12}", account):
        raise refuse("an account is a string of twelve digits", 'Write account = "111122223333", with your account')
    return account


def _region(region: str) -> str:
    if region not in REGIONS:
        raise refuse("Braket runs no hybrid jobs in this region", f"Choose one of {', '.join(REGIONS)}")
    return region


def _amount(amount: float) -> float:
    if not math.isfinite(amount) or amount < 0:
        raise refuse("a limit on spending is a finite amount of US dollars, 0 or more", "Write the amount, such as 5.0")
    return amount


def _principal(arn: str) -> str:
    if "*" in arn:
        raise refuse(
            "a wildcard would let strangers pull the images", "Name each account or role that may pull by its ARN"
        )
    if not _PRINCIPAL.fullmatch(arn):
        raise refuse(
            "this is not the ARN of an account or a role",
            'Write "arn:aws:iam::111122223333:root" for an account, or "arn:aws:iam::111122223333:role/<name>"',
        )
    return arn


def _retention(days: int) -> int:
    if not 1 <= days <= LONGEST_RETENTION_DAYS:
        raise refuse(
            f"records are kept for 1 to {LONGEST_RETENTION_DAYS} days",
            "Write the number of days, or leave the key out to keep records for ever",
        )
    return days


def _boundary(arn: str) -> str:
    if not _POLICY.fullmatch(arn):
        raise refuse(
            "this is not the ARN of a managed policy",
            'Write "arn:aws:iam::111122223333:policy/<name>", with the account of the stage',
        )
    return arn


def _encryption_key(arn: str) -> str:
    if not _KEY.fullmatch(arn):
        raise refuse(
            "this is not the ARN of a KMS key; an alias can point to another key tomorrow",
            'Write "arn:aws:kms:<region>:111122223333:key/<key id>"',
        )
    return arn


def _topic(topic: object) -> str | bool:
    if isinstance(topic, bool):
        return topic
    if not isinstance(topic, str) or not _TOPIC.fullmatch(topic):
        raise refuse(
            "this is neither the ARN of an SNS topic nor true for a new one",
            'Write "arn:aws:sns:<region>:111122223333:<name>", or true',
        )
    return topic


class StageSettings(Declaration):
    """One deployment of the project.

    `name` is the stem of the stage's file. `launch` names the jobs to launch, `run` is raised to launch unchanged jobs
    again. Without `account` and `region` the templates fit any. `removal` says what becomes of repository, bucket and
    ledger when the stage is destroyed. `max_concurrent_jobs` is the account's quota. `max_spend_usd` caps the worst
    case of all launched jobs together; a job of unknown price is refused unless `allow_unknown_price`.
    `cancel_orphans` lets the sweep end launches and jobs of the stage that no stack resource holds; otherwise it only
    reports them. `pull_principals` are the ARNs of further accounts and roles that may pull the images.
    `retain_records_days` is how long records of finished jobs are kept, None for ever. `overrides` holds tables that
    are merged into those of jobs.

    `managed_job_policy` gives the job role Amazon's managed execution policy instead of the project's own statements.
    `permissions_boundary` is the ARN of a policy that bounds every role. `quantum_hardware` lets jobs use the quantum
    processors that they name, which is denied otherwise. `service_linked_role` makes the role that Braket needs once
    an account; an account that has one refuses a second. `encryption_key` is the ARN of a KMS key for job bucket,
    ledger and images in place of AWS's own keys. `alarm_topic` is the ARN of an SNS topic for alarms, or true for a new
    one.
    """

    missing: ClassVar[Mapping[str, str]] = {
        "launch": "Write launch = [] to launch nothing",
        "removal": 'Write removal = "retain" to keep results when the stage is destroyed, or "destroy"',
        "max_spend_usd": "Write max_spend_usd = <the most that all jobs of the stage may cost>",
    }

    name: Annotated[str, AfterValidator(_stage_name)]
    launch: Annotated[tuple[str, ...], Field(strict=False), AfterValidator(_launch)]
    run: AtLeastOne = 1
    account: Annotated[str, AfterValidator(_account)] | None = None
    region: Annotated[str, AfterValidator(_region)] | None = None
    removal: Literal["destroy", "retain"]
    max_concurrent_jobs: AtLeastOne = 3
    max_spend_usd: Annotated[float, AfterValidator(_amount)]
    allow_unknown_price: bool = False
    cancel_orphans: bool = False
    pull_principals: Annotated[tuple[Annotated[str, AfterValidator(_principal)], ...], Field(strict=False)] = ()
    retain_records_days: Annotated[int, AfterValidator(_retention)] | None = None
    managed_job_policy: bool = False
    permissions_boundary: Annotated[str, AfterValidator(_boundary)] | None = None
    quantum_hardware: bool = False
    service_linked_role: bool = False
    encryption_key: Annotated[str, AfterValidator(_encryption_key)] | None = None
    alarm_topic: Annotated[str | bool, PlainValidator(_topic)] = False
    overrides: dict[str, dict[str, Any]] = Field(default_factory=dict)

    @property
    def file(self) -> str:
        """The stage's file as messages name it."""
        return f"stages/{self.name}.toml"


def load_stage(stages: Path, name: str) -> StageSettings:
    """Read `<stages>/<name>.toml`.

    Raises one SpecError with every problem of the file; for a missing file it names the closest stage.
    """
    file = stages / f"{name}.toml"
    known = sorted(each.stem for each in stages.glob("*.toml"))
    if name not in known:
        raise SpecError("there is no such stage", file=str(file), remedy=suggestion(name, known, noun="stage"))
    table = read_toml(file)
    if "name" in table:
        raise SpecError(
            "there is no such key",
            file=str(file),
            key="name",
            value=table["name"],
            remedy="The name of the file is the name of the stage",
        )
    return validated(StageSettings, {**table, "name": name}, file=str(file))


def selected_jobs(stage: StageSettings, catalogue: Mapping[str, CatalogueEntry]) -> list[CatalogueEntry]:
    """Choose the jobs that `stage` launches, in its order and with its overrides merged in.

    Raises one SpecError with every problem: names that the catalogue does not know, overrides that make a job invalid,
    jobs that cannot run in the stage's region, images that are named by a tag of another account, and benchmarks with
    two baselines.
    """
    problems = list(_unknown_names(stage, catalogue))
    revised = dict(catalogue)
    # Also those of jobs that are not launched: they are launched one day, and a mistake must show before.
    for name, changes in stage.overrides.items():
        if name not in catalogue:
            continue
        try:
            revised[name] = revised_entry(catalogue[name], changes, file=stage.file, prefix=toml_key("overrides", name))
        except SpecError as error:
            problems.extend(error.problems)
    selected = [revised[name] for name in stage.launch if name in revised]
    problems.extend(_outside_region(stage, selected))
    problems.extend(_foreign_tags(stage, selected))
    problems.extend(_elsewhere(stage))
    problems.extend(_two_baselines(stage, selected))
    if problems:
        raise SpecError.of(problems)
    return selected


def _unknown_names(stage: StageSettings, catalogue: Mapping[str, CatalogueEntry]) -> Iterator[SpecProblem]:
    named = [("launch", name) for name in stage.launch] + [("overrides", name) for name in stage.overrides]
    for key, name in named:
        if name not in catalogue:
            yield SpecProblem(
                problem="no jobs.toml declares such a job",
                remedy=suggestion(name, list(catalogue), noun="job"),
                file=stage.file,
                key=key,
                value=name,
            )


def _outside_region(stage: StageSettings, selected: Sequence[CatalogueEntry]) -> Iterator[SpecProblem]:
    if stage.region is None:
        return
    for entry in selected:
        for problem, remedy in _not_in_region(entry.spec, stage.region):
            yield SpecProblem(problem=problem, remedy=remedy, file=stage.file, key="region", value=stage.region)


def _not_in_region(spec: JobSpec, region: str) -> Iterator[tuple[str, str]]:
    """What a job needs that is not in a region, each with its remedy."""
    kind, image = spec.instance_type, parse_image(spec.image)
    if region not in kind.regions:
        yield (
            f"{spec.name} runs on {kind.name}, which Braket does not offer in this region",
            f"Use one of {', '.join(kind.regions)}, or override instance.type",
        )
    device_region = spec.device.split(":")[3] if spec.device.startswith("arn:") else ""
    if device_region and device_region != region:
        yield (
            f"the device of {spec.name} is in {device_region}, and a job runs in its device's region",
            f"Choose a device of this region, or deploy {spec.name} in a stage of {device_region}",
        )
    if isinstance(image, EcrImage) and image.region != region:
        yield (
            f"the image of {spec.name} is in {image.region}, and must be in the job's region",
            "Push the image to this region, and override image",
        )


def _foreign_tags(stage: StageSettings, selected: Sequence[CatalogueEntry]) -> Iterator[SpecProblem]:
    # Another account's repository lets in the job role at most, so the launcher can't resolve a tag there.
    for entry in selected:
        name, image = entry.spec.name, parse_image(entry.spec.image)
        if not isinstance(image, EcrImage) or image.tag is None:
            continue
        if stage.account is None or image.account in {stage.account, STOCK_ACCOUNT}:
            continue
        overridden = "image" in stage.overrides.get(name, {})
        yield SpecProblem(
            problem=f"this is a tag of account {image.account}, which may stand for another image at any time, and the "
            f"launcher of account {stage.account} cannot look it up",
            remedy="Name the image by its digest (@sha256:...), or push it into the stage's repository with "
            "`hybridjobs image push` and name what that prints",
            file=stage.file if overridden else str(entry.file),
            key=f"{toml_key('overrides' if overridden else 'jobs', name)}.image",
            value=image.uri,
        )


def _elsewhere(stage: StageSettings) -> Iterator[SpecProblem]:
    topic = stage.alarm_topic if isinstance(stage.alarm_topic, str) else None
    for key, pattern, arn in (("encryption_key", _KEY, stage.encryption_key), ("alarm_topic", _TOPIC, topic)):
        match = pattern.fullmatch(arn) if arn else None
        if match and stage.region and match["region"] != stage.region:
            yield SpecProblem(
                problem=f"this is in {match['region']}, and the stage in {stage.region}",
                remedy="Name one in the stage's own region",
                file=stage.file,
                key=key,
                value=arn,
            )


def _two_baselines(stage: StageSettings, selected: Sequence[CatalogueEntry]) -> Iterator[SpecProblem]:
    first_of: dict[str, str] = {}
    for entry in selected:
        spec = entry.spec
        if spec.benchmark is None or not spec.baseline:
            continue
        first = first_of.setdefault(spec.benchmark, spec.name)
        if first != spec.name:
            yield SpecProblem(
                problem=f"{first} and {spec.name} are both the baseline of the benchmark {spec.benchmark}",
                remedy=f"Write overrides.{spec.name}.baseline = false",
                file=stage.file,
                key="launch",
            )
