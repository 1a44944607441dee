"""No secret stands in a template, which everybody who may describe the stack can read."""

from collections.abc import Iterator

from hybridjobs.model.credentials import holds_a_credential, names_a_secret
from stacks.rules.rule import Finding, Rule, Stack

# Names that hold a secret's place, its reference or its policy, not the secret itself.
_HARMLESS = frozenset({"ServiceToken", "ClientToken", "ClientRequestToken", "KMSMasterKeyID"})
_SHORTEST = 8


def check(stack: Stack) -> Iterator[Finding]:
    """Literal strings that are credentials by their form, or by the name of their property, variable or parameter."""
    for section in ("Parameters", "Resources", "Outputs"):
        for logical_id, element in stack.template.get(section, {}).items():
            for location in _secrets(element, ""):
                yield Finding(logical_id, location, "(hidden)")


def _secrets(value: object, location: str) -> Iterator[str]:
    name = location.rpartition("/")[2]
    match value:
        case dict():
            for key, each in value.items():
                yield from _secrets(each, f"{location}/{key}")
        case list():
            for number, each in enumerate(value):
                yield from _secrets(each, f"{location}/{number}")
        case str() if holds_a_credential(value) or (len(value) >= _SHORTEST and _named_so(name, value)):
            yield location.lstrip("/")


def _named_so(name: str, value: str) -> bool:
    # A dynamic reference is the remedy itself, and an ARN says where a secret is.
    return name not in _HARMLESS and names_a_secret(name) and not value.startswith(("{{resolve:", "arn:"))


RULE = Rule(
    name="secret-string",
    description="A template, its history and its outputs can be read by everybody who may describe the stack",
    remedy="Keep the secret in AWS Secrets Manager and read it at run time, or refer to it by {{resolve:...}}",
    check=check,
)
