"""The workers that train together: what one of them knows of the others, and how they add up numbers."""

import datetime
import importlib
import importlib.util
import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor

# How long a worker waits for the others in one exchange. A worker that ends is noticed at once, by its connections or
# by its launcher; this is for one that neither ends nor goes on. It must outlast the slowest worker's slowest step.
LONGEST_WAIT = datetime.timedelta(minutes=30)
SMDISTRIBUTED = "smdistributed.dataparallel.torch.torch_smddp"


class PeerLostError(RuntimeError):
    """An exchange with the other workers broke off: another worker has ended, and its own error is the cause."""


class BackendError(RuntimeError):
    """The workers can't be connected as asked: says how, why, and the remedy."""


class Ranks(Protocol):
    """All workers of a training, seen from one of them: `rank` of `size`."""

    rank: int
    size: int

    @property
    def backend(self) -> str | None:
        """The backend of torch.distributed, None for a single process."""

    def add_up(self, numbers: Tensor) -> None:
        """Replaces `numbers` by their sum over all workers, in place; all get the same."""

    def share(self, content: bytes | None) -> bytes | None:
        """Returns worker 0's content to every worker."""


class Alone:
    """A single process."""

    rank = 0
    size = 1
    backend = None

    def add_up(self, numbers: Tensor) -> None:
        """Nothing: the sum over one worker."""

    def share(self, content: bytes | None) -> bytes | None:
        """The content itself."""
        return content


class ConnectedRanks:
    """Workers connected by torch.distributed, whose group has been initialised."""

    def __init__(self, place: torch.device) -> None:
        self.rank = dist.get_rank()
        self.size = dist.get_world_size()
        self.backend: str | None = dist.get_backend()
        self._place = place

    def add_up(self, numbers: Tensor) -> None:
        """Sums over all workers in place.

        Raises:
            PeerLostError: Another worker is gone.
        """
        self._exchange(lambda: dist.all_reduce(numbers), "adding up gradients")

    def share(self, content: bytes | None) -> bytes | None:
        """Worker 0's content.

        Raises:
            PeerLostError: Another worker is gone.
        """
        length = torch.tensor([-1 if content is None else len(content)], device=self._place)
        self._exchange(lambda: dist.broadcast(length, src=0), "sharing the checkpoint")
        if length.item() < 0:
            return None
        data = torch.zeros(int(length.item()), dtype=torch.uint8, device=self._place)
        if self.rank == 0 and content is not None:
            data.copy_(torch.frombuffer(bytearray(content), dtype=torch.uint8))
        self._exchange(lambda: dist.broadcast(data, src=0), "sharing the checkpoint")
        return bytes(data.cpu().numpy().tobytes())

    def _exchange(self, exchange: Callable[[], Any], purpose: str) -> None:
        try:
            exchange()
        except RuntimeError as error:
            # gloo's messages begin with the place in its own source.
            reason = re.sub(r"^\[[^]]*\] *", "", str(error)).partition("\n")[0] or repr(error)
            raise PeerLostError(f"lost the other workers while {purpose}: {reason}") from error


def choose_backend(asked: str, *, on_gpu: bool) -> str:
    """The backend of torch.distributed to use: `asked`, or for "auto" what suits where the gradients are.

    smdistributed, where an image still has it, is a backend for gradients on GPUs.

    Raises:
        BackendError: The backend asked for isn't there, or doesn't reach where the gradients are.
    """
    has_smdistributed = importlib.util.find_spec("smdistributed") is not None
    if asked == "auto":
        if not on_gpu:
            return "gloo"
        return "smddp" if has_smdistributed else "nccl"
    if asked == "smddp" and not has_smdistributed:
        raise BackendError("backend = 'smddp' but this image has no smdistributed: leave it out, or give nccl")
    if asked in ("smddp", "nccl") and not on_gpu:
        raise BackendError(
            f"backend = {asked!r} adds up gradients on GPUs, and on this device they are in main memory: leave it out, "
            "or give gloo"
        )
    if asked == "nccl" and not dist.is_nccl_available():
        raise BackendError("backend = 'nccl' but this PyTorch has none: use an image with PyTorch for GPUs")
    return asked


def connect(asked: str, place: torch.device) -> ConnectedRanks:
    """Connects this process to the other workers, as the launcher's environment variables describe them.

    Raises:
        BackendError: The backend can't be used.
        PeerLostError: The others don't answer.
    """
    backend = choose_backend(asked, on_gpu=place.type == "cuda")
    if backend == "smddp":
        importlib.import_module(SMDISTRIBUTED)  # registers the backend
    try:
        dist.init_process_group(backend, timeout=LONGEST_WAIT)
    except RuntimeError as error:
        raise PeerLostError(f"the workers could not be connected by {backend}: {error}") from error
    return ConnectedRanks(place)


def disconnect() -> None:
    """Closes the connections, if there are any."""
    if dist.is_initialized():
        dist.destroy_process_group()


def network_variables(environment: Mapping[str, str], hosts: int, interfaces: list[str]) -> dict[str, str]:
    """The variables that tell gloo and NCCL which network to use, those that are set already left out.

    The service names the network between hosts; a single host talks to itself.
    """
    named = environment.get("SM_NETWORK_INTERFACE_NAME", "")
    interface = named if hosts > 1 else next((each for each in ("lo", "lo0") if each in interfaces), named)
    if interface not in interfaces:
        return {}
    names = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
    return {name: interface for name in names if name not in environment}
