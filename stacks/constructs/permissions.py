"""Explicit statements for a role, each wildcard with the reason why it can't be narrower."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aws_cdk import Acknowledgment, Stack, Validations
from aws_cdk import aws_iam as iam


@dataclass(frozen=True)
class Permission:
    """One allow statement.

    `wildcard_reason` is due as soon as a resource holds a `*`; it becomes the reason of cdk-nag's acknowledgement, so
    that the reason stands beside the statement and ends with it.
    """

    sid: str
    actions: Sequence[str]
    resources: Sequence[str]
    conditions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    wildcard_reason: str | None = None


def allow(role: iam.Role, *permissions: Permission) -> None:
    """Add `permissions` to the role's own policy.

    Raises:
        ValueError: An action holds a wildcard, or a resource does without a reason.
    """
    for permission in permissions:
        if any("*" in action for action in permission.actions):
            raise ValueError(f"{permission.sid}: actions {list(permission.actions)} hold a wildcard; name each action")
        role.add_to_policy(
            iam.PolicyStatement(
                sid=permission.sid,
                actions=list(permission.actions),
                resources=list(permission.resources),
                conditions=dict(permission.conditions),
            )
        )
        for resource in permission.resources:
            flat = _flatten(Stack.of(role).resolve(resource))
            if "*" not in flat:
                continue
            if permission.wildcard_reason is None:
                raise ValueError(f"{permission.sid}: resource {flat} holds a wildcard; narrow it or give a reason")
            Validations.of(role).acknowledge(
                Acknowledgment(id=f"AwsSolutions-IAM5[Resource::{flat}]", reason=permission.wildcard_reason)
            )


def bound_roles(stack: Stack, policy_arn: str | None) -> None:
    """Give every role of the stack, those of the CDK's own helpers too, the permissions boundary that a stage names."""
    if policy_arn is not None:
        policy = iam.ManagedPolicy.from_managed_policy_arn(stack, "PermissionsBoundary", policy_arn)
        iam.PermissionsBoundary.of(stack).apply(policy)


def deny_quantum_hardware(role: iam.Role) -> None:
    """Deny quantum processors to the role, whatever else its policies or a later one allow.

    A task on hardware is billed by shot, which no limit of this project covers.
    """
    role.add_to_policy(
        iam.PolicyStatement(
            sid="DenyQuantumHardware",
            effect=iam.Effect.DENY,
            actions=["braket:CreateJob", "braket:CreateQuantumTask"],
            resources=["arn:aws:braket:*:*:device/qpu/*"],
        )
    )


def _flatten(reference: object) -> str:
    # The form in which cdk-nag writes a resource into its finding: literals joined, references as <Name>.
    match reference:
        case str():
            return reference
        case {"Ref": name}:
            return f"<{name}>"
        case {"Fn::GetAtt": [resource, attribute]}:
            return f"<{resource}.{attribute}>"
        case {"Fn::Sub": str(template)}:
            return template.replace("${", "<").replace("}", ">")
        case {"Fn::Join": [delimiter, parts]}:
            return str(delimiter).join(map(_flatten, parts))
    raise ValueError(f"a resource ARN is made with {reference!r}; use a literal, Ref, Fn::GetAtt, Fn::Sub or Fn::Join")
