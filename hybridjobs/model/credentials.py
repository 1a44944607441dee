"""Recognises what looks like a credential, so that it is neither sent to a job, whose log repeats it, nor printed."""

import re
from itertools import pairwise
from typing import Final

_WORDS: Final = frozenset({"password", "passwd", "passphrase", "secret", "token", "credential", "credentials"})
_PAIRS: Final = frozenset({("api", "key"), ("access", "key"), ("private", "key")})
_VALUE: Final = re.compile(r"\b(AKIA|ASIA)[A-Z0-9]{16}\b|-----BEGIN [A-Z ]*-----")


def names_a_secret(name: str) -> bool:
    """Tell whether the name of a setting says that its value is a secret; `max_tokens` does not, `apiToken` does."""
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]
    return not _WORDS.isdisjoint(words) or not _PAIRS.isdisjoint(pairwise(words))


def holds_a_credential(text: str) -> bool:
    """Tell whether `text` contains an AWS access key id or the header of a PEM file."""
    return _VALUE.search(text) is not None
