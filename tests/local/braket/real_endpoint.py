"""The endpoint with jobs as real processes, in a process of its own: python real_endpoint.py FOLDER VARIABLES.

VARIABLES is JSON, the variables of an emulated AWS. It prints its URL, and stops when its standard input ends.
"""

import json
import sys
from pathlib import Path

from hybridjobs.local.braket.endpoint import BraketEndpoint, EndpointSettings
from hybridjobs.local.runners.job import JobSettings
from hybridjobs.local.runners.process import ProcessRunner

if __name__ == "__main__":
    runner = ProcessRunner(settings=JobSettings(watch_seconds=0.5, grace_seconds=0.5, log_seconds=0.1))
    limits = EndpointSettings(max_workers=3, max_concurrent_jobs=6, instance_quotas={"ml.m5.large": 100})
    endpoint = BraketEndpoint(Path(sys.argv[1]), runner, json.loads(sys.argv[2]), lambda event: None, limits)
    print(endpoint.start(), flush=True)
    sys.stdin.read()
    endpoint.stop()
