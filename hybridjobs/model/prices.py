"""What an instance of a hybrid job costs, only where AWS documents the figure."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

_DEVELOPER_GUIDE: Final = "https://docs.aws.amazon.com/braket/latest/developerguide/pennylane-embedded-simulators.html"
_AS_OF: Final = "2026-11-30"


@dataclass(frozen=True)
class Price:
    """The price of one instance in US dollars a minute, where it was read, and when (YYYY-MM-DD)."""

    usd_per_minute: float
    source: str
    as_of: str


# No other price is documented where it can be read without an account, and a guess must not pass for a limit on
# spending: an instance that is missing here has an unknown price.
PRICES: Final[Mapping[str, Price]] = MappingProxyType(
    {"ml.m5.2xlarge": Price(usd_per_minute=0.00768, source=_DEVELOPER_GUIDE, as_of=_AS_OF)}
)

# Instances that no longer exist, kept to show the published benchmarks beside ours.
PUBLISHED: Final[Mapping[str, Price]] = MappingProxyType(
    {
        "ml.p3.2xlarge": Price(usd_per_minute=0.06375, source=_DEVELOPER_GUIDE, as_of=_AS_OF),
        "ml.p3.16xlarge": Price(usd_per_minute=0.4692, source=_DEVELOPER_GUIDE, as_of=_AS_OF),
    }
)


def price_of(instance_type: str) -> Price | None:
    """Look up the current price of an instance type; None means that it is unknown, not that it is free."""
    return PRICES.get(instance_type)
