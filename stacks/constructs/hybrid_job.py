"""One launched job: its source archive and inputs as assets, and the custom resource that launches it."""

import tempfile
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path

from aws_cdk import CustomResource, Duration
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from hybridjobs.model.canonical import canonical_json, spec_hash
from hybridjobs.model.catalogue import CatalogueEntry
from hybridjobs.model.errors import SpecError
from hybridjobs.model.images import AssetImage, parse_image
from hybridjobs.model.inputs import input_files
from hybridjobs.model.job_spec import LAUNCH_RESOURCE_TYPE, launch_document
from hybridjobs.model.prices import price_of
from hybridjobs.model.source_archive import build_source_archive
from stacks.constructs.job_image import JobImage

# The shape of the properties; Delete and rollback of older stacks bring older ones.
SPEC_VERSION = "1"
# A launch takes seconds; CloudFormation's own default would hold a stuck deploy for an hour.
SERVICE_TIMEOUT = Duration.seconds(300)


# CloudFormation hands an update to a function with the new properties and the old, in 256 KiB at most.
MOST_PROPERTY_BYTES = 100_000
ASSET_URL_BYTES = 160


class HybridJob(Construct):
    """Launches a job when it is deployed, and again only when its launch document or the stage's run changes.

    CloudFormation turns every property into a string, so the launch document travels as one canonical JSON string.

    Raises:
        SpecError: The job brings more input files than the event of a custom resource can name.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        entry: CatalogueEntry,
        run: int,
        service_token: str,
        container_assets: Path,
    ) -> None:
        super().__init__(scope, construct_id)
        archive = build_source_archive(entry.source_folder, entry.libraries)
        channels = input_files(entry.source_folder, entry.spec.inputs)
        source = self._source_asset(archive.bytes)
        inputs = {
            f"{channel}/{file.path}": s3_assets.Asset(self, f"Input-{channel}-{file.path}", path=str(file.file))
            for channel, files in sorted(channels.items())
            for file in files
        }
        self.assets = (source, *inputs.values())
        image = self._image(entry, container_assets)
        document = launch_document(entry.spec, archive.sha256, channels, image.content if image else None)
        _refuse_too_large(entry, canonical_json(document), inputs)
        price = price_of(entry.spec.instance.type)
        properties: dict[str, object] = {
            "SpecVersion": SPEC_VERSION,
            "SpecHash": spec_hash(document),
            "Run": str(run),
            "Spec": canonical_json(document),
            "Price": canonical_json(asdict(price)) if price else "null",
            "SourceArchive": source.s3_object_url,
            "InputFiles": {path: asset.s3_object_url for path, asset in inputs.items()},
        }
        if image is not None:
            properties["ImageUri"] = image.uri
        self.resource = CustomResource(
            self,
            "Launch",
            resource_type=LAUNCH_RESOURCE_TYPE,
            service_token=service_token,
            service_timeout=SERVICE_TIMEOUT,
            properties=properties,
        )

    @property
    def job_name(self) -> str:
        """The Braket name of the launch, which is the resource's physical id."""
        return self.resource.ref

    def _image(self, entry: CatalogueEntry, container_assets: Path) -> JobImage | None:
        image = parse_image(entry.spec.image)
        if not isinstance(image, AssetImage):
            return None
        return JobImage(self, "Image", image=image, container_assets=container_assets)

    def _source_asset(self, archive: bytes) -> s3_assets.Asset:
        # The asset copies the file into the cloud assembly at once, so the folder may go again.
        with tempfile.TemporaryDirectory(prefix="hybridjobs-source-") as folder:
            file = Path(folder) / "source.tar.gz"
            file.write_bytes(archive)
            return s3_assets.Asset(self, "Source", path=str(file))


def _refuse_too_large(entry: CatalogueEntry, document: str, paths: Collection[str]) -> None:
    # The files' addresses are tokens here, so their length is an upper bound.
    size = len(document) + sum(len(path) + ASSET_URL_BYTES for path in paths)
    if size > MOST_PROPERTY_BYTES:
        raise SpecError(
            f"a launch is described in {MOST_PROPERTY_BYTES} bytes at most, and the {len(paths)} input files of this "
            f"job take it to {size}",
            file=str(entry.file),
            key=f"jobs.{entry.spec.name}.inputs",
            value=dict(entry.spec.inputs),
            remedy="Pack the files of an input channel into one archive that the job unpacks",
        )
