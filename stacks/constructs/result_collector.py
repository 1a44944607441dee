"""Turns ended jobs into records: the collector on Braket's events, and the sweep on a schedule."""

from aws_cdk import Acknowledgment, Duration, RemovalPolicy, Validations
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.constructs.launch_environment import LaunchEnvironment
from stacks.constructs.permissions import allow, deny_quantum_hardware
from stacks.constructs.run_time_function import RunTimeFunction

HANDLER = "collect_result.handler.handle"
ENDED = ("CANCELLED", "COMPLETED", "FAILED")
SWEEP_INTERVAL = Duration.minutes(5)


class ResultCollector(Construct):
    """Collector function with its rule, sweep function with its schedule, and the queues of what neither could do.

    Events come at least once and in any order, and some never come: the collector may be called twice for a job, and
    the sweep finds what no event told of. Two hops retry by themselves and have a queue each: EventBridge calling
    Lambda leaves `undelivered` events, and Lambda running the function leaves `unprocessed` ones. `alarms` tell of the
    first message in either.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        launches: LaunchEnvironment,
        code: lambda_.Code,
        log_retention: logs.RetentionDays,
        log_removal: RemovalPolicy,
    ) -> None:
        super().__init__(scope, construct_id)
        self.undelivered = self._dead_letters("Undelivered")
        Validations.of(self.undelivered).acknowledge(
            Acknowledgment(
                id="AwsSolutions-SQS3",
                reason="This is a dead-letter queue, of the targets of rules; cdk-nag knows those of functions.",
            )
        )
        self.unprocessed = self._dead_letters("Unprocessed")
        self.alarms = (
            self._alarm("UndeliveredAlarm", self.undelivered, "EventBridge could not hand over", launches),
            self._alarm("UnprocessedAlarm", self.unprocessed, "the collector or the sweep could not process", launches),
        )

        def function(construct_id: str, description: str, retry_attempts: int) -> RunTimeFunction:
            made = RunTimeFunction(
                self,
                construct_id,
                code=code,
                handler=HANDLER,
                description=description,
                environment=launches.variables(),
                timeout=Duration.minutes(4),
                memory_mib=512,
                log_retention=log_retention,
                log_removal=log_removal,
                dead_letters=self.unprocessed,
                retry_attempts=retry_attempts,
            )
            allow(made.role, *launches.start_jobs(), *launches.collect_results())
            if not launches.quantum_hardware:
                deny_quantum_hardware(made.role)
            return made

        collector = function("Collector", f"Records the ended jobs of stage {launches.stage_name}", retry_attempts=2)
        events.Rule(
            self,
            "JobEnded",
            description=f"Ended hybrid jobs, for the collector of stage {launches.stage_name}",
            # A job's ARN ends in a random id, so the collector itself tells the stage's own jobs from others.
            event_pattern=events.EventPattern(
                source=["aws.braket"],
                detail_type=["Braket Job State Change"],
                detail={"status": list(ENDED)},
            ),
            targets=[
                targets.LambdaFunction(
                    collector.function,
                    dead_letter_queue=self.undelivered,
                    retry_attempts=8,
                    max_event_age=Duration.hours(6),
                )
            ],
        )
        # The next sweep is the retry of a failed one.
        sweep = function("Sweep", f"Repairs what events missed in stage {launches.stage_name}", retry_attempts=0)
        allow(sweep.role, *launches.find_orphans())
        self.functions = {"Collector": collector.function, "Sweep": sweep.function}
        events.Rule(
            self,
            "SweepSchedule",
            description=f"Regular sweep of stage {launches.stage_name}",
            schedule=events.Schedule.rate(SWEEP_INTERVAL),
            targets=[
                targets.LambdaFunction(
                    sweep.function,
                    event=events.RuleTargetInput.from_object({"sweep": True}),
                    dead_letter_queue=self.undelivered,
                    retry_attempts=0,
                    max_event_age=SWEEP_INTERVAL,
                )
            ],
        )

    def _dead_letters(self, construct_id: str) -> sqs.Queue:
        return sqs.Queue(
            self,
            construct_id,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(14),
        )

    def _alarm(self, construct_id: str, queue: sqs.Queue, what: str, launches: LaunchEnvironment) -> cloudwatch.Alarm:
        return cloudwatch.Alarm(
            self,
            construct_id,
            alarm_description=f"Stage {launches.stage_name}: there are events that {what}; read them in the queue",
            metric=queue.metric_approximate_number_of_messages_visible(
                period=Duration.minutes(5), statistic=cloudwatch.Stats.MAXIMUM
            ),
            threshold=1,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            evaluation_periods=1,
            # A queue that nobody has used for hours reports nothing.
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
