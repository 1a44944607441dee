"""The launch ledger in DynamoDB: launches that change only as their reader knew them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from errors import ConflictingWrite
from launches import Identity, Launch, Released, State, canonical_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

KIND = "launch"
OPEN_INDEX = "open-launches"


class Ledger:
    """Reads and writes launches.

    Every write names the revision that it replaces, so that of two writers one learns that it came second.
    """

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def get(self, name: str) -> Launch | None:
        """Return the launch of that job name as it is now, or None."""
        answer = self._client.get_item(
            TableName=self._table, Key={"kind": {"S": KIND}, "name": {"S": name}}, ConsistentRead=True
        )
        item = answer.get("Item")
        return _launch(item) if item else None

    def generations(self, identity: Identity) -> list[Launch]:
        """Return the launches that an identity has had, one after another under different names, the latest last."""
        found: list[Launch] = []
        while (launch := self.get(identity.name(len(found)))) is not None:
            found.append(launch)
        return found

    def create(self, launch: Launch) -> Launch:
        """Write a launch whose name the ledger doesn't have.

        Raises:
            ConflictingWrite: It has.
        """
        written = replace(launch, revision=1)
        self._put(
            written, ConditionExpression="attribute_not_exists(#name)", ExpressionAttributeNames={"#name": "name"}
        )
        return written

    def replace(self, launch: Launch) -> Launch:
        """Write a launch in the place of the revision that it was made from; returns it with its new revision.

        Raises:
            ConflictingWrite: Someone else wrote in between.
        """
        written = replace(launch, revision=launch.revision + 1)
        self._put(
            written,
            ConditionExpression="#revision = :revision",
            ExpressionAttributeNames={"#revision": "revision"},
            ExpressionAttributeValues={":revision": {"N": str(launch.revision)}},
        )
        return written

    def open_launches(self) -> list[Launch]:
        """Return the launches that need attention, the oldest first."""
        return sorted(self._query(IndexName=OPEN_INDEX), key=lambda launch: launch.order)

    def all_launches(self) -> Iterator[Launch]:
        """Return every launch that the ledger has."""
        return self._query()

    def _query(self, **where: Any) -> Iterator[Launch]:
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression="#kind = :kind",
            ExpressionAttributeNames={"#kind": "kind"},
            ExpressionAttributeValues={":kind": {"S": KIND}},
            ConsistentRead=True,
            **where,
        )
        return (_launch(item) for page in pages for item in page["Items"])

    def _put(self, launch: Launch, **condition: Any) -> None:
        try:
            self._client.put_item(TableName=self._table, Item=_item(launch), **condition)
        except ClientError as error:
            if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
                raise ConflictingWrite(launch.name) from error
            raise


def _item(launch: Launch) -> dict[str, AttributeValueTypeDef]:
    texts = {
        "kind": KIND,
        "name": launch.name,
        "state": launch.state.value,
        "job": launch.identity.job,
        "stack_id": launch.identity.stack_id,
        "logical_id": launch.identity.logical_id,
        "spec_hash": launch.identity.spec_hash,
        "run": launch.identity.run,
        "requested_at": launch.requested_at,
        "updated_at": launch.updated_at,
        "released": launch.released.value or None,
        "overtaken_at": launch.overtaken_at,
        "open_since": launch.open_since,
        "job_arn": launch.job_arn,
        "reason": launch.reason,
        "spec": None if launch.spec is None else canonical_json(launch.spec),
        "request": None if launch.request is None else canonical_json(launch.request),
        "price": None if launch.price is None else canonical_json(launch.price),
    }
    item: dict[str, AttributeValueTypeDef] = {key: {"S": text} for key, text in texts.items() if text is not None}
    item["revision"] = {"N": str(launch.revision)}
    if launch.request_ids:
        item["request_ids"] = {"SS": sorted(launch.request_ids)}
    return item


def _launch(item: dict[str, AttributeValueTypeDef]) -> Launch:
    def text(key: str) -> str | None:
        return item[key]["S"] if key in item else None

    def document(key: str) -> dict[str, Any] | None:
        written = text(key)
        return None if written is None else json.loads(written)

    return Launch(
        name=item["name"]["S"],
        state=State(item["state"]["S"]),
        identity=Identity(
            job=text("job") or "",
            stack_id=text("stack_id") or "",
            logical_id=text("logical_id") or "",
            spec_hash=text("spec_hash") or "",
            run=text("run") or "",
        ),
        requested_at=item["requested_at"]["S"],
        updated_at=item["updated_at"]["S"],
        spec=document("spec"),
        request=document("request"),
        price=document("price"),
        request_ids=frozenset(item["request_ids"]["SS"]) if "request_ids" in item else frozenset(),
        released=Released(text("released") or ""),
        overtaken_at=text("overtaken_at"),
        open_since=text("open_since"),
        job_arn=text("job_arn"),
        reason=text("reason"),
        revision=int(item["revision"]["N"]),
    )
