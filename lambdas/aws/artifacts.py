"""Objects of the job bucket: sources and inputs under the hash of their content, results, records, schemas."""

from __future__ import annotations

import base64
from typing import IO, TYPE_CHECKING, cast

from botocore.exceptions import ClientError

from errors import LaunchError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_ABSENT = {"404", "NoSuchKey", "NotFound"}


class Artifacts:
    """Reads and writes the job bucket."""

    def __init__(self, client: S3Client, bucket: str) -> None:
        self._client = client
        self.bucket = bucket

    def uri(self, key: str) -> str:
        """Return the s3:// address of a key."""
        return f"s3://{self.bucket}/{key}"

    def copy(self, source: str, key: str, sha256: str) -> None:
        """Copy an object of another bucket to a key that is named after its content, unless it is there already.

        Arguments and errors as for `put`.
        """
        if self._stored_sha256(key) not in {sha256, ""}:
            self.put(source, key, sha256)

    def put(self, source: str, key: str, sha256: str) -> None:
        """Copy an object of another bucket over whatever a key holds.

        Args:
            source: `s3://bucket/key` of the object, at most 5 GB (one server-side copy).
            key: Where it goes.
            sha256: The content's SHA-256, hexadecimal; what S3 has computed is held against it.

        Raises:
            LaunchError: The object isn't there, or holds something else.
        """
        bucket, _, name = source.removeprefix("s3://").partition("/")
        try:
            answer = self._client.copy_object(
                Bucket=self.bucket,
                Key=key,
                CopySource={"Bucket": bucket, "Key": name},
                ChecksumAlgorithm="SHA256",
                # Copying tags would need a permission more; assets have none.
                TaggingDirective="REPLACE",
            )
        except ClientError as error:
            if error.response["Error"]["Code"] in _ABSENT:
                raise LaunchError(
                    f"{source} is not there, so the job has nothing to run",
                    remedy="Deploy again with `cdk deploy`, which publishes the assets first",
                ) from error
            raise
        copied = _hexadecimal(answer["CopyObjectResult"].get("ChecksumSHA256"))
        if copied not in {sha256, ""}:
            raise LaunchError(
                f"{source} has the SHA-256 {copied}, the launch was made for {sha256}",
                remedy="Delete that asset from its bucket and deploy again",
            )

    def open(self, key: str) -> IO[bytes] | None:
        """Return the stream of an object, or None if there is no such object."""
        try:
            return cast("IO[bytes]", self._client.get_object(Bucket=self.bucket, Key=key)["Body"])
        except ClientError as error:
            if error.response["Error"]["Code"] in _ABSENT:
                return None
            raise

    def read(self, key: str) -> tuple[bytes, str] | None:
        """Return an object's content and entity tag, or None if there is no such object."""
        try:
            answer = self._client.get_object(Bucket=self.bucket, Key=key)
            return answer["Body"].read(), answer["ETag"]
        except ClientError as error:
            if error.response["Error"]["Code"] in _ABSENT:
                return None
            raise

    def write(self, key: str, content: bytes, *, replaces: str | None) -> bool:
        """Write a JSON object only if the key still holds what was read.

        Args:
            key: Where it goes.
            content: The bytes.
            replaces: The entity tag of what was read; None if there was nothing.

        Returns:
            Whether it was written; False if someone else has written in between.
        """
        try:
            if replaces is None:
                self._client.put_object(
                    Bucket=self.bucket, Key=key, Body=content, ContentType="application/json", IfNoneMatch="*"
                )
            else:
                self._client.put_object(
                    Bucket=self.bucket, Key=key, Body=content, ContentType="application/json", IfMatch=replaces
                )
        except ClientError as error:
            # 409: two conditional writes at the same moment; S3 asks to read again.
            if error.response["Error"]["Code"] in {"PreconditionFailed", "412", "ConditionalRequestConflict", "409"}:
                return False
            raise
        return True

    def _stored_sha256(self, key: str) -> str | None:
        """Return the stored object's SHA-256, "" if S3 doesn't know it, None if there is no object."""
        try:
            answer = self._client.head_object(Bucket=self.bucket, Key=key, ChecksumMode="ENABLED")
        except ClientError as error:
            if error.response["Error"]["Code"] in _ABSENT:
                return None
            raise
        return _hexadecimal(answer.get("ChecksumSHA256"))


def _hexadecimal(checksum: str | None) -> str:
    # A copy in several parts has a checksum of checksums, marked by "-<parts>": it says nothing about the content.
    if not checksum or "-" in checksum:
        return ""
    return base64.b64decode(checksum).hex()
