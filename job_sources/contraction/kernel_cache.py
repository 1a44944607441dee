"""Keep compiled kernels on disk, found by what they were compiled from and for.

numba's own cache names a file by the path of its source, so that a job, whose archive is unpacked into a new folder
each time, would compile every kernel again. Here a file is named by the SHA-256 of all of this package's sources, the
kernel's name and argument types, the processor with its features, and the versions of numba and Python. A file begins
with the SHA-256 of its content; one that is damaged is compiled again. Files are renamed into their place whole.
"""

import hashlib
import logging
import os
import pickle
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.serialize import dumps

from contraction.cache_folder import cache_folder

_DIGEST_BYTES = 32
_LOGGER = logging.getLogger(__name__)


@cache
def _sources_digest() -> str:
    digest = hashlib.sha256(f"{numba.__version__} {sys.version_info} {getattr(sys, 'abiflags', '')}".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


class _Nowhere:
    """numba's idea of where a cache lies, which this one has no use for."""

    def __init__(self, py_file: str) -> None:
        self._py_file = py_file  # read by numba where it warns

    @classmethod
    def from_function(cls, _py_func: Callable[..., Any], py_file: str) -> "_Nowhere":
        return cls(py_file)

    def get_disambiguator(self) -> str:
        return ""


class _Serializer(CompileResultCacheImpl):
    _locator_classes: Any = (_Nowhere,)


class KernelCache(FunctionCache):
    """The cache of one kernel, as numba's dispatcher uses it.

    Args:
        function: what is compiled.
        folder: where files lie.
    """

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._name = repr(function)
        self._py_func = function
        self._impl: Any = _Serializer(function)  # type: ignore[no-untyped-call]
        self._folder = folder
        self._enabled = True

    @property
    def cache_path(self) -> str:
        """The folder."""
        return str(self._folder)

    def flush(self) -> None:
        """Forget nothing: a file stands for the same sources for ever."""

    def _file(self, signature: Any, codegen: Any) -> Path:
        key = f"{_sources_digest()} {signature} {codegen.magic_tuple()}"
        name = f"{self._py_func.__module__}.{self._py_func.__qualname__}"
        return self._folder / f"{name}-{hashlib.sha256(key.encode()).hexdigest()}.kernel"

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        path = self._file(sig, target_context.codegen())
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            _LOGGER.warning("kernel %s can't be read (%s): it is compiled again", path, error)
            return None
        digest, payload = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        if hashlib.sha256(payload).digest() != digest:
            _LOGGER.warning("kernel %s is damaged: it is compiled again", path)
            return None
        # As numba reads its own cache: the folder is its user's.
        return self._impl.rebuild(target_context, pickle.loads(payload))  # noqa: S301

    def _save_overload(self, sig: Any, data: Any) -> None:
        if not self._impl.check_cachable(data):
            return
        payload: bytes = dumps(self._impl.reduce(data))  # type: ignore[no-untyped-call]
        path = self._file(sig, data.codegen)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(hashlib.sha256(payload).digest() + payload)
                Path(temporary).replace(path)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
        except OSError as error:
            # A read-only or full disk costs the next run its compilation, not this run its result.
            _LOGGER.warning("kernel %s can't be kept: %s", path, error)


def keep_on_disk(dispatcher: Any) -> None:
    """Let a compiled function find its machine code on disk, and leave it there; nothing without a cache folder."""
    folder = cache_folder()
    if folder is not None:
        dispatcher._cache = KernelCache(dispatcher.py_func, folder / "contraction-kernels")  # as enable_caching does
