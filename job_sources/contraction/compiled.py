"""Compile numerical kernels with numba, the same way everywhere."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from contraction.errors import MissingLibraryError

_Function = TypeVar("_Function", bound=Callable[..., Any])

# "contract" allows fused multiply-add; no other fast-math rule, since results are compared at 1e-10.
# Without numba's runtime ("_nrt") a call of one kernel by another counts no references to its arrays, each of which
# costs two locked instructions: 90 of 100 ns of a typical call.
_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract"},
    "_nrt": False,
}


def compiled(function: _Function) -> _Function:
    """Compile a function to machine code on its first call, and keep the result on disk.

    Modules that use it are imported only where a kernel is needed, so that the package imports without numba. Compiled
    functions can't allocate arrays: their callers pass scratch memory.

    Raises:
        MissingLibraryError: numba isn't installed.
    """
    dispatcher = _numba(function).njit(**_OPTIONS)(function)
    from contraction.kernel_cache import keep_on_disk  # noqa: PLC0415  (imports numba)

    keep_on_disk(dispatcher)
    return cast("_Function", dispatcher)


def inlined(function: _Function) -> _Function:
    """Make a function part of every compiled function that calls it, and compile it nowhere else.

    For one that is called in one place: compiled on its own as well it would be compiled twice.
    """
    return cast("_Function", _numba(function).njit(**_OPTIONS, inline="always")(function))


def _numba(function: Callable[..., Any]) -> Any:
    try:
        import numba  # noqa: PLC0415  (heavy, and optional for the torch execution)
    except ImportError as error:
        raise MissingLibraryError(
            f"kernel {function.__name__!r} needs numba, which is not installed. Install numba>=0.61."
        ) from error
    return numba
