"""Compile numerical kernels with numba, the same way everywhere."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from contraction.errors import MissingLibraryError

_Function = TypeVar("_Function", bound=Callable[..., Any])

# "contract" allows fused multiply-add; no other fast-math rule, since results are compared at 1e-10.
_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": {"contract"}}


def compiled(function: _Function) -> _Function:
    """Compile a function to machine code on its first call, and keep the result on disk.

    Modules that use it are imported only where a kernel is needed, so that the package imports without numba.

    Raises:
        MissingLibraryError: numba isn't installed.
    """
    return _compiled(function, inline=False)


def inlined(function: _Function) -> _Function:
    """Like `compiled`, for a short helper of other kernels: written into its callers.

    A call would pass each array as seven numbers, which costs more than the helper's own work.
    """
    return _compiled(function, inline=True)


def _compiled(function: _Function, *, inline: bool) -> _Function:
    try:
        import numba  # noqa: PLC0415  (heavy, and optional for the torch execution)
    except ImportError as error:
        raise MissingLibraryError(
            f"kernel {function.__name__!r} needs numba, which is not installed. Install numba>=0.61."
        ) from error
    return cast("_Function", numba.njit(**_OPTIONS, forceinline=inline)(function))
