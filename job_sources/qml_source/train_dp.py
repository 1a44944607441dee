"""Entry point: trains on every GPU, or every CPU slot, of every host.

The service starts it once on each host. It checks the job before anything is started, and then becomes the launcher of
its host's workers, which meet at the first host.
"""

import os

from qml_source.hyperparameters import check_workers
from qml_source.job import read_job
from qml_source.launcher import launch
from qml_source.topology import read_topology


def main() -> None:
    """Runs the job that the container's environment describes; an exception is its failure reason."""
    if os.environ.get("LOCAL_RANK", "0") != "0":
        # A container that starts a process for each GPU itself: the first one launches the workers of them all.
        print("This host's workers are started by its first process.")
        return
    job = read_job()
    topology = read_topology(os.environ, job.device, job.settings.workers_per_host)
    check_workers(job.settings, topology.workers)
    launch(topology)


if __name__ == "__main__":
    main()
