"""A worker's part in a data-parallel training: connect to the others, train, disconnect."""

import os

from qml_source import ranks
from qml_source.job import read_job
from qml_source.place import choose_place
from qml_source.training import train


def take_part() -> None:
    """Trains as the worker that the launcher's environment variables describe.

    Raises:
        PeerLostError: Another worker has ended. Every other exception is this worker's own.
    """
    job = read_job()
    place = choose_place(job.device, sharers=int(os.environ["LOCAL_WORLD_SIZE"]))
    connected = ranks.connect(job.settings.backend, place.tensors)
    train(job, connected, place)
    ranks.disconnect()
