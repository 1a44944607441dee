import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hybridjobs.model.canonical import canonical_json, spec_hash
from hybridjobs.model.errors import SpecError
from hybridjobs.model.inputs import InputFile
from hybridjobs.model.job_spec import JobSpec, launch_document

MakeSpec = Callable[..., JobSpec]

SOURCE = "a" * 64
GPU = {"type": "ml.g6.xlarge"}
PARALLEL = {
    "distribution": "data_parallel",
    "instance": {"type": "ml.g6.12xlarge", "count": 4},
    "device": "local:pennylane/lightning.gpu",
}


def test_defaults(make_spec: MakeSpec) -> None:
    spec = make_spec()

    assert (spec.image, spec.distribution, spec.checkpoints, spec.benchmark, spec.baseline) == (
        "base",
        "none",
        True,
        None,
        False,
    )
    assert (spec.instance.count, spec.instance.volume_gb) == (1, 30)


def test_hyperparameters_become_the_strings_that_a_job_receives(make_spec: MakeSpec) -> None:
    spec = make_spec(hyperparameters={"p": 2, "stepsize": 0.1, "exact": True, "restart": False, "method": "adjoint"})

    assert spec.hyperparameters == {
        "p": "2",
        "stepsize": "0.1",
        "exact": "true",
        "restart": "false",
        "method": "adjoint",
    }


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([1, 2], "a list can be a string"),
        (float("nan"), "not finite"),
        ("two\nlines", "one line of text"),
        ("AKIAIOSFODNN7EXAMPLE", "looks like a credential"),
        ("-----BEGIN PRIVATE KEY-----", "looks like a credential"),
    ],
)
def test_hyperparameters_that_a_job_cannot_receive_are_refused(make_spec: MakeSpec, value: object, said: str) -> None:
    with pytest.raises(SpecError, match=said) as caught:
        make_spec(hyperparameters={"x": value})

    assert caught.value.key == "jobs.cut-18.hyperparameters.x"


@pytest.mark.parametrize("name", ["password", "db_password", "apiToken", "API_KEY", "aws-secret-access-key"])
def test_hyperparameters_named_like_secrets_are_refused_without_repeating_them(make_spec: MakeSpec, name: str) -> None:
    with pytest.raises(SpecError, match="named like a secret") as caught:
        make_spec(hyperparameters={name: "hunter2"})

    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(("name", "value"), [("max_tokens", "many"), ("token", 5), ("secret", False), ("key", "x")])
def test_hyperparameters_that_only_sound_like_secrets_are_accepted(
    make_spec: MakeSpec, name: str, value: object
) -> None:
    make_spec(hyperparameters={name: value})


@pytest.mark.parametrize(
    ("entry_point", "said"),
    [
        ("cut.py", 'Write "<source folder>.cut"'),
        ("cut_source/cut.py", 'Write "cut_source.cut"'),
        ("./cut_source/cut.py:main", 'Write "cut_source.cut:main"'),
        ("cut_source/cut", 'Write "cut_source.cut", or use an image of your own'),
        ("cut_source/cut.jl", "Use an image of your own that holds container_assets/entrypoint"),
        ("cut_source/../cut.jl", "not the path of a file in the source archive"),
        ("/cut_source/cut.jl", "not the path of a file in the source archive"),
        ("cut_source/", "this is a folder"),
        ("s3://bucket/scripts/", "this is a folder or an address"),
        ("cut-source.cut", "not the dotted name"),
        ("", "not the dotted name"),
        ("cut_source.cut:", "not the dotted name"),
        ("cut_source.cut:main()", "not the dotted name"),
    ],
)
def test_an_entry_point_is_a_module_and_the_error_says_how_to_write_it(
    make_spec: MakeSpec, entry_point: str, said: str
) -> None:
    with pytest.raises(SpecError, match=re.escape(said)) as caught:
        make_spec(entry_point=entry_point)

    assert caught.value.key == "jobs.cut-18.entry_point"


@pytest.mark.parametrize("entry_point", ["cut_source/cut.jl", "cut_source/run.sh", "cut_source/bin/cut-1.2"])
@pytest.mark.parametrize(
    ("image", "starts_programs"),
    [
        ("asset:julia", True),
        ("000000000000.dkr.ecr.us-east-1.amazonaws.com/amazon-braket-own:1", True),
        ("292282985366.dkr.ecr.us-east-1.amazonaws.com/amazon-braket-base-jobs:1.0-cpu-py312-ubuntu24.04", False),
    ],
)
def test_programs_in_other_languages_are_started_by_images_of_ones_own_only(
    make_spec: MakeSpec, image: str, starts_programs: bool, entry_point: str
) -> None:
    if starts_programs:
        assert make_spec(image=image, entry_point=entry_point).entry_point == entry_point
    else:
        with pytest.raises(SpecError, match="imports the entry point by its module name"):
            make_spec(image=image, entry_point=entry_point)


def test_the_payload_of_a_lambda_that_calls_create_job_itself_is_answered_key_by_key(make_spec: MakeSpec) -> None:
    with pytest.raises(SpecError) as caught:
        make_spec(entry_point="x.py", s3Uri="s3://bucket/scripts/", clientToken="token", compressionType="NONE")

    remedies = {problem.key: problem.remedy for problem in caught.value.problems}
    assert remedies["jobs.cut-18.entry_point"] == 'Write "<source folder>.x"'
    assert "the folder that holds jobs.toml" in remedies["jobs.cut-18.s3Uri"]
    assert "one launch starts one job" in remedies["jobs.cut-18.clientToken"]
    assert "gzip archive" in remedies["jobs.cut-18.compressionType"]


def test_every_problem_of_a_job_is_reported_at_once(make_spec: MakeSpec) -> None:
    with pytest.raises(SpecError) as caught:
        make_spec(
            imge="base",
            device="lightning.qubit",
            instance={"type": "ml.p3.2xlarge", "count": "2"},
            limits={},
            distribution="data-parallel",
        )

    found = {str(problem.key).removeprefix("jobs.cut-18."): str(problem) for problem in caught.value.problems}
    assert found.keys() == {
        "imge",
        "device",
        "instance.type",
        "instance.count",
        "limits.max_runtime_seconds",
        "distribution",
    }
    assert 'Did you mean "image"?' in found["imge"]
    assert '"ml.g6.xlarge"' in found["instance.type"]
    assert "a whole number" in found["instance.count"]
    assert "five days" in found["limits.max_runtime_seconds"]
    assert '"none" or "data_parallel"' in found["distribution"]
    assert all(text.startswith("jobs.toml: jobs.cut-18.") for text in found.values())


def test_a_job_without_a_limit_on_its_run_time_is_refused(make_spec: MakeSpec, job_table: dict[str, Any]) -> None:
    del job_table["limits"]

    with pytest.raises(SpecError, match="Braket's own default is five days"):
        make_spec()


@pytest.mark.parametrize(
    ("changes", "key", "said"),
    [
        ({"device": "local:pennylane/lightning.gpu"}, "device", "needs a GPU"),
        ({"device": "local:hybridjobs/maxcut-julia-cuda"}, "device", 'or the device "local:hybridjobs/maxcut-julia"'),
        ({"instance": GPU}, "device", "would idle and be billed"),
        (
            {"instance": GPU, "device": "local:hybridjobs/maxcut-cpp"},
            "device",
            "would idle and be billed. Use an instance without GPUs",
        ),
        (
            {"distribution": "data_parallel", "instance": GPU, "device": "local:pennylane/lightning.gpu"},
            "distribution",
            "one GPU, and nothing to spread the data over",
        ),
        (
            {**PARALLEL, "hyperparameters": {"batch_size": 15}},
            "hyperparameters.batch_size",
            "of 16 GPUs (4 x 4) 1 would idle and be billed. Give at least 16",
        ),
        (
            {
                "distribution": "data_parallel",
                "instance": {"type": "ml.m5.2xlarge", "count": 3},
                "hyperparameters": {"batch_size": "2"},
            },
            "hyperparameters.batch_size",
            "of 3 hosts 1 would idle",
        ),
        ({"baseline": True}, "baseline", "baseline of no benchmark"),
        ({"benchmark": "a/b"}, "benchmark", "benchmark's name"),
        ({"device": "local:pennylane/lightning.qbit"}, "device", 'Did you mean "local:pennylane/lightning.qubit"?'),
        ({"device": "local:pennylane/Default.Qubit"}, "device", 'Did you mean "local:pennylane/default.qubit"?'),
        ({"device": "local:hybridjobs/contractoin"}, "device", 'Did you mean "local:hybridjobs/contraction"?'),
        ({"hyperparameters": {"p\nq": 2}}, 'hyperparameters."p\\nq"', "one line of text without control characters"),
        (
            {"hyperparameters": {"sagemaker_instance_type": "ml.m5.large"}},
            "hyperparameters.sagemaker_instance_type",
            "sent by the project itself",
        ),
    ],
)
def test_combinations_that_would_be_paid_for_in_vain_are_refused(
    make_spec: MakeSpec, changes: dict[str, Any], key: str, said: str
) -> None:
    with pytest.raises(SpecError, match=re.escape(said)) as caught:
        make_spec(**changes)

    assert caught.value.key == f"jobs.cut-18.{key}"


@pytest.mark.parametrize(
    "changes",
    [
        {"device": "local:pennylane/lightning.gpu", "instance": GPU, "image": "pytorch"},
        {"distribution": "data_parallel", "instance": {"type": "ml.m5.2xlarge", "count": 2}},
        {"distribution": "data_parallel"},
        {**PARALLEL, "hyperparameters": {"batch_size": 16}},
        {**PARALLEL, "hyperparameters": {"batch_size": "all"}},
        {"baseline": True, "benchmark": "cut-18"},
        {"device": "local:pennylane/default.qubit", "instance": GPU},
        {"device": "local:pennylane/qulacs.simulator"},
        {"device": "local:hybridjobs/ours"},
    ],
)
def test_their_sensible_neighbours_are_accepted(make_spec: MakeSpec, changes: dict[str, Any]) -> None:
    make_spec(**changes)


@pytest.mark.parametrize("path", ["/etc/passwd", "../other/x", "a/../../x", "", "a\\b", "C:/x", "s3://bucket/x"])
def test_inputs_lie_below_the_source_folder(make_spec: MakeSpec, path: str) -> None:
    with pytest.raises(SpecError) as caught:
        make_spec(inputs={"graph": path})

    assert caught.value.key == "jobs.cut-18.inputs.graph"


def test_a_spec_cannot_be_changed(make_spec: MakeSpec) -> None:
    with pytest.raises(ValueError, match="frozen"):
        make_spec().image = "pytorch"


def test_the_launch_document_holds_everything_that_a_launch_consists_of(make_spec: MakeSpec) -> None:
    spec = make_spec(
        inputs={"input-graph": "inputs/graph"},
        hyperparameters={"p": 2},
        benchmark="cut-18",
        baseline=True,
        description="a remark",
    )
    files = {"input-graph": [InputFile("b", "2" * 64, Path("b")), InputFile("a", "1" * 64, Path("a"))]}

    assert launch_document(spec, SOURCE, files) == {
        "name": "cut-18",
        "device": "local:pennylane/lightning.qubit",
        "entry_point": "cut_source.cut",
        "image": "base",
        "distribution": "none",
        "instance": {"type": "ml.m5.2xlarge", "count": 1, "volume_gb": 30},
        "max_runtime_seconds": 600,
        "hyperparameters": {"p": "2"},
        "source": {"sha256": SOURCE},
        "inputs": {"input-graph": [{"path": "a", "sha256": "1" * 64}, {"path": "b", "sha256": "2" * 64}]},
        "checkpoints": True,
        "benchmark": {"name": "cut-18", "baseline": True},
    }


def test_data_parallelism_sends_the_documented_hyperparameters(make_spec: MakeSpec) -> None:
    spec = make_spec(distribution="data_parallel", instance={"type": "ml.m5.2xlarge", "count": 2})

    assert launch_document(spec, SOURCE, {})["hyperparameters"] == {
        "sagemaker_distributed_dataparallel_enabled": "true",
        "sagemaker_instance_type": "ml.m5.2xlarge",
    }


def test_files_are_given_for_exactly_the_channels_of_the_job(make_spec: MakeSpec) -> None:
    with pytest.raises(ValueError, match="channels"):
        launch_document(make_spec(inputs={"graph": "inputs/graph"}), SOURCE, {})


def test_a_changed_remark_launches_nothing(make_spec: MakeSpec) -> None:
    one, other = (launch_document(make_spec(description=text), SOURCE, {}) for text in ("before", "after"))

    assert spec_hash(one) == spec_hash(other)


CHANGES: dict[str, st.SearchStrategy[Any]] = {
    "device": st.sampled_from(["local:pennylane/lightning.qubit", "local:hybridjobs/contraction"]),
    "image": st.sampled_from(["base", "pytorch", "asset:julia"]),
    "instance": st.fixed_dictionaries({"type": st.sampled_from(["ml.m5.large", "ml.m5.xlarge"]), "count": st.just(1)}),
    "limits": st.fixed_dictionaries({"max_runtime_seconds": st.integers(1, 3)}),
    "hyperparameters": st.dictionaries(st.sampled_from("pqr"), st.integers(0, 2) | st.booleans()),
    "checkpoints": st.booleans(),
    "benchmark": st.sampled_from(["b1", "b2"]),
    "entry_point": st.sampled_from(["cut_source.cut", "cut_source.cut:main"]),
}


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    changes=st.fixed_dictionaries({}, optional=CHANGES),
    others=st.fixed_dictionaries({}, optional=CHANGES),
    sources=st.tuples(st.sampled_from("ab"), st.sampled_from("ab")),
    remark=st.text(),
)
def test_the_hash_changes_exactly_when_the_launch_does(
    make_spec: MakeSpec, changes: dict[str, Any], others: dict[str, Any], sources: tuple[str, str], remark: str
) -> None:
    one, other = make_spec(**changes), make_spec(**others, description=remark)
    documents = [launch_document(spec, source * 64, {}) for spec, source in zip((one, other), sources, strict=True)]

    same = (one.model_dump(exclude={"description"}), sources[0]) == (
        other.model_dump(exclude={"description"}),
        sources[1],
    )
    assert (spec_hash(documents[0]) == spec_hash(documents[1])) == same
    assert (canonical_json(documents[0]) == canonical_json(documents[1])) == same
