"""S3 locations as the service accepts them."""

import re
from dataclasses import dataclass

_S3 = re.compile(r"s3://(?P<bucket>[^/]+)/?(?P<key>.*)")
_VIRTUAL_HOST = re.compile(r"https://(?P<bucket>[^/]+?)\.s3[.-][a-z0-9.-]*amazonaws\.com/?(?P<key>.*)")
_PATH_STYLE = re.compile(r"https://s3[a-z0-9.-]*\.amazonaws\.com/(?P<bucket>[^/]+)/?(?P<key>.*)")


@dataclass(frozen=True)
class Location:
    """A bucket and a key or key prefix."""

    bucket: str
    key: str


def location_of(uri: str) -> Location | None:
    """Return what an `s3://` or `https://` URI points to; None for an https address outside S3."""
    for pattern in (_S3, _PATH_STYLE, _VIRTUAL_HOST):
        found = pattern.fullmatch(uri)
        if found:
            return Location(found["bucket"], found["key"])
    return None
