"""One spelling and one hash for each JSON document, so that equal documents are recognised as equal."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def canonical_json(document: object) -> str:
    """Write `document` as the only JSON text its value has: keys sorted, no spaces, ASCII.

    Raises TypeError for keys that are not strings and for values that JSON does not know, and ValueError for NaN and
    infinities: each of them could come back from a reader as something else.
    """
    _refuse_other_keys(document)
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def spec_hash(document: Mapping[str, Any]) -> str:
    """Identify `document` by the SHA-256 of its canonical JSON, in 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(document).encode("ascii")).hexdigest()


def _refuse_other_keys(value: object) -> None:
    """Stop json.dumps from turning a key like 1 or None into a string that a real string key may equal."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} of a JSON object must be a string, not {type(key).__name__}")
            _refuse_other_keys(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _refuse_other_keys(item)
