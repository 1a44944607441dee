"""Entry point: trains in one process."""

from qml_source.job import read_job
from qml_source.place import choose_place
from qml_source.ranks import Alone
from qml_source.training import train


def main() -> None:
    """Runs the job that the container's environment describes; an exception is its failure reason."""
    job = read_job()
    train(job, Alone(), choose_place(job.device))


if __name__ == "__main__":
    main()
