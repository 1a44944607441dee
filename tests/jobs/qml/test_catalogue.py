"""The declared jobs are ones that the job itself accepts."""

import pytest

from collect_result.published import PUBLISHED
from hybridjobs.model.catalogue import CatalogueEntry, load_catalogue
from qml_source.data import read_samples, split
from qml_source.hyperparameters import check_workers, parse_hyperparameters
from qml_source.simulators import check_method, parse_device
from tests.jobs.qml.job_run import SONAR, SOURCE

JOBS = {name: entry for name, entry in load_catalogue(SOURCE.parent).items() if entry.source_folder.name == SOURCE.name}


@pytest.mark.parametrize("entry", JOBS.values(), ids=JOBS)
def test_declared_hyperparameters_device_and_data_are_accepted(entry: CatalogueEntry) -> None:
    spec = entry.spec
    settings = parse_hyperparameters(spec.hyperparameters)
    check_method(parse_device(spec.device), settings)
    workers = spec.instance.count * (settings.workers_per_host or max(spec.instance_type.gpus, 1))
    check_workers(settings, workers)
    split(read_samples(SONAR), seed=settings.seed, ndata=settings.ndata, held_out=settings.held_out)
    assert spec.entry_point == f"qml_source.train_{'dp' if spec.distribution == 'data_parallel' else 'single'}"


def test_published_timing_is_repeated_with_the_same_training_everywhere() -> None:
    group = [entry.spec for entry in JOBS.values() if entry.spec.benchmark == "qml-26"]
    assert {spec.name for spec in group} == {"qml-single", "qml-dp", "qml-dp-hosts", "qml-contraction"}
    assert len({tuple(sorted(spec.hyperparameters.items())) for spec in group}) == 1
    assert [spec.name for spec in group if spec.baseline] == ["qml-single"]
    assert [figure["seconds_per_iteration"] for figure in PUBLISHED["qml-26"]] == [2700, 360, 90]


def test_data_parallel_jobs_are_on_one_host_and_on_several() -> None:
    parallel = [entry.spec for entry in JOBS.values() if entry.spec.distribution == "data_parallel"]
    for benchmark in ("qml-26", "qml-sonar"):
        assert {spec.instance.count > 1 for spec in parallel if spec.benchmark == benchmark} == {False, True}
