"""The records as other teams see them: their schemas in the job bucket, and the last of them before the stack goes."""

import hashlib

from aws_cdk import CustomResource
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from hybridjobs.schemas import SCHEMA_FILES
from stacks.constructs.hybrid_job import SERVICE_TIMEOUT

RESOURCE_TYPE = "Custom::HybridJobRecords"


class PublishedRecords(Construct):
    """Publishes the JSON Schemas when it is deployed; when the stack is deleted, waits for the records of its jobs.

    Jobs that are made after it and before the collector are deleted in the reverse order: when its turn comes every
    job of the stack has been asked to end, and the collector still listens.
    """

    def __init__(self, scope: Construct, construct_id: str, *, service_token: str) -> None:
        super().__init__(scope, construct_id)
        schemas = {file.name: s3_assets.Asset(self, file.stem, path=str(file)) for file in SCHEMA_FILES}
        self.assets = tuple(schemas.values())
        self.resource = CustomResource(
            self,
            "Records",
            resource_type=RESOURCE_TYPE,
            service_token=service_token,
            service_timeout=SERVICE_TIMEOUT,
            properties={
                "Schemas": {name: asset.s3_object_url for name, asset in schemas.items()},
                "SchemaHashes": {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in SCHEMA_FILES},
            },
        )
