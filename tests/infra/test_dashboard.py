"""What an operator sees and is woken by."""

import json

import pytest

from tests.infra.synthesised import Synthesise, Synthesised, flat, many

TOPIC = "arn:aws:sns:us-east-1:111122223333:operators"
STAGE = 'launch = []\nremoval = "destroy"\nmax_spend_usd = 0.0\n'


def body(stage: Synthesised) -> str:
    return flat(stage.the("Jobs", "AWS::CloudWatch::Dashboard")["DashboardBody"])


def alarms(stage: Synthesised) -> list[dict[str, object]]:
    return [each["Properties"] for each in stage.resources("Jobs", "AWS::CloudWatch::Alarm").values()]


def test_the_dashboard_shows_time_cost_states_errors_dead_letters_and_orphans(kept: Synthesised) -> None:
    shown = body(kept)
    titles = {widget["properties"]["title"] for widget in json.loads(shown)["widgets"]}
    assert titles == {
        "Seconds an iteration",
        "Cost in USD",
        "Ends of jobs",
        "Jobs that wait and run",
        "Errors of functions",
        "Dead letters",
        "Orphans",
        "Alarms",
    }
    for metric in ("SecondsPerIteration", "CostUsd"):
        assert f'SEARCH(\'{{HybridJobs,device,job,stage}} MetricName=\\"{metric}\\" stage=\\"kept\\"\'' in shown
    for metric in ("JobsCompleted", "JobsFailed", "JobsCancelled", "PendingLaunches", "RunningJobs", "Orphans"):
        assert f'["HybridJobs","{metric}","stage","kept"' in shown
    assert "ApproximateNumberOfMessagesVisible" in shown
    assert shown.count('"AWS/Lambda","Errors"') == 3


def test_an_error_of_a_function_and_an_orphan_raise_an_alarm_at_once(empty: Synthesised) -> None:
    raised = {str(each.get("MetricName")): each for each in alarms(empty)}
    assert {"Orphans", "Errors"} <= set(raised)
    for each in alarms(empty):
        assert (each["Threshold"], each["EvaluationPeriods"]) == (1, 1)
        assert each["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"
        assert each["TreatMissingData"] == "notBreaching"
        assert "AlarmActions" not in each
    assert not empty.resources("Jobs", "AWS::SNS::Topic")


def test_alarms_go_to_the_topic_that_the_stage_names(synthesise: Synthesise) -> None:
    stage = synthesise("told", f'{STAGE}alarm_topic = "{TOPIC}"\n')
    assert {tuple(many(each["AlarmActions"])) for each in alarms(stage)} == {(TOPIC,)}
    assert not stage.resources("Jobs", "AWS::SNS::Topic")
    assert stage.documents["Jobs"]["Outputs"]["AlarmTopicArn"]["Value"] == TOPIC


@pytest.mark.parametrize("key", [None, "arn:aws:kms:us-east-1:111122223333:key/0f1e2d3c-0000-1111-2222-333344445555"])
def test_a_new_topic_takes_what_this_account_s_alarms_publish_over_tls(synthesise: Synthesise, key: str | None) -> None:
    stage = synthesise("new", f"{STAGE}alarm_topic = true\n" + (f'encryption_key = "{key}"\n' if key else ""))
    ((topic, made),) = stage.resources("Jobs", "AWS::SNS::Topic").items()
    assert made.get("Properties", {}).get("KmsMasterKeyId") == key
    assert {flat(each) for alarm in alarms(stage) for each in many(alarm["AlarmActions"])} == {f"<{topic}>"}
    statements = {
        each["Sid"]: each for each in stage.the("Jobs", "AWS::SNS::TopicPolicy")["PolicyDocument"]["Statement"]
    }
    assert statements["PublishByAlarms"]["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert statements["PublishByAlarms"]["Condition"] == {
        "StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    }
    assert statements["AllowPublishThroughSSLOnly"]["Effect"] == "Deny"
