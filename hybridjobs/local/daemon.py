"""The background process of an embedded cloud: AWS and Braket on loopback, in one process.

    python -m hybridjobs.local.daemon PROJECT [--bound]

It publishes its state once both listeners answer, and ends on SIGTERM or SIGINT, or, when `--bound`, as soon as its
standard input ends: the kernel closes that pipe however its other end dies. A bound daemon also removes the run folder.
"""

import argparse
import asyncio
import logging
import os
import signal
import sys
import threading
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import psutil

from hybridjobs.local import processes
from hybridjobs.local.emulator import Emulator
from hybridjobs.local.environment import aws_environment, process_environment
from hybridjobs.local.run_folder import CloudState, RunFolder
from hybridjobs.local.runners.choice import chosen_runner, end_containers

_STOP_SECONDS = 5.0
logger = logging.getLogger("hybridjobs.local")


class Endpoint(Protocol):
    """What the daemon asks of the Braket endpoint."""

    def start(self) -> str:
        """Listen on a free loopback port and return the URL."""
        ...

    def stop(self) -> None:
        """End every job's processes, and stop listening."""
        ...


MakeEndpoint = Callable[[Path, dict[str, str], Callable[[Mapping[str, Any]], None]], Endpoint]
"""Makes the Braket endpoint from its folder, the AWS variables (without the endpoint's own), and the event sink."""


def braket_endpoint(
    folder: Path, environment: dict[str, str], publish_event: Callable[[Mapping[str, Any]], None]
) -> Endpoint:
    """The Braket Jobs endpoint, with the runner and the quota of concurrent jobs that the environment names."""
    from hybridjobs.local.braket.endpoint import BraketEndpoint  # noqa: PLC0415
    from hybridjobs.local.braket.settings import chosen_settings  # noqa: PLC0415

    return BraketEndpoint(folder, chosen_runner(), environment, publish_event, chosen_settings())


async def run(folder: RunFolder, make_endpoint: MakeEndpoint, *, bound: bool) -> None:
    """Serve until asked to end; then end every process that was started here."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_number, stop.set)
    if bound:
        threading.Thread(target=_wait_for_end_of_input, args=(loop, stop), daemon=True).start()

    emulator = Emulator(folder)
    environment = process_environment(folder) | aws_environment(emulator.port)
    endpoint = make_endpoint(folder.braket, environment, emulator.publish_event)
    braket_url = await asyncio.to_thread(endpoint.start)
    # The emulator's Lambda functions inherit this environment, and with it the endpoint's port.
    os.environ.update(aws_environment(emulator.port, braket_url))
    serving = asyncio.create_task(emulator.serve(stop))
    ready = asyncio.create_task(asyncio.to_thread(_wait_until_healthy, emulator.port))
    await asyncio.wait({serving, ready}, return_when=asyncio.FIRST_COMPLETED)
    if ready.done():
        ready.result()
        process = psutil.Process()
        folder.write_state(CloudState(process.pid, process.create_time(), emulator.port, braket_url))
        logger.info("AWS at port %d, Braket at %s", emulator.port, braket_url)
    await asyncio.wait({serving, asyncio.create_task(stop.wait())}, return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        serving.result()
    await asyncio.wait({asyncio.create_task(asyncio.to_thread(endpoint.stop))}, timeout=_STOP_SECONDS)


def main(make_endpoint: MakeEndpoint = braket_endpoint) -> None:
    """Run the daemon that the command line describes."""
    parser = argparse.ArgumentParser(description="The background process of an embedded cloud.")
    parser.add_argument("project", type=Path)
    parser.add_argument("--bound", action="store_true")
    arguments = parser.parse_args()
    folder = RunFolder(arguments.project.resolve())
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    exit_code = 0
    # Not asyncio.run: at its end that waits for the emulator's threads, and some of those wait for an hour.
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(run(folder, make_endpoint, bound=arguments.bound))
    except Exception:
        # The last stop: whatever it was belongs into the log, and the processes must not survive it.
        logger.exception("the embedded cloud ended")
        exit_code = 1
    finally:
        # Whoever waits for the start reads the log of one that failed, and removes the folder then.
        _end(folder, exit_code, remove=arguments.bound and not exit_code)


def _end(folder: RunFolder, exit_code: int, *, remove: bool) -> None:
    processes.end_all(folder.path)
    end_containers(folder)
    folder.state_file.unlink(missing_ok=True)
    if remove:
        folder.remove()
    logging.shutdown()
    # Threads of the emulator that wait for a custom resource's answer would keep the interpreter for up to an hour.
    os._exit(exit_code)


def _wait_for_end_of_input(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    while sys.stdin.buffer.read(1024):
        pass
    loop.call_soon_threadsafe(stop.set)


def _wait_until_healthy(port: int) -> None:
    # The socket listens already, so this one request waits for the answer instead of being refused.
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/_ministack/health", timeout=60) as answer:
        answer.read()


if __name__ == "__main__":
    main()
