"""A repository's policy has no Resource element."""

from collections.abc import Iterator

from stacks.rules.rule import Finding, Rule, Stack


def check(stack: Stack) -> Iterator[Finding]:
    """Statements of repository policies that name a resource."""
    for logical_id, properties in stack.resources("AWS::ECR::Repository"):
        statements = properties.get("RepositoryPolicyText", {}).get("Statement", [])
        for number, statement in enumerate(statements if isinstance(statements, list) else [statements]):
            for element in ("Resource", "NotResource"):
                if element in statement:
                    yield Finding(
                        logical_id,
                        f"Properties/RepositoryPolicyText/Statement/{number}/{element}",
                        f"statement {statement.get('Sid', number)} has {element}",
                    )


RULE = Rule(
    name="repository-policy",
    description="ECR refuses a repository policy with a Resource element, and only when it is deployed",
    remedy="Remove the statement's resources: the policy applies to its own repository",
    check=check,
)
