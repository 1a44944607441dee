"""The unit that Braket doesn't state, and what follows from it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collect_result.billing import billable_seconds, cost_usd

START = datetime(2026, 11, 30, tzinfo=UTC)


@given(seconds=st.integers(40, 432_000), factor=st.floats(0.5, 2.0))
def test_the_unit_is_found_by_the_length_of_the_run(seconds: int, factor: float) -> None:
    end = START + timedelta(seconds=seconds)
    assert billable_seconds(round(seconds * factor), START, end) == round(seconds * factor)
    assert billable_seconds(round(seconds * factor * 1000), START, end) == pytest.approx(seconds * factor, rel=1e-3)


def test_a_run_that_rounds_to_nothing_may_be_billed_by_a_minimum() -> None:
    assert billable_seconds(0, START, START) == 0
    assert billable_seconds(1, START, START) == 1
    assert billable_seconds(60, START, START) == 60
    assert billable_seconds(1900, START, START + timedelta(seconds=2)) == 1.9


def test_without_times_a_figure_is_in_seconds_and_without_a_figure_there_is_none() -> None:
    assert billable_seconds(1500, None, START) == 1500
    assert billable_seconds(None, START, START) is None


def test_a_cost_needs_a_price_and_a_duration() -> None:
    price = {"usd_per_minute": 0.5}
    assert cost_usd(120, price, 4) == pytest.approx(4.0)
    assert cost_usd(120, None, 4) is None
    assert cost_usd(None, price, 4) is None
