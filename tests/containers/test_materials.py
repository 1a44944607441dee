"""The bill of materials in every image: what is installed, with its licence texts, in the same bytes each time."""

import importlib.metadata
import json
from pathlib import Path

import pytest

from tests.containers.scripts import ASSETS, load_script

SCRIPT = ASSETS / "materials" / "collect_materials.py"


materials = load_script(SCRIPT)


def test_only_installed_debian_packages_are_listed_with_their_texts(tmp_path: Path) -> None:
    status = tmp_path / "status"
    status.write_text(
        "Package: libc6\nStatus: install ok installed\nVersion: 2.36-9\n\n"
        "Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n"
    )
    (tmp_path / "doc" / "libc6").mkdir(parents=True)
    (tmp_path / "doc" / "libc6" / "copyright").write_text("LGPL")
    (found,) = materials.debian_packages(status, tmp_path / "doc")
    assert found.entry() == {
        "type": "library",
        "name": "libc6",
        "version": "2.36-9",
        "purl": "pkg:deb/debian/libc6@2.36-9",
        "properties": [{"name": "licence-text", "value": str(tmp_path / "doc" / "libc6" / "copyright")}],
    }
    assert list(materials.debian_packages(tmp_path / "none", tmp_path)) == []


def test_julia_packages_are_listed_from_their_depot(tmp_path: Path) -> None:
    package = tmp_path / "packages" / "CUDA" / "abcde"
    package.mkdir(parents=True)
    (package / "Project.toml").write_text('name = "CUDA"\nuuid = "0"\nversion = "5.8.2"\n')
    (package / "LICENSE.md").write_text("MIT")
    (found,) = materials.julia_packages(tmp_path)
    assert (found.name, found.version, found.texts) == ("CUDA", "5.8.2", (package / "LICENSE.md",))


def test_the_same_contents_give_the_same_bytes_and_the_texts_of_python_packages_are_copied(tmp_path: Path) -> None:
    text = tmp_path / "LICENCE"
    text.write_text("Boost")
    bills = []
    for _ in range(2):
        arguments = [str(tmp_path / "out"), "--image", "test", "--component", f"json=3.11={text}"]
        assert materials.main(arguments) == 0
        bills.append((tmp_path / "out" / "sbom.cdx.json").read_bytes())
    assert bills[0] == bills[1]
    document = json.loads(bills[0])
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    listed = {each["name"]: each for each in document["components"]}
    assert listed["json"]["properties"][0]["value"] == str(text)
    assert listed["pytest"]["version"] == importlib.metadata.version("pytest")
    assert Path(listed["pytest"]["properties"][0]["value"]).read_text().startswith("The MIT License")


def test_a_component_without_its_licence_text_fails_the_build(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert materials.main([str(tmp_path), "--image", "test", "--component", "julia=1.11=/nowhere"]) == 1
    assert "julia: there is no licence text /nowhere" in capsys.readouterr().err
    assert not (tmp_path / "sbom.cdx.json").exists()
