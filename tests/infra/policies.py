"""The policies of a synthesised stage as an account would hold them, and what IAM would decide about requests."""

import json
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.infra.synthesised import STACKS, Synthesised

ACCOUNT = "000000000000"
REGION = "us-east-1"
ROOT = Path(__file__).resolve().parents[2]
PARTITION = "aws"

_PSEUDO_PARAMETERS = {
    "AWS::AccountId": ACCOUNT,
    "AWS::Region": REGION,
    "AWS::Partition": PARTITION,
    "AWS::URLSuffix": "amazonaws.com",
}
# What a Ref of another resource gives where that is not its physical name.
_ARNS = {
    "AWS::Lambda::Function": "arn:aws:lambda:{region}:{account}:function:{name}",
    "AWS::SQS::Queue": "arn:aws:sqs:{region}:{account}:{name}",
    "AWS::S3::Bucket": "arn:aws:s3:::{name}",
    "AWS::ECR::Repository": "arn:aws:ecr:{region}:{account}:repository/{name}",
    "AWS::Events::Rule": "arn:aws:events:{region}:{account}:rule/{name}",
    "AWS::KMS::Key": "arn:aws:kms:{region}:{account}:key/{name}",
    "AWS::SNS::Topic": "arn:aws:sns:{region}:{account}:{name}",
    "AWS::Logs::LogGroup": "arn:aws:logs:{region}:{account}:log-group:{name}:*",
    "AWS::DynamoDB::Table": "arn:aws:dynamodb:{region}:{account}:table/{name}",
}
_WITH_POLICIES = ("AWS::IAM::", "AWS::ECR::", "AWS::S3::", "AWS::SQS::", "AWS::SNS::", "AWS::KMS::")
_NAMES = ("BucketName", "RepositoryName", "RoleName", "TableName")


@dataclass(frozen=True)
class Request:
    """One call: who, what, on which resource, with which condition keys, in whose account the resource is."""

    principal: str
    action: str
    resource: str
    context: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    account: str = ACCOUNT


class Account:
    """Roles with their policies and resources with theirs, of one stage as it is deployed to an account."""

    def __init__(self, stage: Synthesised, account: str = ACCOUNT, region: str = REGION) -> None:
        self.account, self.region = account, region
        self._pseudo = _PSEUDO_PARAMETERS | {"AWS::AccountId": account, "AWS::Region": region}
        self._stage = stage
        self._identity: dict[str, list[Mapping[str, Any]]] = {}
        self._resource: dict[str, Mapping[str, Any]] = {}
        self.roles: dict[str, str] = {}
        for stack in STACKS:
            for logical_id, resource in stage.documents[stack]["Resources"].items():
                self._read(stack, logical_id, resource)

    def grant(self, principal: str, policy: Mapping[str, Any]) -> None:
        """Give a principal that the stage doesn't make an identity policy."""
        self._identity.setdefault(principal, []).append(policy)

    def attach(self, resource: str, policy: Mapping[str, Any]) -> None:
        """Give a resource that the stage doesn't make a policy."""
        self._resource[resource] = policy

    def role(self, prefix: str) -> str:
        """ARN of the Jobs stack's role whose logical id begins with `prefix`."""
        (arn,) = [arn for name, arn in self.roles.items() if name.startswith(prefix)]
        return arn

    def statements(self, principal: str) -> list[Mapping[str, Any]]:
        """The statements of all of a principal's identity policies."""
        return [statement for policy in self._identity.get(principal, []) for statement in policy["Statement"]]

    def decide(self, requests: Iterable[Request]) -> list[str]:
        """What IAM decides about each request: Allowed, ExplicitlyDenied or ImplicitlyDenied."""
        if not (ROOT / "node_modules" / "@cloud-copilot").is_dir():
            pytest.skip("the policy simulator is not in node_modules: run make setup")
        requests = list(requests)
        simulations = [self._simulation(request) for request in requests]
        answer = subprocess.run(
            ["node", str(Path(__file__).with_name("simulate.mjs"))],
            input=json.dumps(simulations),
            capture_output=True,
            text=True,
            check=True,
        )
        decisions: list[str] = json.loads(answer.stdout)
        wrong = [(request, each) for request, each in zip(requests, decisions, strict=True) if each.startswith("error")]
        assert not wrong, f"IAM can't get such a request: {wrong}"
        return decisions

    def _simulation(self, request: Request) -> dict[str, Any]:
        service = ":" not in request.principal
        context = dict(request.context) | ({} if service else {"aws:PrincipalArn": request.principal})
        simulation: dict[str, Any] = {
            "request": {
                "principal": request.principal,
                "action": request.action,
                "resource": {"resource": request.resource, "accountId": request.account},
                "contextVariables": context,
            },
            "identityPolicies": [
                {"name": f"policy-{number}", "policy": policy}
                for number, policy in enumerate(self._identity.get(request.principal, []))
            ],
            "serviceControlPolicies": [],
            "resourceControlPolicies": [],
        }
        policy = self._policy_of(request.resource)
        return simulation | ({"resourcePolicy": policy} if policy else {})

    def _policy_of(self, resource: str) -> Mapping[str, Any] | None:
        if resource.startswith("arn:aws:s3:::"):
            resource = resource.partition("/")[0]
        return self._resource.get(resource)

    def _read(self, stack: str, logical_id: str, resource: Mapping[str, Any]) -> None:
        kind = resource["Type"]
        if not kind.startswith(_WITH_POLICIES):
            return
        properties = self._resolve(stack, resource.get("Properties", {}))
        match kind:
            case "AWS::IAM::Role":
                arn = self._arn(stack, logical_id)
                self.roles[logical_id] = arn
                self._resource[arn] = properties["AssumeRolePolicyDocument"]
                self._identity.setdefault(arn, [])
            case "AWS::IAM::Policy":
                for name in resource["Properties"]["Roles"]:
                    self.grant(self._arn(stack, name["Ref"]), properties["PolicyDocument"])
            case "AWS::ECR::Repository":
                self._resource[self._arn(stack, logical_id)] = properties["RepositoryPolicyText"]
            case "AWS::S3::BucketPolicy":
                self._resource[f"arn:aws:s3:::{properties['Bucket']}"] = properties["PolicyDocument"]
            case "AWS::SQS::QueuePolicy":
                for queue in resource["Properties"]["Queues"]:
                    self._resource[self._arn(stack, queue["Ref"])] = properties["PolicyDocument"]
            case "AWS::SNS::TopicPolicy":
                for topic in properties["Topics"]:
                    self._resource[topic] = properties["PolicyDocument"]
            case "AWS::KMS::Key":
                self._resource[self._arn(stack, logical_id)] = properties["KeyPolicy"]

    def _resolve(self, stack: str, value: Any) -> Any:
        match value:
            case {"Ref": str(name)}:
                return self._reference(stack, name)
            case {"Fn::GetAtt": [str(name), str(attribute)]}:
                return self._arn(stack, name) if attribute == "Arn" else f"{name}.{attribute}"
            case {"Fn::Join": [delimiter, parts]}:
                return str(delimiter).join(str(self._resolve(stack, part)) for part in parts)
            case {"Fn::Sub": str(text)}:
                return re.sub(r"\$\{([^}]+)\}", lambda name: self._reference(stack, name[1]), text)
        if isinstance(value, dict):
            return {key: self._resolve(stack, each) for key, each in value.items()}
        return [self._resolve(stack, each) for each in value] if isinstance(value, list) else value

    def _reference(self, stack: str, name: str) -> str:
        if name in self._pseudo:
            return self._pseudo[name]
        if name == "AWS::StackId":
            return f"arn:aws:cloudformation:{self.region}:{self.account}:stack/HybridJobs-{self._stage.stage}-{stack}/0"
        document = self._stage.documents[stack]
        if name in document["Resources"]:
            if document["Resources"][name]["Type"] == "AWS::SNS::Topic":
                return self._arn(stack, name)
            return self._name(stack, name)
        return self._parameter(str(document["Parameters"][name].get("Default", name)))

    def _parameter(self, parameter: str) -> str:
        """The value that the SSM parameter of the contract has, which one of the stacks publishes."""
        for stack in STACKS:
            for resource in self._stage.documents[stack]["Resources"].values():
                if resource["Type"] == "AWS::SSM::Parameter" and resource["Properties"]["Name"] == parameter:
                    return str(self._resolve(stack, resource["Properties"]["Value"]))
        return parameter

    def _name(self, stack: str, logical_id: str) -> str:
        properties = self._stage.documents[stack]["Resources"][logical_id].get("Properties", {})
        named = [properties[key] for key in _NAMES if key in properties]
        return str(self._resolve(stack, named[0])) if named else logical_id.lower()

    def _arn(self, stack: str, logical_id: str) -> str:
        resource = self._stage.documents[stack]["Resources"][logical_id]
        name = self._name(stack, logical_id)
        if resource["Type"] == "AWS::IAM::Role":
            return f"arn:aws:iam::{self.account}:role{resource['Properties'].get('Path', '/')}{name}"
        return _ARNS[resource["Type"]].format(region=self.region, account=self.account, name=name)
