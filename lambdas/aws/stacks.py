"""What CloudFormation says that a stack holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient


class Stacks:
    """Looks up stacks and their resources."""

    def __init__(self, client: CloudFormationClient) -> None:
        self._client = client

    def status(self, stack_id: str) -> str | None:
        """Return a stack's status, such as UPDATE_IN_PROGRESS; None if there is no such stack."""
        try:
            stacks = self._client.describe_stacks(StackName=stack_id)["Stacks"]
        except ClientError as error:
            if _is_absent(error):
                return None
            raise
        return stacks[0]["StackStatus"] if stacks else None

    def is_changing(self, stack_id: str) -> bool:
        """Tell whether the stack is being created, updated, rolled back or deleted at this moment."""
        return (self.status(stack_id) or "").endswith("_IN_PROGRESS")

    def physical_id(self, stack_id: str, logical_id: str) -> str | None:
        """Return the physical id of a stack's resource; None if there is no such stack or resource."""
        try:
            answer = self._client.describe_stack_resource(StackName=stack_id, LogicalResourceId=logical_id)
        except ClientError as error:
            if _is_absent(error):
                return None
            raise
        resource = answer["StackResourceDetail"]
        return None if resource["ResourceStatus"] == "DELETE_COMPLETE" else resource.get("PhysicalResourceId")


def _is_absent(error: ClientError) -> bool:
    # CloudFormation has no error code of its own for a stack or a resource that isn't there.
    return error.response["Error"]["Code"] == "ValidationError"
