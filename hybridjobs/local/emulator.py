"""The AWS emulator (ministack) in this process, with the workarounds for its gaps."""

import asyncio
import contextvars
import json
import os
import socket
import time
from collections.abc import Mapping
from typing import Any

from hybridjobs.local.environment import ACCOUNT, REGION
from hybridjobs.local.run_folder import RunFolder

_PUBLISH_SECONDS = 30.0


class Emulator:
    """AWS on one free port of 127.0.0.1.

    ministack reads its settings when it is imported, so there is at most one emulator a process, and the port is taken
    before the import. The listening socket is handed over instead of a number: nobody else can get hold of the port.
    """

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self._loop: asyncio.AbstractEventLoop | None = None
        # Connections made from now on wait until `serve` answers them.
        self._socket.listen(128)
        self.port: int = self._socket.getsockname()[1]

    def environment(self) -> dict[str, str]:
        """The settings of ministack: loopback only, nothing on disk outside the run folder, no further listeners."""
        return {
            "BIND_HOST": "127.0.0.1",
            # ministack removes every container that carries its label, whoever started it, when it finds an engine.
            "DOCKER_HOST": f"unix://{self._folder.emulator}/no-engine.sock",
            "GATEWAY_PORT": str(self.port),
            "IOT_MTLS_ENABLED": "0",
            "LAMBDA_EXECUTOR": "local",
            "MINISTACK_ACCOUNT_ID": ACCOUNT,
            "MINISTACK_HOST": "127.0.0.1",
            "MINISTACK_REGION": REGION,
            "PERSIST_STATE": "0",
            "S3_DATA_DIR": f"{self._folder.emulator}/s3",
            "SFTP_ENABLED": "0",
            "STATE_DIR": f"{self._folder.emulator}/state",
        }

    async def serve(self, stop: asyncio.Event, *, with_workarounds: bool = True) -> None:
        """Answer requests until `stop` is set.

        The variables that its Lambda functions are to see (AWS_ENDPOINT_URL and the like) must be in `os.environ` by
        now: a function's process inherits the emulator's environment.
        """
        os.environ.update(self.environment())
        from hypercorn.asyncio import serve  # noqa: PLC0415
        from hypercorn.config import Config  # noqa: PLC0415
        from ministack.app import app  # noqa: PLC0415

        if with_workarounds:
            from hybridjobs.local.gaps import WORKAROUNDS  # noqa: PLC0415

            for workaround in WORKAROUNDS:
                workaround()
        self._loop = asyncio.get_running_loop()
        config = Config()
        config.bind = [f"fd://{self._socket.fileno()}"]
        config.keep_alive_timeout = 75.0
        config.graceful_timeout = 0.5
        config.loglevel = "WARNING"
        await serve(app, config, shutdown_trigger=stop.wait)

    def publish_event(self, entry: Mapping[str, Any]) -> None:
        """Put an event of an AWS service on the default event bus; PutEvents refuses such a source, as on AWS.

        Args:
            entry: A PutEvents entry: Source, DetailType, Detail (JSON text), Resources.

        Raises:
            RuntimeError: The emulator does not run, or its bus refused the event.
        """
        if self._loop is None:
            raise RuntimeError(f"event {entry.get('DetailType')!r} can't be published: the emulator does not run yet")
        done = asyncio.run_coroutine_threadsafe(_put_event(entry), self._loop)
        answer = json.loads(done.result(_PUBLISH_SECONDS))
        if answer["FailedEntryCount"]:
            raise RuntimeError(f"the event bus refused {entry.get('DetailType')!r}: {answer['Entries']}")


async def _put_event(entry: Mapping[str, Any]) -> bytes:
    return contextvars.copy_context().run(_put_event_as_service, entry)


def _put_event_as_service(entry: Mapping[str, Any]) -> bytes:
    # Which account and region an event belongs to is a context variable that the emulator sets for each request.
    from ministack.core.responses import set_request_account_id, set_request_region  # noqa: PLC0415
    from ministack.services import eventbridge  # noqa: PLC0415

    set_request_account_id(ACCOUNT)
    set_request_region(REGION)
    eventbridge._ensure_default_bus()
    _, _, body = eventbridge._put_events(
        {"Entries": [{**entry, "Time": entry.get("Time", time.time())}]}, allow_aws_source=True
    )
    return bytes(body)
