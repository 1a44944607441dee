"""Writes tar and gzip files whose bytes follow from their contents alone.

The standard library's writers are not used: fields that a reader ignores have changed between versions of tarfile, and
zlib and its replacements compress the same data to different bytes. A changed byte would launch every job again.
"""

import struct
import zlib
from collections.abc import Iterable
from typing import Final

_BLOCK: Final = 512
_RECORD: Final = 20 * _BLOCK
_LONGEST_NAME: Final = 100
_LONGEST_PREFIX: Final = 155

# Magic, deflate, no flags, no time, no hint of the compression, unknown operating system (RFC 1952).
_GZIP_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_LARGEST_STORED_BLOCK: Final = 65_535


def tar_file(members: Iterable[tuple[str, bytes]]) -> bytes:
    """Write regular files, given by path and content in their order, as a POSIX ustar file.

    Every file has mode 0644, owner and group 0 and the time 0. Raises ValueError for a path that is not UTF-8 or too
    long for the format (100 bytes for the name, 155 for the folders before it).
    """
    parts: list[bytes] = []
    for path, content in members:
        parts += [_tar_header(path, len(content)), content, bytes(-len(content) % _BLOCK)]
    parts.append(bytes(2 * _BLOCK))
    parts.append(bytes(-sum(map(len, parts)) % _RECORD))
    return b"".join(parts)


def stored_gzip_file(data: bytes) -> bytes:
    """Write `data` as a gzip file of stored, that is uncompressed, deflate blocks (RFC 1951, section 3.2.4)."""
    blocks: list[bytes] = []
    starts = range(0, max(len(data), 1), _LARGEST_STORED_BLOCK)
    for start in starts:
        block = data[start : start + _LARGEST_STORED_BLOCK]
        is_last = start == starts[-1]
        blocks += [struct.pack("<BHH", is_last, len(block), len(block) ^ 0xFFFF), block]
    trailer = struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFFFFFF)
    return b"".join([_GZIP_HEADER, *blocks, trailer])


def _tar_header(path: str, size: int) -> bytes:
    prefix, name = _split(path.encode("utf-8"))
    fields = struct.pack(
        "100s8s8s8s12s12s8s1s100s6s2s32s32s8s8s155s12x",
        name,
        b"0000644\0",
        b"0000000\0",
        b"0000000\0",
        b"%011o\0" % size,
        b"%011o\0" % 0,
        b" " * 8,  # the checksum counts its own field as spaces
        b"0",
        b"",
        b"ustar\0",
        b"00",
        b"",
        b"",
        b"0000000\0",
        b"0000000\0",
        prefix,
    )
    checksum = b"%06o\0 " % sum(fields)
    return fields[:148] + checksum + fields[156:]


def _split(path: bytes) -> tuple[bytes, bytes]:
    """Split a path that is longer than a name may be at a slash into prefix and name."""
    if len(path) <= _LONGEST_NAME:
        return b"", path
    for position in range(len(path) - _LONGEST_NAME - 1, min(_LONGEST_PREFIX, len(path) - 2) + 1):
        if path[position : position + 1] == b"/":
            return path[:position], path[position + 1 :]
    raise ValueError(f"{path.decode()} has {len(path)} bytes and no slash where a tar header could split it")
