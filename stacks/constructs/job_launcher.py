"""The function that CloudFormation calls to launch a job, behind the CDK's synchronous provider framework."""

from collections.abc import Iterable

from aws_cdk import Duration, RemovalPolicy, custom_resources
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from stacks.constructs.launch_environment import LaunchEnvironment
from stacks.constructs.permissions import Permission, allow, deny_quantum_hardware
from stacks.constructs.run_time_function import FunctionRole, RunTimeFunction
from stacks.names import asset_prefix


class JobLauncher(Construct):
    """Launcher function and provider framework, each with a role of its own.

    The framework traps every error and always answers CloudFormation. It is the synchronous one: a launch takes
    seconds and never waits for the job, so there is no state machine.
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
        self._stage_name = launches.stage_name
        self._launcher = RunTimeFunction(
            self,
            "Launcher",
            code=code,
            handler="launch_job.handler.handle",
            description=f"Launches the hybrid quantum jobs of stage {launches.stage_name}",
            environment=launches.variables(),
            timeout=Duration.seconds(240),
            memory_mib=512,
            log_retention=log_retention,
            log_removal=log_removal,
        )
        allow(
            self._launcher.role,
            *launches.start_jobs(),
            *launches.place_sources_and_inputs(),
            *launches.see_stack_going(),
        )
        if not launches.quantum_hardware:
            deny_quantum_hardware(self._launcher.role)
        framework_logs = logs.LogGroup(self, "FrameworkLogs", retention=log_retention, removal_policy=log_removal)
        framework_role = FunctionRole(self, "FrameworkRole", log_group=framework_logs)
        launcher_arn = self._launcher.function.function_arn
        allow(
            framework_role,
            Permission(
                sid="CallLauncher",
                actions=["lambda:GetFunction", "lambda:InvokeFunction"],
                resources=[launcher_arn],
            ),
        )
        provider = custom_resources.Provider(
            self,
            "Provider",
            on_event_handler=self._launcher.function,
            # The framework's own grant covers every version and alias of the launcher; the statement above is exact.
            framework_on_event_role=framework_role.without_policy_updates(),
            log_group=framework_logs,
        )
        self.function = self._launcher.function
        self.service_token = provider.service_token

    def allow_reading(self, assets: Iterable[s3_assets.Asset]) -> None:
        """Let the launcher read the sources and inputs among `assets`: the stage's own files in the CDK's asset bucket.

        Called once, with what all jobs bring. A policy has no room to name hundreds of files one by one.
        """
        prefix = asset_prefix(self._stage_name)
        objects = sorted({asset.bucket.arn_for_objects(f"{prefix}*") for asset in assets})
        if objects:
            reading = Permission(
                sid="ReadAssets",
                actions=["s3:GetObject"],
                resources=objects,
                wildcard_reason="The CDK names files by a hash of their content; the prefix holds this stage's alone.",
            )
            allow(self._launcher.role, reading)
