"""Workarounds for what the emulator does differently from AWS: one module each, applied once, before it serves.

tests/local/test_gaps.py asks the bare emulator for each of them, and fails when the gap has closed: delete the module
then.
"""

from collections.abc import Callable

from hybridjobs.local.gaps import (
    auto_delete_objects,
    dead_letters,
    event_order,
    layer_downloads,
    missing_image,
    stock_images,
)

WORKAROUNDS: tuple[Callable[[], None], ...] = (
    auto_delete_objects.apply,
    dead_letters.apply,
    event_order.apply,
    layer_downloads.apply,
    missing_image.apply,
    stock_images.apply,
)
