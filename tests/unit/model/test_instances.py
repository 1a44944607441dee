import re

import pytest

from hybridjobs.model.errors import SpecError
from hybridjobs.model.instances import INSTANCE_TYPES, REGIONS, RETIRED, instance_type
from hybridjobs.model.prices import PRICES, PUBLISHED, price_of


@pytest.mark.parametrize(
    ("retired", "replacement"),
    [
        ("ml.p3.2xlarge", "ml.g6.xlarge"),
        ("ml.p3.8xlarge", "ml.g6.12xlarge"),
        ("ml.p3.16xlarge", "ml.g6.48xlarge"),
        ("ml.p3dn.24xlarge", "ml.p4d.24xlarge"),
        ("ml.p2.xlarge", "ml.g6.xlarge"),
        ("p3.2xlarge", "ml.g6.xlarge"),
    ],
)
def test_a_retired_type_is_refused_by_name_of_its_replacement(retired: str, replacement: str) -> None:
    with pytest.raises(SpecError, match="no longer offers") as caught:
        instance_type(retired)

    assert f'"{replacement}"' in caught.value.remedy


def test_every_replacement_exists_and_has_gpus() -> None:
    assert all(INSTANCE_TYPES[replacement].gpus for replacement in RETIRED.values())
    assert not set(RETIRED) & set(INSTANCE_TYPES)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("m5.2xlarge", "ml.m5.2xlarge"), ("ml.m5.2xlrge", "ml.m5.2xlarge"), ("ml.g6.x", "ml.g6.xlarge")],
)
def test_a_misspelt_type_is_answered_with_the_closest_one(typed: str, meant: str) -> None:
    with pytest.raises(SpecError, match=re.escape(f'Did you mean "{meant}"?')):
        instance_type(typed)


def test_gpu_types_know_their_gpus() -> None:
    gpus = {name: (kind.gpus, kind.gpu_model) for name, kind in INSTANCE_TYPES.items() if kind.gpus}

    assert gpus["ml.g6.12xlarge"] == (4, "NVIDIA L4")
    assert gpus["ml.g6.48xlarge"] == (8, "NVIDIA L4")
    assert gpus["ml.p4d.24xlarge"] == (8, "NVIDIA A100")
    assert {name.split(".")[1] for name in gpus} == {"g4dn", "g6", "g6e", "p4d"}


def test_gpu_types_are_offered_where_the_quota_page_says() -> None:
    assert "us-west-1" not in INSTANCE_TYPES["ml.g6.xlarge"].regions
    assert INSTANCE_TYPES["ml.g6e.xlarge"].regions == ("us-east-1", "us-west-2")
    assert INSTANCE_TYPES["ml.p4d.24xlarge"].regions == ("us-east-1", "us-west-2")
    assert INSTANCE_TYPES["ml.g4dn.xlarge"].regions == REGIONS


def test_types_that_a_new_account_cannot_start_have_a_quota_of_zero() -> None:
    none = {name for name, kind in INSTANCE_TYPES.items() if kind.default_quota == 0}

    assert {name.split(".")[1] for name in none} == {"g4dn", "p4d", "m5"}
    assert {name for name in none if ".m5." in name} == {"ml.m5.12xlarge", "ml.m5.24xlarge"}


def test_only_documented_prices_are_known() -> None:
    price = price_of("ml.m5.2xlarge")

    assert price is not None
    assert price.usd_per_minute == 0.00768
    assert price.source.startswith("https://docs.aws.amazon.com/")
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", price.as_of)
    assert price_of("ml.g6.xlarge") is None
    assert set(PRICES) <= set(INSTANCE_TYPES)


def test_prices_of_retired_types_are_published_history_only() -> None:
    assert PUBLISHED["ml.p3.2xlarge"].usd_per_minute == 0.06375
    assert price_of("ml.p3.2xlarge") is None
