"""What CloudFormation itself would refuse or warn of, by its resource schemas in every region with Braket."""

import subprocess
from pathlib import Path

import pytest

from hybridjobs.model.instances import REGIONS
from tests.infra.synthesised import STACKS, Synthesised

pytest.importorskip("cfnlint", reason="cfn-lint is not installed: run make setup-dev")

# The CDK writes dependencies that a reference implies already.
IGNORED = "W3005"


def test_no_template_has_an_error_or_a_warning_in_any_region(
    local: Synthesised, kept: Synthesised, empty: Synthesised
) -> None:
    templates = [str(stage.folder / f"{stack}.template.json") for stage in (local, kept, empty) for stack in STACKS]
    answer = subprocess.run(
        ["cfn-lint", "--regions", *REGIONS, "--ignore-checks", IGNORED, "--", *templates],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (answer.returncode, answer.stdout) == (0, ""), answer.stdout + answer.stderr


def test_an_error_is_found(kept: Synthesised, tmp_path: Path) -> None:
    # Guards the gate itself: a linter that finds nothing must be able to find something.
    template = tmp_path / "Storage.template.json"
    known = (kept.folder / template.name).read_text()
    template.write_text(known.replace('"PAY_PER_REQUEST"', '"PAY_PER_JOB"'))
    answer = subprocess.run(["cfn-lint", str(template)], capture_output=True, text=True, check=False)
    assert "PAY_PER_JOB" in answer.stdout
    assert answer.returncode != 0
