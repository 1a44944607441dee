"""What a function is told by its environment, read once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class SettingsError(Exception):
    """Raised when the environment of a function lacks a variable, or holds a value that can't be used."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The stage that a function serves and the resources that it works on."""

    stage: str
    job_bucket: str
    job_role_arn: str
    ledger_table: str
    max_concurrent_jobs: int
    repository_name: str
    region: str
    cancel_orphans: bool = False
    max_spend_usd: float | None = None
    allow_unknown_price: bool = False

    @property
    def account(self) -> str:
        """The account that owns the job role, and so everything else here."""
        return self.job_role_arn.split(":")[4]

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Read the settings from environment variables.

        Raises:
            SettingsError: A variable is absent or empty, or a number isn't one.
        """
        most = _required(environment, "MAX_CONCURRENT_JOBS")
        spend = environment.get("MAX_SPEND_USD", "")
        try:
            max_concurrent_jobs = int(most)
            max_spend_usd = float(spend) if spend else None
        except ValueError as error:
            raise SettingsError(
                f"MAX_CONCURRENT_JOBS = {most!r}, MAX_SPEND_USD = {spend!r}: not a number. Deploy the stage again"
            ) from error
        return cls(
            stage=_required(environment, "STAGE"),
            job_bucket=_required(environment, "JOB_BUCKET"),
            job_role_arn=_required(environment, "JOB_ROLE_ARN"),
            ledger_table=_required(environment, "LEDGER_TABLE"),
            max_concurrent_jobs=max_concurrent_jobs,
            repository_name=_required(environment, "REPOSITORY_NAME"),
            region=environment.get("AWS_REGION") or _required(environment, "AWS_DEFAULT_REGION"),
            cancel_orphans=_flag(environment, "CANCEL_ORPHANS"),
            max_spend_usd=max_spend_usd,
            allow_unknown_price=_flag(environment, "ALLOW_UNKNOWN_PRICE"),
        )


def _required(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "")
    if not value:
        raise SettingsError(f"environment variable {name} is not set: the function was not deployed by this project")
    return value


def _flag(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "false").lower() == "true"
