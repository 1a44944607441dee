"""The CDK's validation plugin that runs the project's rules on every synthesis."""

import json
from collections.abc import Sequence
from pathlib import Path

import jsii
from aws_cdk import (
    IPolicyValidationContext,
    IPolicyValidationPlugin,
    PolicyValidationPluginReport,
    PolicyViolatingResource,
    PolicyViolation,
)

from stacks.rules import (
    bucket_name,
    cross_stack_export,
    custom_resource_timeout,
    data_parallel,
    gpu_device,
    idle_gpu,
    image_pinned,
    job_role,
    max_runtime,
    repository_name,
    repository_policy,
    retired_instance,
    secret_string,
)
from stacks.rules.rule import Rule, Stack

RULES = tuple(
    module.RULE
    for module in (
        bucket_name,
        cross_stack_export,
        custom_resource_timeout,
        data_parallel,
        gpu_device,
        idle_gpu,
        image_pinned,
        job_role,
        max_runtime,
        repository_name,
        repository_policy,
        retired_instance,
        secret_string,
    )
)


@jsii.implements(IPolicyValidationPlugin)
class ProjectRules:
    """Checks every template against RULES; a violation fails the synthesis with rule, place, problem and remedy."""

    @property
    def name(self) -> str:
        """The plugin's name in the validation report."""
        return "hybrid-jobs"

    @property
    def version(self) -> str:
        """The plugin's version, which the CDK reports."""
        return "1.0.0"

    @property
    def rule_ids(self) -> list[str]:
        """The names of all rules."""
        return [rule.name for rule in RULES]

    def validate(self, context: IPolicyValidationContext) -> PolicyValidationPluginReport:
        """Check the templates of one synthesis."""
        stacks = [Stack(json.loads(Path(path).read_text()), path) for path in context.template_paths]
        violations = [violation for rule in RULES for violation in _violations(rule, stacks)]
        return PolicyValidationPluginReport(success=not violations, violations=violations)


def _violations(rule: Rule, stacks: Sequence[Stack]) -> list[PolicyViolation]:
    # One violation a finding, because the CDK prints a violation's description and no location.
    return [
        PolicyViolation(
            rule_name=rule.name,
            description=f"{rule.description} ({finding.location}: {finding.problem})",
            fix=rule.remedy,
            severity="error",
            violating_resources=[
                PolicyViolatingResource(
                    resource_logical_id=finding.logical_id, template_path=stack.path, locations=[finding.location]
                )
            ],
        )
        for stack in stacks
        for finding in rule.check(stack)
    ]
