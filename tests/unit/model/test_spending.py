from collections.abc import Callable
from typing import Any

import pytest

from hybridjobs.model.errors import SpecError
from hybridjobs.model.job_spec import JobSpec
from hybridjobs.model.spending import check_spending, spending_table, worst_case_usd
from hybridjobs.model.stage import StageSettings
from hybridjobs.model.validation import validated

MakeSpec = Callable[..., JobSpec]

GPU_JOB = {
    "name": "cut-gpu",
    "device": "local:pennylane/lightning.gpu",
    "image": "pytorch",
    "instance": {"type": "ml.g6.xlarge"},
}


def stage(max_spend_usd: float, **more: Any) -> StageSettings:
    table = {"name": "dev", "launch": [], "removal": "destroy", "max_spend_usd": max_spend_usd, **more}
    return validated(StageSettings, table, file="stages/dev.toml")


def test_worst_case_is_price_times_limit_times_instances(make_spec: MakeSpec) -> None:
    spec = make_spec(instance={"type": "ml.m5.2xlarge", "count": 2}, limits={"max_runtime_seconds": 1800})

    assert worst_case_usd(spec) == pytest.approx(0.00768 * 30 * 2)


def test_worst_case_is_unknown_without_a_documented_price(make_spec: MakeSpec) -> None:
    assert worst_case_usd(make_spec(**GPU_JOB)) is None


def test_worst_case_is_unknown_where_quantum_tasks_are_billed_too(make_spec: MakeSpec) -> None:
    assert worst_case_usd(make_spec(device="arn:aws:braket:::device/quantum-simulator/amazon/sv1")) is None


def test_jobs_within_the_limit_pass(make_spec: MakeSpec) -> None:
    specs = [make_spec(limits={"max_runtime_seconds": 3600})]

    check_spending(stage(0.4609), specs)
    check_spending(stage(0.0), [])


def test_jobs_above_the_limit_together_are_refused_with_a_table(make_spec: MakeSpec) -> None:
    specs = [make_spec(name, limits={"max_runtime_seconds": 3600}) for name in ("cut-18", "cut-24")]

    with pytest.raises(SpecError) as caught:
        check_spending(stage(0.9), specs)

    message = str(caught.value)
    assert message.startswith("stages/dev.toml: max_spend_usd = 0.9: the jobs may cost 0.9216 USD")
    assert message.endswith(spending_table(specs))


def test_a_job_of_unknown_cost_is_refused_unless_the_stage_allows_it(make_spec: MakeSpec) -> None:
    specs = [make_spec(), make_spec(**GPU_JOB)]

    with pytest.raises(SpecError, match="nobody knows what cut-gpu may cost") as caught:
        check_spending(stage(5.0), specs)
    assert caught.value.key == "allow_unknown_price"

    check_spending(stage(5.0, allow_unknown_price=True), specs)


def test_known_costs_are_held_to_the_limit_beside_unknown_ones(make_spec: MakeSpec) -> None:
    specs = [make_spec(limits={"max_runtime_seconds": 432_000}), make_spec(**GPU_JOB)]

    with pytest.raises(SpecError, match="max_spend_usd"):
        check_spending(stage(5.0, allow_unknown_price=True), specs)


def test_the_table_shows_every_job_and_the_sum(make_spec: MakeSpec) -> None:
    specs = [make_spec(instance={"type": "ml.m5.2xlarge", "count": 2}), make_spec(**GPU_JOB)]

    assert spending_table(specs).splitlines() == [
        "job      instances          at most  USD/min  worst case",
        "cut-18   2 x ml.m5.2xlarge  10 min   0.00768  0.1536 USD",
        "cut-gpu  1 x ml.g6.xlarge   10 min   unknown  unknown",
        "total                                         0.1536 USD and more",
    ]
