"""One host's launcher with stub workers, as train_dp starts it."""

import os

from qml_source.launcher import launch
from qml_source.simulators import parse_device
from qml_source.topology import read_topology

launch(read_topology(os.environ, parse_device(os.environ["AMZN_BRAKET_DEVICE_ARN"]), 2), worker="stub_worker")
