"""Compile numerical kernels with numba, the same way everywhere."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from contraction.errors import MissingLibraryError

_Function = TypeVar("_Function", bound=Callable[..., Any])

# "contract" allows fused multiply-add; no other fast-math rule, since results are compared at 1e-10.
# Without numba's runtime ("_nrt") a call of one kernel by another counts no references to its arrays, each of which
# costs two locked instructions: 90 of 100 ns of a typical call.
_OPTIONS: dict[str, Any] = {
    "cache": True,
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
    try:
        import numba  # noqa: PLC0415  (heavy, and optional for the torch execution)
    except ImportError as error:
        raise MissingLibraryError(
            f"kernel {function.__name__!r} needs numba, which is not installed. Install numba>=0.61."
        ) from error
    return cast("_Function", numba.njit(**_OPTIONS)(function))
