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
    queues = local.resources("Jobs", "AWS::SQS::Queue")
    (undelivered,) = [name for name in queues if name.startswith("CollectorUndelivered")]
    (unprocessed,) = [name for name in queues if name.startswith("CollectorUnprocessed")]
    for rule, retries in zip(rules(local), (8, 0), strict=True):
        (target,) = rule["Targets"]
        assert target["DeadLetterConfig"]["Arn"]["Fn::GetAtt"][0] == undelivered
        assert target["RetryPolicy"]["MaximumRetryAttempts"] == retries
        name = target["Arn"]["Fn::GetAtt"][0]
        function = local.documents["Jobs"]["Resources"][name]["Properties"]
        assert function["DeadLetterConfig"]["TargetArn"]["Fn::GetAtt"][0] == unprocessed
        assert function["Handler"] == "collect_result.handler.handle"
    by_function = {
        each["Properties"]["FunctionName"]["Ref"]: each["Properties"]["MaximumRetryAttempts"]
        for each in local.resources("Jobs", "AWS::Lambda::EventInvokeConfig").values()
    }
    assert sorted(by_function.values()) == [0, 2]


def test_the_dead_letter_queues_are_encrypted_and_take_only_tls(local: Synthesised) -> None:
    queues = local.resources("Jobs", "AWS::SQS::Queue")
    assert len(queues) == 2
    for queue in queues.values():
        assert queue["Properties"]["SqsManagedSseEnabled"] is True
        assert queue["Properties"]["MessageRetentionPeriod"] == 14 * 24 * 3600
    statements = {
        queue["Ref"]: policy["Properties"]["PolicyDocument"]["Statement"]
        for policy in local.resources("Jobs", "AWS::SQS::QueuePolicy").values()
        for queue in policy["Properties"]["Queues"]
    }
    assert statements.keys() == queues.keys()
    for each in statements.values():
        assert [one["Condition"] for one in each if one["Effect"] == "Deny"] == [
            {"Bool": {"aws:SecureTransport": "false"}}
        ]
    # Only the stage's own two rules may write, and only what could not be delivered.
    writers = {
        (name.rstrip("0123456789ABCDEF"), flat(one["Condition"]["ArnEquals"]["aws:SourceArn"]))
        for name, each in statements.items()
        for one in each
        if one["Effect"] == "Allow"
    }
    assert writers == {
        ("CollectorUndelivered", f"<{name}.Arn>") for name in local.resources("Jobs", "AWS::Events::Rule")
    }


def test_the_first_message_in_either_queue_raises_an_alarm(local: Synthesised) -> None:
    alarms = [
        alarm["Properties"]
        for alarm in local.resources("Jobs", "AWS::CloudWatch::Alarm").values()
        if alarm["Properties"].get("Namespace") == "AWS/SQS"
    ]
    watched = {dimension["Value"]["Fn::GetAtt"][0] for alarm in alarms for dimension in alarm["Dimensions"]}
    assert watched == set(local.resources("Jobs", "AWS::SQS::Queue"))
    for alarm in alarms:
        assert alarm["MetricName"] == "ApproximateNumberOfMessagesVisible"
        assert (alarm["ComparisonOperator"], alarm["Threshold"], alarm["EvaluationPeriods"]) == (
            "GreaterThanOrEqualToThreshold",
            1,
            1,
        )
        assert alarm["TreatMissingData"] == "notBreaching"


def test_the_sweep_asks_for_this_stack_and_for_those_of_its_name_before_it(local: Synthesised) -> None:
    # A launch of a stack that is gone has an id that this stack doesn't have.
    asking = {
        name: (statement["Action"], flat(statement["Resource"]))
        for name, policy in local.resources("Jobs", "AWS::IAM::Policy").items()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if statement.get("Sid") == "AskForLaunchingResource"
    }
    ((name, asked),) = asking.items()
    assert name.startswith("CollectorSweepRole")
    assert asked == (
        ["cloudformation:DescribeStackResource", "cloudformation:DescribeStacks"],
        "arn:aws:cloudformation:us-east-1:000000000000:stack/HybridJobs-local-Jobs/*",
    )
