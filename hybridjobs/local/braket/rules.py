"""The documented rules of CreateJob that the service model lacks, in one table.

Each rule is a function that yields what is wrong with a request, worded with field, value and what to change. They
run after the checks of the service model, so that members have the right types.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hybridjobs.local.braket.cloud_facts import CloudFacts
from hybridjobs.local.braket.devices import usable_device
from hybridjobs.local.braket.errors import ServiceError, validation_error, violation
from hybridjobs.local.braket.life_cycle import Job
from hybridjobs.local.braket.locations import location_of
from hybridjobs.local.braket.settings import EndpointSettings
from hybridjobs.local.braket.tags import tag_violations
from hybridjobs.model.entry_points import is_program
from hybridjobs.model.images import STOCK_ACCOUNT
from hybridjobs.model.instances import INSTANCE_TYPES, RETIRED

FORBIDDEN_CHECKPOINT_FOLDERS = ("/opt/ml", "/opt/braket", "/tmp", "/usr/local/nvidia")  # noqa: S108
DEFAULT_CHECKPOINT_FOLDER = "/opt/braket/checkpoints/"
BUCKET_PREFIX = "amazon-braket-"
BUCKET_RULE = (
    f"Braket can use only buckets whose name begins with {BUCKET_PREFIX} or that are tagged AmazonBraket=true "
    "(with attribute-based access control enabled on the bucket)"
)

_LOCAL_DEVICE = re.compile(r"local:[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+", re.ASCII)
_IMAGE = re.compile(
    r"(?P<account>\d+)\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.amazonaws\.com/"
    r"(?P<repository>[^:@]+)(?P<reference>[:@].+)"
)
_ENTRY_POINT = re.compile(r"[\w-]+(\.[\w-]+)*(:[A-Za-z_]\w*)?")
_ARCHIVE_ENDINGS = (".tar.gz", ".tgz")


@dataclass(frozen=True)
class RuleContext:
    """What rules may ask besides the request."""

    settings: EndpointSettings
    facts: CloudFacts


Rule = Callable[[Mapping[str, Any], RuleContext], Iterator[str]]


def check_create_job(request: Mapping[str, Any], context: RuleContext) -> None:
    """Raise ServiceError when the service would refuse `request`, naming all that is wrong with it at once."""
    violations = [text for rule in RULES for text in rule(request, context)]
    if violations:
        raise validation_error(violations)
    device = request["deviceConfig"]["device"]
    if not device.startswith("local:"):
        usable_device(device, "deviceConfig.device")


def check_quotas(request: Mapping[str, Any], active: Sequence[Job], settings: EndpointSettings) -> None:
    """Raise ServiceQuotaExceededException when `request` doesn't fit beside the `active` jobs."""
    if len(active) >= settings.max_concurrent_jobs:
        raise ServiceQuotaExceededError(
            "jobName",
            request["jobName"],
            f"{len(active)} jobs have not ended and the quota of concurrent hybrid jobs is "
            f"{settings.max_concurrent_jobs}; wait until one has ended",
        )
    kind, count = request["instanceConfig"]["instanceType"], request["instanceConfig"].get("instanceCount", 1)
    if count > settings.max_instance_count:
        raise ServiceQuotaExceededError(
            "instanceConfig.instanceCount", count, f"a job may use at most {settings.max_instance_count} instances"
        )
    known = INSTANCE_TYPES.get(kind)
    quota = settings.instance_quotas.get(kind, known.default_quota if known else None)
    used = sum(_instances(job, kind) for job in active)
    if quota is not None and used + count > quota:
        raise ServiceQuotaExceededError(
            "instanceConfig.instanceType",
            kind,
            f"{used} instances are in use, {count} more are asked for, and the quota is {quota}; "
            "an account gets more through Service Quotas",
        )


class ServiceQuotaExceededError(ServiceError):
    """A quota that a request would go over."""

    def __init__(self, field: str, value: object, explanation: str):
        super().__init__("ServiceQuotaExceededException", f"Value '{value}' at '{field}': {explanation}.")


def _instances(job: Job, kind: str) -> int:
    config = job.request["instanceConfig"]
    return int(config["instanceCount"]) if config["instanceType"] == kind else 0


def _device(request: Mapping[str, Any], _context: RuleContext) -> Iterator[str]:
    device = request["deviceConfig"]["device"]
    if device.startswith("local:") and not _LOCAL_DEVICE.fullmatch(device):
        yield violation(
            "deviceConfig.device",
            device,
            "An embedded simulator is written local:<provider>/<simulator>, of letters, digits, '_', '.' and '-'",
        )


def _instance_type(request: Mapping[str, Any], context: RuleContext) -> Iterator[str]:
    kind = request["instanceConfig"]["instanceType"]
    if kind in RETIRED:
        yield violation(
            "instanceConfig.instanceType", kind, f"Braket has retired this instance type; use {RETIRED[kind]}"
        )
    known = INSTANCE_TYPES.get(kind)
    if known and context.settings.region not in known.regions:
        regions = ", ".join(known.regions)
        yield violation(
            "instanceConfig.instanceType", kind, f"Not offered in {context.settings.region}; it is in {regions}"
        )


def _script(request: Mapping[str, Any], _context: RuleContext) -> Iterator[str]:
    script = request["algorithmSpecification"].get("scriptModeConfig")
    if script is None:
        return
    place = "algorithmSpecification.scriptModeConfig"
    uri, entry_point = script["s3Uri"], script["entryPoint"]
    location = location_of(uri)
    if location and (not location.key or location.key.endswith("/")):
        yield violation(
            f"{place}.s3Uri",
            uri,
            "This is a folder, and the container downloads one object; upload an archive (source.tar.gz, with "
            "compressionType GZIP) or name a single script",
        )
    if uri.endswith(_ARCHIVE_ENDINGS) and script.get("compressionType") != "GZIP":
        yield violation(
            f"{place}.compressionType",
            script.get("compressionType"),
            f"'{uri}' is an archive, which is unpacked only with compressionType GZIP",
        )
    if is_program(entry_point) and _has_own_image(request) and not entry_point.endswith((".py", "/")):
        # Its own program starts it, whatever it is; the service passes the text on.
        return
    if is_program(entry_point) or entry_point.endswith(".py"):
        module = entry_point.removesuffix(".py").strip("/").replace("/", ".")
        yield violation(
            f"{place}.entryPoint",
            entry_point,
            "The entry point is a module path (package.module or package.module:function), no file name, unless the "
            f"job has a container image of its own that starts it; write {module}",
        )
    elif not _ENTRY_POINT.fullmatch(entry_point):
        yield violation(f"{place}.entryPoint", entry_point, "Write package.module or package.module:function")


def _has_own_image(request: Mapping[str, Any]) -> bool:
    found = _IMAGE.fullmatch(request["algorithmSpecification"].get("containerImage", {}).get("uri", ""))
    return found is not None and found["account"] != STOCK_ACCOUNT


def _image(request: Mapping[str, Any], context: RuleContext) -> Iterator[str]:
    uri = request["algorithmSpecification"].get("containerImage", {}).get("uri")
    place, region = "algorithmSpecification.containerImage.uri", context.settings.region
    found = _IMAGE.fullmatch(uri) if uri else None
    if uri and not found:
        address = f"<account>.dkr.ecr.{region}.amazonaws.com/<repository>"
        yield violation(place, uri, f"Write {address}:<tag> or {address}@sha256:<digest>")
    if not found:
        return
    own = found["account"] == context.settings.account
    if found["region"] != region:
        yield violation(place, uri, f"The image must be in the region of the job, {region}")
    elif own and context.facts.has_image(found["repository"], found["reference"]) is False:
        yield violation(place, uri, "The repository has no such image")


def _checkpoints(request: Mapping[str, Any], _context: RuleContext) -> Iterator[str]:
    path = request.get("checkpointConfig", {}).get("localPath")
    if path is None or path == DEFAULT_CHECKPOINT_FOLDER:
        return
    if not path.startswith("/"):
        yield violation("checkpointConfig.localPath", path, "Member must be an absolute path")
    for folder in FORBIDDEN_CHECKPOINT_FOLDERS:
        if path.startswith(folder):
            yield violation("checkpointConfig.localPath", path, f"The path must not start with {folder}")


def _inputs(request: Mapping[str, Any], _context: RuleContext) -> Iterator[str]:
    names = [channel["channelName"] for channel in request.get("inputDataConfig", [])]
    for index, name in enumerate(names):
        if name in names[:index]:
            yield violation(f"inputDataConfig[{index}].channelName", name, "Each channel needs a name of its own")
        if not name.strip("."):
            yield violation(f"inputDataConfig[{index}].channelName", name, "The name must be usable as a folder name")


def _buckets(request: Mapping[str, Any], context: RuleContext) -> Iterator[str]:
    refused: set[str] = set()
    for place, uri in _uris(request):
        location = location_of(uri)
        if location is None:
            yield violation(place, uri, "Member must be an address in Amazon S3, such as s3://bucket/prefix")
        elif location.bucket not in refused and not is_open_to_braket(location.bucket, context.facts):
            refused.add(location.bucket)
            yield violation(
                place,
                uri,
                BUCKET_RULE,
            )


def is_open_to_braket(bucket: str, facts: CloudFacts) -> bool:
    """Whether Braket can use a bucket, by its name or by its tag."""
    return bucket.startswith(BUCKET_PREFIX) or facts.bucket_tags(bucket).get("AmazonBraket", "").lower() == "true"


def _uris(request: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    script = request["algorithmSpecification"].get("scriptModeConfig")
    if script:
        yield "algorithmSpecification.scriptModeConfig.s3Uri", script["s3Uri"]
    yield "outputDataConfig.s3Path", request["outputDataConfig"]["s3Path"]
    if "checkpointConfig" in request:
        yield "checkpointConfig.s3Uri", request["checkpointConfig"]["s3Uri"]
    for index, channel in enumerate(request.get("inputDataConfig", [])):
        yield f"inputDataConfig[{index}].dataSource.s3DataSource.s3Uri", channel["dataSource"]["s3DataSource"]["s3Uri"]


def _role(request: Mapping[str, Any], context: RuleContext) -> Iterator[str]:
    arn = request["roleArn"]
    if arn.split(":")[4] != context.settings.account:
        yield violation("roleArn", arn, f"The role must belong to the account of the job, {context.settings.account}")
        return
    trusted = context.facts.trusts_braket(arn)
    if trusted is False:
        yield violation(
            "roleArn",
            arn,
            "Braket can't assume this role: it must exist and its trust policy must allow sts:AssumeRole to the "
            "service braket.amazonaws.com",
        )


def _tags(request: Mapping[str, Any], _context: RuleContext) -> Iterator[str]:
    yield from tag_violations(request.get("tags", {}))


def association_violations(request: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the reservations that a job or task is to use: this account has none."""
    for index, association in enumerate(request.get("associations", [])):
        yield violation(f"associations[{index}].arn", association["arn"], "The account has no such reservation")


def _associations(request: Mapping[str, Any], _context: RuleContext) -> Iterator[str]:
    yield from association_violations(request)


RULES: tuple[Rule, ...] = (
    _device,
    _instance_type,
    _script,
    _image,
    _checkpoints,
    _inputs,
    _buckets,
    _role,
    _tags,
    _associations,
)
