"""No stack holds another one back."""

from collections.abc import Iterator

from stacks.rules.rule import Finding, Rule, Stack

IMPORTS = frozenset({"Fn::ImportValue", "Fn::GetStackOutput"})


def check(stack: Stack) -> Iterator[Finding]:
    """Outputs that are exported, and values that come from another stack's outputs."""
    for logical_id, output in stack.template.get("Outputs", {}).items():
        if "Export" in output:
            yield Finding(logical_id, f"Outputs/{logical_id}/Export", f"{output['Export']}")
    for section in ("Resources", "Outputs"):
        for logical_id, element in stack.template.get(section, {}).items():
            for location, intrinsic in _imports(element, ""):
                yield Finding(logical_id, location, intrinsic)


def _imports(value: object, location: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, each in value.items():
            if key in IMPORTS:
                yield location.lstrip("/"), f"{key} {each}"
            yield from _imports(each, f"{location}/{key}")
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _imports(each, f"{location}/{number}")


RULE = Rule(
    name="cross-stack-export",
    description="A stack whose export is in use can neither change nor delete it",
    remedy="Publish an SSM parameter and read that, as stacks/contract.py does",
    check=check,
)
