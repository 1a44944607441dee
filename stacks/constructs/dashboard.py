"""What an operator looks at, and what wakes one up: one dashboard a stage, its alarms, and the topic they go to."""

from collections.abc import Sequence

from aws_cdk import Aws, Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

# Written by the functions, in the embedded metric format of CloudWatch Logs.
NAMESPACE = "HybridJobs"
BY_JOB = f"{{{NAMESPACE},device,job,stage}}"
ENDS = ("JobsCompleted", "JobsFailed", "JobsCancelled")
PERIOD = Duration.minutes(5)


def alarm_topic(scope: Construct, topic: str | bool, encryption_key: kms.IKey | None) -> sns.ITopic | None:
    """The topic that a stage names by its ARN, a new one for `true`, or none.

    A new one takes messages from this account's alarms, over TLS. A key that encrypts it has to let CloudWatch use it.
    """
    if topic is False:
        return None
    if isinstance(topic, str):
        return sns.Topic.from_topic_arn(scope, "AlarmTopic", topic)
    made = sns.Topic(scope, "AlarmTopic", enforce_ssl=True, master_key=encryption_key)
    made.add_to_resource_policy(
        iam.PolicyStatement(
            sid="PublishByAlarms",
            principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
            actions=["sns:Publish"],
            resources=[made.topic_arn],
            conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
        )
    )
    return made


class Dashboard(Construct):
    """Time and cost by job and device, states of jobs, errors of the functions, dead letters and orphans.

    `functions` maps what a function does to it. `alarms` are those of other constructs, which go to the topic too.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        stage_name: str,
        functions: dict[str, lambda_.IFunction],
        dead_letters: Sequence[sqs.IQueue],
        alarms: Sequence[cloudwatch.Alarm],
        topic: sns.ITopic | None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._stage_name = stage_name
        orphans = self._metric("Orphans", cloudwatch.Stats.MAXIMUM)
        errors = {name: function.metric_errors(period=PERIOD) for name, function in functions.items()}
        own = [
            self._alarm("OrphansAlarm", orphans, "jobs or launches run that no stack resource holds"),
            *(
                self._alarm(f"{name}ErrorsAlarm", metric, f"the function that is the stage's {name.lower()} failed")
                for name, metric in errors.items()
            ),
        ]
        if topic is not None:
            for alarm in (*own, *alarms):
                alarm.add_alarm_action(actions.SnsAction(topic))
        cloudwatch.Dashboard(
            self,
            "Dashboard",
            default_interval=Duration.days(7),
            widgets=[
                [
                    self._by_job("Seconds an iteration", "SecondsPerIteration", cloudwatch.Stats.AVERAGE),
                    self._by_job("Cost in USD", "CostUsd", cloudwatch.Stats.SUM),
                ],
                [
                    _graph("Ends of jobs", [self._metric(name, cloudwatch.Stats.SUM) for name in ENDS]),
                    _graph(
                        "Jobs that wait and run",
                        [self._metric(name, cloudwatch.Stats.MAXIMUM) for name in ("PendingLaunches", "RunningJobs")],
                    ),
                ],
                [
                    _graph("Errors of functions", [metric.with_(label=name) for name, metric in errors.items()], 8),
                    _graph(
                        "Dead letters",
                        [queue.metric_approximate_number_of_messages_visible(period=PERIOD) for queue in dead_letters],
                        8,
                    ),
                    _graph("Orphans", [orphans], 8),
                ],
                [cloudwatch.AlarmStatusWidget(title="Alarms", alarms=[*own, *alarms], width=24)],
            ],
        )

    def _metric(self, name: str, statistic: str) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace=NAMESPACE,
            metric_name=name,
            dimensions_map={"stage": self._stage_name},
            statistic=statistic,
            period=PERIOD,
        )

    def _by_job(self, title: str, metric: str, statistic: str) -> cloudwatch.GraphWidget:
        # A search finds the jobs that are launched one day too.
        search = cloudwatch.MathExpression(
            expression=f"SEARCH('{BY_JOB} MetricName=\"{metric}\" stage=\"{self._stage_name}\"', '{statistic}')",
            using_metrics={},
            label="",
            period=Duration.hours(1),
        )
        return _graph(title, [search])

    def _alarm(self, construct_id: str, metric: cloudwatch.Metric, what: str) -> cloudwatch.Alarm:
        return cloudwatch.Alarm(
            self,
            construct_id,
            alarm_description=f"Stage {self._stage_name}: {what}",
            metric=metric,
            threshold=1,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            evaluation_periods=1,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )


def _graph(title: str, metrics: Sequence[cloudwatch.IMetric], width: int = 12) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, left=list(metrics), width=width, height=6)
