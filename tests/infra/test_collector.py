"""Ended jobs reach the collector, and what fails is kept."""

from typing import Any

from tests.infra.synthesised import Synthesised, flat


def rules(stage: Synthesised) -> tuple[dict[str, Any], dict[str, Any]]:
    """The rule for events and the one with a schedule."""
    found = [each["Properties"] for each in stage.resources("Jobs", "AWS::Events::Rule").values()]
    (by_event,) = [each for each in found if "EventPattern" in each]
    (by_schedule,) = [each for each in found if "ScheduleExpression" in each]
    return by_event, by_schedule


def test_every_way_in_which_a_job_ends_is_collected(local: Synthesised) -> None:
    by_event, _ = rules(local)
    assert by_event["EventPattern"] == {
        "source": ["aws.braket"],
        "detail-type": ["Braket Job State Change"],
        "detail": {"status": ["CANCELLED", "COMPLETED", "FAILED"]},
    }


def test_a_schedule_repairs_what_no_event_told_of(local: Synthesised) -> None:
    _, by_schedule = rules(local)
    assert by_schedule["ScheduleExpression"] == "rate(5 minutes)"
    (target,) = by_schedule["Targets"]
    assert target["Input"] == '{"sweep":true}'


def test_both_hops_have_retries_and_a_dead_letter_queue(local: Synthesised) -> None:
    # EventBridge calling Lambda and Lambda running the function are two hops that retry on their own.
    (queue,) = local.resources("Jobs", "AWS::SQS::Queue")
    for rule, retries in zip(rules(local), (8, 0), strict=True):
        (target,) = rule["Targets"]
        assert target["DeadLetterConfig"]["Arn"]["Fn::GetAtt"][0] == queue
        assert target["RetryPolicy"]["MaximumRetryAttempts"] == retries
        name = target["Arn"]["Fn::GetAtt"][0]
        function = local.documents["Jobs"]["Resources"][name]["Properties"]
        assert function["DeadLetterConfig"]["TargetArn"]["Fn::GetAtt"][0] == queue
        assert function["Handler"] == "collect_result.handler.handle"
    by_function = {
        each["Properties"]["FunctionName"]["Ref"]: each["Properties"]["MaximumRetryAttempts"]
        for each in local.resources("Jobs", "AWS::Lambda::EventInvokeConfig").values()
    }
    assert sorted(by_function.values()) == [0, 2]


def test_the_dead_letter_queue_is_encrypted_and_takes_only_tls(local: Synthesised) -> None:
    queue = local.the("Jobs", "AWS::SQS::Queue")
    assert queue["SqsManagedSseEnabled"] is True
    assert queue["MessageRetentionPeriod"] == 14 * 24 * 3600
    policy = local.the("Jobs", "AWS::SQS::QueuePolicy")["PolicyDocument"]["Statement"]
    assert [each["Condition"] for each in policy if each["Effect"] == "Deny"] == [
        {"Bool": {"aws:SecureTransport": "false"}}
    ]
    # Only the stage's own two rules may write.
    writers = [each for each in policy if each["Effect"] == "Allow"]
    assert {flat(each["Condition"]["ArnEquals"]["aws:SourceArn"]) for each in writers} == {
        f"<{name}.Arn>" for name in local.resources("Jobs", "AWS::Events::Rule")
    }


def test_only_the_sweep_asks_for_stacks_and_only_for_its_own(local: Synthesised) -> None:
    asking = {
        name: statement["Resource"]
        for name, policy in local.resources("Jobs", "AWS::IAM::Policy").items()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if statement["Action"] == "cloudformation:DescribeStackResource"
    }
    ((name, resource),) = asking.items()
    assert name.startswith("CollectorSweepRole")
    assert resource == {"Ref": "AWS::StackId"}
