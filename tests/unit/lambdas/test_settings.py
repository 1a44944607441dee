"""What a function is told, and what it says when it isn't."""

from __future__ import annotations

import pytest

from settings import Settings, SettingsError

ENVIRONMENT = {
    "STAGE": "dev",
    "JOB_BUCKET": "amazon-braket-hybrid-jobs-dev-111122223333-us-east-1",
    "JOB_ROLE_ARN": "arn:aws:iam::111122223333:role/service-role/AmazonBraketJobsExecutionRole-HybridJobs-dev",
    "LEDGER_TABLE": "ledger",
    "MAX_CONCURRENT_JOBS": "3",
    "REPOSITORY_NAME": "amazon-braket-hybrid-jobs-dev",
    "AWS_REGION": "us-east-1",
}


def test_the_environment_is_read() -> None:
    settings = Settings.from_environment(ENVIRONMENT)
    assert (settings.stage, settings.max_concurrent_jobs, settings.region) == ("dev", 3, "us-east-1")
    assert settings.account == "111122223333"
    assert settings.cancel_orphans is False
    assert settings.max_spend_usd is None


def test_options_are_read() -> None:
    options = {"CANCEL_ORPHANS": "true", "MAX_SPEND_USD": "1.5", "ALLOW_UNKNOWN_PRICE": "true"}
    settings = Settings.from_environment({**ENVIRONMENT, **options})
    assert settings.cancel_orphans is True
    assert settings.allow_unknown_price is True
    assert settings.max_spend_usd == 1.5


@pytest.mark.parametrize("name", sorted(set(ENVIRONMENT) - {"AWS_REGION"}))
def test_a_missing_variable_is_named(name: str) -> None:
    with pytest.raises(SettingsError, match=f"environment variable {name} is not set"):
        Settings.from_environment({key: value for key, value in ENVIRONMENT.items() if key != name})


def test_a_number_that_is_none_is_shown() -> None:
    with pytest.raises(SettingsError, match="MAX_CONCURRENT_JOBS = 'many'"):
        Settings.from_environment({**ENVIRONMENT, "MAX_CONCURRENT_JOBS": "many"})
