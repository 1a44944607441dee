"""Jobs on GPU instances, which an embedded cloud leaves out on a machine without a GPU."""

from collections.abc import Iterable
from typing import Final

from hybridjobs.model.catalogue import CatalogueEntry

# The CDK context value that is set where no GPU answers.
WITHOUT_GPU: Final = "without-gpu"


def gpu_jobs(jobs: Iterable[CatalogueEntry]) -> list[CatalogueEntry]:
    """Choose the jobs whose instance type has GPUs."""
    return [job for job in jobs if job.spec.instance_type.gpus]
