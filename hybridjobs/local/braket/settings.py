"""What can be set at the endpoint."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field


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
