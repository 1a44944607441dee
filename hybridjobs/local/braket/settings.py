"""What can be set at the endpoint."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from hybridjobs.model.errors import ProjectError

QUOTA_VARIABLE = "HYBRIDJOBS_MAX_CONCURRENT_JOBS"


class SettingError(ProjectError):
    """A setting of the endpoint that can't be used."""


@dataclass(frozen=True)
class EndpointSettings:
    """The account that the endpoint plays, and its limits.

    `max_concurrent_jobs` is the service quota: with so many jobs that haven't ended, CreateJob answers
    ServiceQuotaExceededException. `max_workers` bounds how many jobs execute at once on this machine; the rest waits
    in the queue. `instance_quotas` raises (or lowers) the documented quotas by instance type, as a quota increase
    does in an account. `max_instance_count` is the documented upper limit of instances of one job.
    """

    max_concurrent_jobs: int = 3
    max_workers: int = max(2, os.cpu_count() or 1)
    max_task_workers: int = max(1, (os.cpu_count() or 1) // 2)
    account: str = "000000000000"
    region: str = "us-east-1"
    instance_quotas: Mapping[str, int] = field(default_factory=dict)
    max_instance_count: int = 5


def chosen_settings(environment: Mapping[str, str] = os.environ) -> EndpointSettings:
    """Return the settings; `environment` may name the quota of concurrent jobs in HYBRIDJOBS_MAX_CONCURRENT_JOBS.

    Raises SettingError when that is no whole number of at least 1.
    """
    quota = environment.get(QUOTA_VARIABLE)
    if not quota:
        return EndpointSettings()
    if not (quota.isascii() and quota.isdecimal() and int(quota) > 0):
        raise SettingError(f"{QUOTA_VARIABLE} = {quota!r}: this is no number of jobs. Write a whole number from 1 on")
    return EndpointSettings(max_concurrent_jobs=int(quota))
