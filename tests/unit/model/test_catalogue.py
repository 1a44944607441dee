import re
from collections.abc import Callable
from pathlib import Path

import pytest

from hybridjobs.model.catalogue import load_catalogue
from hybridjobs.model.errors import SpecError

WriteSource = Callable[..., Path]

JOB = """\
[jobs.{name}]
entry_point = "{entry_point}"
device = "{device}"
instance.type = "{instance}"
limits.max_runtime_seconds = 600
{more}
"""


def job(
    name: str = "cut-18",
    entry_point: str = "cut_source.cut",
    device: str = "local:pennylane/lightning.qubit",
    instance: str = "ml.m5.2xlarge",
    more: str = "",
) -> str:
    return JOB.format(name=name, entry_point=entry_point, device=device, instance=instance, more=more)


def test_reads_the_jobs_of_all_sources(write_source: WriteSource) -> None:
    write_source("contraction", jobs_toml=None, files={"__init__.py": ""})
    write_source(
        "cut_source",
        '[source]\nlibraries = ["contraction"]\n'
        + job("cut-18", more='inputs.input-graph = "inputs/graph"\nhyperparameters.p = 2\n')
        + job("cut-24", entry_point="cut_source.cut:main"),
        files={"cut.py": "def main():\n    pass\n", "inputs/graph": "0 1\n"},
    )
    job_sources = write_source("qml_source", job("sonar", entry_point="qml_source.train"), files={"train.py": ""})

    catalogue = load_catalogue(job_sources)

    assert list(catalogue) == ["cut-18", "cut-24", "sonar"]
    entry = catalogue["cut-18"]
    assert entry.spec.name == "cut-18"
    assert entry.source_folder == job_sources / "cut_source"
    assert entry.libraries == (job_sources / "contraction",)
    assert entry.file == job_sources / "cut_source" / "jobs.toml"
    assert entry.spec.hyperparameters == {"p": "2"}
    assert catalogue["sonar"].libraries == ()


def test_problems_of_all_files_are_reported_at_once(write_source: WriteSource) -> None:
    write_source("cut_source", job(instance="ml.p3.2xlarge"))
    write_source("qml_source", job("sonar", entry_point="qml_source.trian"), files={"train.py": ""})
    job_sources = write_source("odd_source", "[jobs\n")

    with pytest.raises(SpecError) as caught:
        load_catalogue(job_sources)

    assert [(problem.file, problem.key) for problem in caught.value.problems] == [
        (str(job_sources / "cut_source" / "jobs.toml"), "jobs.cut-18.instance.type"),
        (str(job_sources / "odd_source" / "jobs.toml"), None),
        (str(job_sources / "qml_source" / "jobs.toml"), "jobs.sonar.entry_point"),
    ]
    assert "line 1" in str(caught.value)


@pytest.mark.parametrize("other", ["cut-18", "cut18", "Cut-18"])
def test_two_jobs_of_nearly_the_same_name_are_refused(write_source: WriteSource, other: str) -> None:
    write_source("cut_source", job("cut-18"))
    job_sources = write_source("qml_source", job(other, entry_point="qml_source.train"), files={"train.py": ""})

    with pytest.raises(SpecError, match="names must differ in more than dashes and case") as caught:
        load_catalogue(job_sources)

    assert caught.value.file == str(job_sources / "qml_source" / "jobs.toml")
    assert str(job_sources / "cut_source" / "jobs.toml") in caught.value.problem


@pytest.mark.parametrize(
    ("jobs_toml", "key", "said"),
    [
        ("", "jobs", "Declare a job in a table [jobs.<name>]"),
        ("[job.cut-18]\n", "job", 'Did you mean "jobs"?'),
        ("jobs = 3", "jobs", "this must be a table"),
        ("deep = " + "[" * 5000, None, "this nests too deeply"),
        ("[jobs]\ncut-18 = 3", "jobs.cut-18", "this must be a table"),
        (job("cut_18"), "jobs.cut_18.name", "[jobs.cut-18]"),
        (job('"cut 18"'), 'jobs."cut 18".name', "[jobs.cut-18]"),
        (job("c" * 40), f"jobs.{'c' * 40}.name", "Shorten it by 1"),
        ('[source]\nlibraries = ["contractoin"]\n' + job(), "source.libraries.0", 'Did you mean "contraction"?'),
        ('[source]\nlibraries = ["cut_source"]\n' + job(), "source.libraries.0", "own source folder anyway"),
        ('[source]\nlibraries = ["contraction", "contraction"]\n' + job(), "source.libraries.1", "named twice"),
        ("[source]\nlibraries = [3]\n" + job(), "source.libraries.0", "this must be a string"),
        (job(more='name = "other"'), "jobs.cut-18.name", "The name of the table is the name of the job"),
    ],
)
def test_what_is_wrong_in_a_file_is_answered_with_key_and_remedy(
    write_source: WriteSource, jobs_toml: str, key: str | None, said: str
) -> None:
    write_source("contraction", jobs_toml=None, files={"__init__.py": ""})
    job_sources = write_source("cut_source", jobs_toml)

    with pytest.raises(SpecError, match=re.escape(said)) as caught:
        load_catalogue(job_sources)

    assert key in [problem.key for problem in caught.value.problems]


def test_a_folder_in_the_place_of_the_file_is_refused(write_source: WriteSource) -> None:
    job_sources = write_source("cut_source", jobs_toml=None, files={"jobs.toml/nothing": ""})

    with pytest.raises(SpecError, match="cannot be read: Is a directory"):
        load_catalogue(job_sources)


def test_a_file_that_is_not_utf8_is_refused(write_source: WriteSource) -> None:
    job_sources = write_source("cut_source")
    (job_sources / "cut_source" / "jobs.toml").write_bytes(b"# \xff\n")

    with pytest.raises(SpecError, match="Save the file as UTF-8"):
        load_catalogue(job_sources)


@pytest.mark.parametrize(
    ("entry_point", "said"),
    [
        ("cut", 'Write "cut_source.cut"'),
        ("cut:main", 'Write "cut_source.cut:main"'),
        ("other_source.cut", "the archive's top folder is cut_source"),
        ("cut_source.cutt", 'Did you mean "cut_source.cut"?'),
        ("cut_source.tests.test_cut", "no such module"),
        ("cut_source.cut:mian", 'Did you mean "cut_source.cut:main"?'),
        ("cut_source.cut:inner", "has no inner"),
        ("cut_source", "a package without __main__.py"),
        ("cut_source.package", "a package without __main__.py"),
    ],
)
def test_an_entry_point_that_the_archive_does_not_hold_is_refused(
    write_source: WriteSource, entry_point: str, said: str
) -> None:
    job_sources = write_source("cut_source", job(entry_point=entry_point), files=ENTRY_POINTS)

    with pytest.raises(SpecError, match=re.escape(said)) as caught:
        load_catalogue(job_sources)

    assert caught.value.key == "jobs.cut-18.entry_point"


@pytest.mark.parametrize(
    "entry_point",
    [
        "cut_source.cut",
        "cut_source.cut:main",
        "cut_source.cut:alias",
        "cut_source.cut:conditional",
        "cut_source.stars:anything",
        "cut_source.newer:main",
        "cut_source.runnable",
        "cut_source.package:main",
        "cut_source.package.deep",
    ],
)
def test_an_entry_point_that_the_archive_holds_is_accepted(write_source: WriteSource, entry_point: str) -> None:
    load_catalogue(write_source("cut_source", job(entry_point=entry_point), files=ENTRY_POINTS))


PROGRAMS = {"__init__.py": "", "run.sh": "", "deep/main.jl": "", "solve": "#!/bin/sh\n", "data": "1 2\n"}
OWN_IMAGE = 'image = "asset:julia"'


@pytest.mark.parametrize(
    ("entry_point", "said"),
    [
        ("run.sh", 'Write "cut_source/run.sh"'),
        ("other/run.sh", "the file's path begins with cut_source/"),
        ("cut_source/main.jl", 'Did you mean "cut_source/deep/main.jl"?'),
        ("cut_source/data", "#!/bin/sh"),
    ],
)
def test_a_program_that_the_archive_does_not_hold_or_nothing_can_start_is_refused(
    write_source: WriteSource, entry_point: str, said: str
) -> None:
    job_sources = write_source("cut_source", job(entry_point=entry_point, more=OWN_IMAGE), files=PROGRAMS)

    with pytest.raises(SpecError, match=re.escape(said)) as caught:
        load_catalogue(job_sources)

    assert caught.value.key == "jobs.cut-18.entry_point"


@pytest.mark.parametrize("entry_point", ["cut_source/run.sh", "cut_source/deep/main.jl", "cut_source/solve"])
def test_a_program_that_the_archive_holds_is_accepted(write_source: WriteSource, entry_point: str) -> None:
    load_catalogue(write_source("cut_source", job(entry_point=entry_point, more=OWN_IMAGE), files=PROGRAMS))


ENTRY_POINTS = {
    "__init__.py": "",
    "cut.py": "import os\n\ndef main():\n    def inner():\n        pass\n\nalias = main\nif os.name:\n"
    "    def conditional():\n        pass\n",
    "stars.py": "from os import *\n",
    "newer.py": "syntax of a newer Python\n",
    "runnable/__main__.py": "",
    "package/__init__.py": "def main():\n    pass\n",
    "package/deep.py": "",
    "tests/test_cut.py": "",
}


@pytest.mark.parametrize("name", ["cut-source", "2cut", "random", "pennylane"])
def test_a_folder_that_no_import_would_find_is_refused(write_source: WriteSource, name: str) -> None:
    job_sources = write_source(name, job(entry_point=f"{name}.cut"))

    with pytest.raises(SpecError, match="Rename it") as caught:
        load_catalogue(job_sources)

    assert caught.value.file == str(job_sources / name)


def test_a_missing_input_is_refused_with_its_key(write_source: WriteSource) -> None:
    job_sources = write_source("cut_source", job(more='inputs.input-graph = "inputs/graph"'))

    with pytest.raises(SpecError, match="no such file or folder") as caught:
        load_catalogue(job_sources)

    assert caught.value.key == "jobs.cut-18.inputs.input-graph"


@pytest.mark.parametrize(
    ("image", "requirements", "accepted"),
    [
        ("base", "", False),
        ("tensorflow", "pennylane-lightning==0.45.0", False),
        ("base", "pennylane-lightning-gpu==0.45.0", True),
        ("base", "pennylane-lightning[gpu]==0.45.0", True),
        ("pytorch", "", True),
        ("asset:pennylane", "", True),
    ],
)
def test_lightning_gpu_needs_an_image_that_holds_it(
    write_source: WriteSource, image: str, requirements: str, accepted: bool
) -> None:
    job_sources = write_source(
        "cut_source",
        job(device="local:pennylane/lightning.gpu", instance="ml.g6.xlarge", more=f'image = "{image}"'),
        files={"cut.py": "", "requirements.txt": requirements},
    )

    if accepted:
        load_catalogue(job_sources)
    else:
        with pytest.raises(SpecError, match=r"holds no lightning\.gpu"):
            load_catalogue(job_sources)


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="no such folder"):
        load_catalogue(tmp_path / "job_sources")
