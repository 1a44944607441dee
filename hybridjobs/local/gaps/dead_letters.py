"""Failed asynchronous invocations: the emulator runs the function behind an EventBridge rule once, come what may.

AWS runs it again and then puts the event itself into the function's dead-letter queue. The emulator does so only for
other sources, only for functions that no template made, and with the envelope of a destination around the event.
"""

import json
from collections.abc import Mapping
from typing import Any


def apply() -> None:
    """Make the emulator retry, and keep what failed in the dead-letter queue."""
    from ministack.services import eventbridge, lambda_svc  # noqa: PLC0415
    from ministack.services.cloudformation import provisioners  # noqa: PLC0415

    def dispatch_to_lambda(arn: str, payload: str) -> None:
        function, configuration, name = lambda_svc._get_func_record_for_ref(arn)
        if not function or not configuration:
            eventbridge.logger.warning("EventBridge → Lambda: function %s not found", name)
            return
        record = lambda_svc._execution_record_for_config(function, configuration)
        lambda_svc.invoke_async_with_retry(record, json.loads(payload))

    route = lambda_svc._route_async_failure

    def route_failure(target: str, name: str, event: Any, result: Mapping[str, Any]) -> None:
        function = lambda_svc._functions.get(name) or {}
        dead_letters = function.get("config", {}).get("DeadLetterConfig") or {}
        if dead_letters.get("TargetArn") == target and ":sqs:" in target:
            eventbridge._dispatch_to_sqs(eventbridge.parse_arn(target), json.dumps(event))
        else:
            route(target, name, event, result)

    eventbridge._dispatch_to_lambda = dispatch_to_lambda
    lambda_svc._route_async_failure = route_failure

    handlers = provisioners._RESOURCE_HANDLERS["AWS::Lambda::Function"]
    create, update = handlers["create"], handlers["update"]

    def keep(made: tuple[str, Any], properties: Mapping[str, Any]) -> tuple[str, Any]:
        configuration = lambda_svc._functions[made[0]]["config"]
        configuration.pop("DeadLetterConfig", None)
        if "DeadLetterConfig" in properties:
            configuration["DeadLetterConfig"] = properties["DeadLetterConfig"]
        return made

    def create_function(logical_id: str, properties: Mapping[str, Any], stack: str) -> tuple[str, Any]:
        return keep(create(logical_id, properties, stack), properties)

    def update_function(
        physical_id: str,
        before: Mapping[str, Any],
        properties: Mapping[str, Any],
        stack: str,
        logical_id: str | None = None,
    ) -> tuple[str, Any]:
        return keep(update(physical_id, before, properties, stack, logical_id), properties)

    handlers["create"], handlers["update"] = create_function, update_function
