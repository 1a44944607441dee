"""The dispatcher's lease in the ledger table: one dispatcher at a time, and nobody's wish is overlooked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from errors import ConflictingWrite

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

_NAMES = {"#owner": "owner", "#expires": "expires_at", "#wanted": "wanted", "#served": "served"}


@dataclass(frozen=True)
class LeaseState:
    """The lease item: how many passes were wished for, and the last wish that a finished pass has served."""

    owner: str | None
    expires_at: float
    wanted: int
    served: int


class Lease:
    """A lease that expires, with numbered wishes.

    A caller first wishes for a pass (`want`). Whoever holds the lease learns with `acquire` and `renew` how many
    wishes there are, and can `finish` only if there are no more: a wish that comes while a pass runs makes the
    holder run another.
    """

    def __init__(self, client: DynamoDBClient, table: str, *, owner: str) -> None:
        self._client = client
        self._table = table
        self.owner = owner

    def want(self) -> int:
        """Wish for a pass that begins after now; returns the wish's number."""
        return self._update("ADD #wanted :one", values={":one": 1}).wanted

    def acquire(self, now: float, seconds: float) -> LeaseState | None:
        """Take the lease if it is free or has expired; None if another holds it."""
        return self._try(
            "SET #owner = :me, #expires = :until",
            condition="attribute_not_exists(#owner) OR #expires < :now OR #owner = :me",
            values={":me": self.owner, ":until": now + seconds, ":now": now},
        )

    def renew(self, now: float, seconds: float) -> LeaseState | None:
        """Hold the lease for longer; None if it is lost."""
        return self._try(
            "SET #expires = :until", condition="#owner = :me", values={":me": self.owner, ":until": now + seconds}
        )

    def finish(self, served: int) -> bool:
        """Give the lease back after a pass that served so many wishes; False if there are more by now."""
        done = self._try(
            "SET #served = :served REMOVE #owner, #expires",
            condition="#owner = :me AND #wanted = :served",
            values={":me": self.owner, ":served": served},
        )
        return done is not None

    def abandon(self) -> None:
        """Give the lease back without having served the wishes, so that one who waits takes it."""
        self._try("REMOVE #owner, #expires", condition="#owner = :me", values={":me": self.owner})

    def read(self) -> LeaseState:
        """Return the lease as it is now."""
        answer = self._client.get_item(TableName=self._table, Key=_KEY, ConsistentRead=True)
        return _state(answer.get("Item", {}))

    def _try(self, update: str, *, condition: str, values: dict[str, Any]) -> LeaseState | None:
        try:
            return self._update(update, condition=condition, values=values)
        except ConflictingWrite:
            return None

    def _update(self, update: str, *, values: dict[str, Any], condition: str | None = None) -> LeaseState:
        used = f"{update} {condition or ''}"
        parameters: dict[str, Any] = {"ConditionExpression": condition} if condition else {}
        try:
            answer = self._client.update_item(
                TableName=self._table,
                Key=_KEY,
                UpdateExpression=update,
                ExpressionAttributeNames={key: name for key, name in _NAMES.items() if key in used},
                ExpressionAttributeValues={
                    key: {"S": value} if isinstance(value, str) else {"N": str(value)} for key, value in values.items()
                },
                ReturnValues="ALL_NEW",
                **parameters,
            )
        except ClientError as error:
            if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
                raise ConflictingWrite("dispatch") from error
            raise
        return _state(answer.get("Attributes", {}))


_KEY: dict[str, AttributeValueTypeDef] = {"kind": {"S": "lease"}, "name": {"S": "dispatch"}}


def _state(item: dict[str, AttributeValueTypeDef]) -> LeaseState:
    def number(key: str) -> float:
        return float(item[key]["N"]) if key in item else 0.0

    return LeaseState(
        owner=item["owner"]["S"] if "owner" in item else None,
        expires_at=number("expires_at"),
        wanted=int(number("wanted")),
        served=int(number("served")),
    )
