"""What a job finds on its host and what it leaves, as a quantum developer sees it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hybridjobs.local.runners.storage import write_archive

from .conftest import BUCKET, Workbench

MODULE = """
from braket.jobs import get_hyperparameters, get_job_device_arn, save_job_result
print("hello from the job")
save_job_result({"hyperparameters": get_hyperparameters(), "device": get_job_device_arn(), "name": __name__})
"""
FUNCTION = """
import json, os
def main(steps: int, rate: float, verbose: bool, label, limit: "int | None" = 3):
    values = {"steps": steps, "rate": rate, "verbose": verbose, "label": label, "limit": limit}
    with open(os.environ["AMZN_BRAKET_JOB_RESULTS_DIR"] + "/values.json", "w") as file:
        json.dump(values, file)
"""
SHOW_ENVIRONMENT = """
import json, os, sys
json.dump({"environment": dict(os.environ), "arguments": sys.argv[1:], "folder": os.getcwd(), "path": sys.path},
          open(os.environ["AMZN_BRAKET_JOB_RESULTS_DIR"] + "/seen.json", "w"))
"""


def succeeded(workbench: Workbench, *arguments: Any, **more: Any) -> dict[str, bytes]:
    ended = workbench.complete(*arguments, **more)
    assert ended.outcome.failure_reason is None, ended.log
    return workbench.results(ended)


def test_module_runs_as_main_and_its_results_are_where_the_sdk_looks(workbench: Workbench) -> None:
    files = {"job/__init__.py": "", "job/main.py": MODULE}
    results = succeeded(workbench, files, hyperParameters={"p": "2"})
    assert json.loads(results["results.json"])["dataDictionary"] == {
        "hyperparameters": {"p": "2"},
        "device": "local:pennylane/lightning.qubit",
        "name": "__main__",
    }
    assert workbench.phases == ["DOWNLOADING_DATA", "RUNNING", "UPLOADING_RESULTS"]


def test_function_gets_hyperparameters_by_annotation(workbench: Workbench) -> None:
    given = {"steps": "3", "rate": "0.1", "verbose": "false", "label": "7"}
    results = succeeded(workbench, {"job/main.py": FUNCTION}, "job.main:main", hyperParameters=given)
    expected = {"steps": 3, "rate": 0.1, "verbose": False, "label": "7", "limit": 3}
    assert json.loads(results["values.json"]) == expected


def test_hyperparameters_that_do_not_fit_the_function_fail_the_job_by_name(workbench: Workbench) -> None:
    given = {"steps": "3", "rate": "fast", "verbose": "false", "label": "7"}
    ended = workbench.complete({"job/main.py": FUNCTION}, "job.main:main", hyperParameters=given)
    assert "hyperparameter rate='fast' is not of type float" in ended.reason
    ended = workbench.complete({"job/main.py": FUNCTION}, "job.main:main", hyperParameters={"step": "3"})
    assert "['step'] don't fit main(" in ended.reason


def test_every_documented_variable_is_there_and_nothing_of_the_host(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOST_SECRET", "1")
    monkeypatch.setenv("AWS_PROFILE", "somebody")
    workbench.s3.put_object(Bucket=BUCKET, Key="graphs/a.adjlist", Body=b"1 2")
    channel = {"channelName": "input-graph", "dataSource": {"s3DataSource": {"s3Uri": f"s3://{BUCKET}/graphs/"}}}
    given = {"p": "2", "rate": "0.10", "sagemaker_mpi_enabled": "true"}
    run = workbench.run(
        {"job/main.py": SHOW_ENVIRONMENT},
        hyperParameters=given,
        inputDataConfig=[channel],
        checkpointConfig={"s3Uri": f"s3://{BUCKET}/kept", "localPath": "/opt/jobs/checkpoints"},
    )
    ended = workbench.finish(run, workbench.start(run))
    seen = json.loads(workbench.results(ended)["seen.json"])
    environment, ml = seen["environment"], f"{run.folder}/algo-1/opt/ml"
    script = run.request["algorithmSpecification"]["scriptModeConfig"]
    expected = {
        "AMZN_BRAKET_DEVICE_ARN": "local:pennylane/lightning.qubit",
        "AMZN_BRAKET_HP_FILE": f"{ml}/input/config/hyperparameters.json",
        "AMZN_BRAKET_INPUT_DIR": f"{ml}/input/data",
        "AMZN_BRAKET_JOB_RESULTS_DIR": f"{ml}/model",
        "AMZN_BRAKET_CHECKPOINT_DIR": f"{run.folder}/algo-1/opt/jobs/checkpoints",
        "AMZN_BRAKET_JOB_NAME": run.job_name,
        "AMZN_BRAKET_OUT_S3_BUCKET": BUCKET,
        "AMZN_BRAKET_JOB_RESULTS_S3_PATH": f"{run.job_name}/data/output",
        "AMZN_BRAKET_TASK_RESULTS_S3_URI": f"s3://{BUCKET}/jobs/{run.job_name}/tasks",
        "AMZN_BRAKET_JOB_TOKEN": run.job_arn,
        "AMZN_BRAKET_SCRIPT_S3_URI": script["s3Uri"],
        "AMZN_BRAKET_SCRIPT_ENTRY_POINT": "job.main",
        "AMZN_BRAKET_SCRIPT_COMPRESSION_TYPE": "GZIP",
        "SM_CHANNELS": '["input-graph"]',
        "SM_CHANNEL_INPUT-GRAPH": f"{ml}/input/data/input-graph",
        "SM_CURRENT_HOST": "algo-1",
        "SM_CURRENT_INSTANCE_TYPE": "ml.m5.large",
        "SM_HOSTS": '["algo-1"]',
        "SM_HPS": '{"p":2,"rate":0.1}',
        "SM_HP_P": "2",
        "SM_FRAMEWORK_PARAMS": '{"sagemaker_mpi_enabled":true}',
        "SM_INPUT_CONFIG_DIR": f"{ml}/input/config",
        "SM_INPUT_DIR": f"{ml}/input",
        "SM_MODEL_DIR": f"{ml}/model",
        "SM_OUTPUT_DIR": f"{ml}/output",
        "SM_OUTPUT_DATA_DIR": f"{ml}/output/data",
        "SM_NUM_GPUS": environment["SM_NUM_GPUS"],
        "SM_USER_ARGS": '["-p","2","--rate","0.1"]',
        "AWS_DEFAULT_REGION": "us-east-1",
        "HOME": f"{run.folder}/algo-1/home",
        "SAGEMAKER_PROGRAM": "braket_entrypoint.py",
    }
    assert {name: environment.get(name) for name in expected} == expected
    assert {"SM_NUM_CPUS", "SM_NETWORK_INTERFACE_NAME", "SM_RESOURCE_CONFIG", "SM_TRAINING_ENV"} <= environment.keys()
    assert not {"HOST_SECRET", "AWS_PROFILE"} & environment.keys()
    assert Path(environment["TMPDIR"]).parent.exists() is False, "only a link to the job's own folder, removed"
    assert seen["arguments"] == ["-p", "2", "--rate", "0.1"]
    assert seen["folder"] == seen["path"][0] == f"{ml}/code/customer_code/extracted"
    configuration = ended.host() / "opt" / "ml" / "input" / "config"
    assert json.loads((configuration / "hyperparameters.json").read_text()) == given
    assert json.loads((configuration / "resourceconfig.json").read_text())["hosts"] == ["algo-1"]
    assert (
        json.loads((configuration / "inputdataconfig.json").read_text())["input-graph"]["TrainingInputMode"] == "File"
    )
    assert (ended.host() / "opt" / "braket").resolve() == (ended.host() / "opt" / "ml").resolve()


def test_job_without_hyperparameters_and_inputs_lacks_their_variables(workbench: Workbench) -> None:
    seen = json.loads(succeeded(workbench, {"job/main.py": SHOW_ENVIRONMENT})["seen.json"])
    assert not {"AMZN_BRAKET_HP_FILE", "AMZN_BRAKET_INPUT_DIR"} & seen["environment"].keys()


def test_own_module_wins_over_an_installed_one_of_its_name(workbench: Workbench) -> None:
    files = {
        "networkx/__init__.py": "",
        "networkx/job.py": "import networkx; assert 'customer_code' in networkx.__file__",
    }
    succeeded(workbench, files, "networkx.job")


def test_single_uncompressed_module_file_runs(workbench: Workbench) -> None:
    workbench.s3.put_object(Bucket=BUCKET, Key="script.py", Body=b"print('alone')")
    script = {"entryPoint": "script", "s3Uri": f"s3://{BUCKET}/script.py"}
    succeeded(workbench, {}, algorithmSpecification={"scriptModeConfig": script})


def test_log_lines_arrive_in_order_in_the_service_and_in_a_file(workbench: Workbench) -> None:
    lines = "for i in range(300): print('line', i, flush=True)\nprint()\nimport sys\nprint('warned', file=sys.stderr)\n"
    metric = (
        "from braket.jobs.metrics import log_metric\nlog_metric('cost', 1.5, iteration_number=2)\n"
        "sys.stdout.flush()\nsys.stdout.buffer.write(bytes([255, 10]))\n"
    )
    ended = workbench.complete({"job/main.py": lines + metric})
    stream = f"{ended.run.job_name}/{ended.run.job_id}/algo-1"
    seen: list[str] = []
    pages = workbench.logs.get_paginator("filter_log_events").paginate(
        logGroupName="/aws/braket/jobs", logStreamNames=[stream]
    )
    for page in pages:
        seen += [event["message"] for event in page["events"]]
    assert [line for line in seen if line.startswith("line")] == [f"line {i}" for i in range(300)]
    assert any(line.startswith("Metrics - timestamp=") and "cost=1.5; iteration_number=2;" in line for line in seen)
    order = ["Invoking script with the following command:", "Running Code As Process", "line 0", "warned", "\ufffd"]
    order += ["Code Run Finished", "Reporting training SUCCESS"]
    assert [line for line in seen if line in order] == order
    assert ended.log.splitlines() == [line.strip() for line in seen]


def test_archive_depends_only_on_paths_and_contents(tmp_path: Any) -> None:
    for name, contents in {"one": ["b", "a"], "two": ["a", "b"]}.items():
        for content in contents:
            file = tmp_path / name / "deep" / content
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
        write_archive([tmp_path / name], tmp_path / f"{name}.tar.gz")
    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "two.tar.gz").read_bytes()


def test_multiprocessing_finds_room_for_its_sockets(workbench: Workbench) -> None:
    code = (
        "import multiprocessing, tempfile\nif __name__ == '__main__':\n"
        "    with multiprocessing.Manager() as manager: print(list(manager.list([1, 2])))\n"
        "    print(tempfile.mkdtemp(dir=None))\n"
    )
    ended = workbench.complete({"job/main.py": code})
    assert ended.outcome.failure_reason is None, ended.log
    assert "[1, 2]" in ended.log
    assert len(list((ended.host() / "tmp").iterdir())) >= 1


def test_hyperparameters_too_long_for_a_variable_are_refused_with_a_remedy(workbench: Workbench) -> None:
    ended = workbench.complete({"job/main.py": ""}, hyperParameters={f"p{i}": "x" * 2500 for i in range(100)})
    assert ended.reason.startswith("ClientError: the hyperParameters are passed on in variables too")


def wheel(folder: Any, name: str) -> None:
    """Write a wheel by hand: the smallest thing that pip installs."""
    import zipfile

    information = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as bundle:
        bundle.writestr(f"{name}.py", "ANSWER = 42\n")
        bundle.writestr(f"{information}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        bundle.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        bundle.writestr(f"{information}/RECORD", "")


def test_requirements_are_installed_for_the_job_alone(
    workbench: Workbench, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(tmp_path, "jobsownpackage")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    files = {
        "job/main.py": "import jobsownpackage, numpy; assert jobsownpackage.ANSWER == 42",
        "job/requirements.txt": "jobsownpackage==1.0\nnumpy\n",
    }
    succeeded(workbench, files)
    check = subprocess.run([sys.executable, "-c", "import jobsownpackage"], check=False, capture_output=True)
    assert b"ModuleNotFoundError" in check.stderr


def test_requirements_that_cannot_be_installed_fail_the_job_with_what_pip_said(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    files = {"job/main.py": "print('ran')", "job/requirements.txt": "no-such-package==9.9\n"}
    ended = workbench.complete(files)
    assert ended.reason.startswith("AlgorithmError: RequirementsError: pip could not install job/requirements.txt")
    assert "No matching distribution found for no-such-package==9.9" in ended.reason
    assert "ran" not in ended.log.splitlines()


@pytest.mark.parametrize(
    ("entry_point", "files"),
    [
        ("job/run.sh", {"job/run.sh": 'echo "{\\"p\\": $SM_HP_P}" > "$AMZN_BRAKET_JOB_RESULTS_DIR/results.json"'}),
        (
            "job/solve",
            {"job/solve": '#!/bin/sh\nprintf "{\\"p\\": %s}" "$2" > "$AMZN_BRAKET_JOB_RESULTS_DIR/results.json"'},
        ),
    ],
    ids=["shell", "executable"],
)
def test_other_languages_get_the_same_variables_and_plain_results_get_the_sdks_header(
    workbench: Workbench, entry_point: str, files: dict[str, str]
) -> None:
    results = succeeded(workbench, files, entry_point, hyperParameters={"p": "2"})
    content = json.loads(results["results.json"])
    assert content["dataDictionary"] == {"p": 2}
    assert content["braketSchemaHeader"]["name"] == "braket.jobs_data.persisted_job_data"
