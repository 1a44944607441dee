"""Which jobs of a stage the embedded cloud doesn't launch on this machine, and why."""

from pathlib import Path

from hybridjobs.local.runners.machine import gpu_count
from hybridjobs.model.catalogue import load_catalogue
from hybridjobs.model.gpu_jobs import WITHOUT_GPU, gpu_jobs
from hybridjobs.model.stage import load_stage, selected_jobs


def gpu_context() -> dict[str, str]:
    """Return the context values that tell the app what this machine can't run."""
    return {} if gpu_count() else {WITHOUT_GPU: "true"}


def left_out(project: Path, stage: str) -> dict[str, str]:
    """Return the names of the jobs that a deployment of `stage` leaves out here, each with its reason.

    Raises:
        SpecError: The stage or a job of `project` is not valid.
    """
    if gpu_count():
        return {}
    jobs = selected_jobs(load_stage(project / "stages", stage), load_catalogue(project / "job_sources"))
    return {job.spec.name: f"{job.spec.instance_type.name} has a GPU, this machine has none" for job in gpu_jobs(jobs)}
