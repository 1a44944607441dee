"""Collects the licence texts of what an image holds, and lists it as a software bill of materials.

Run once as the last step of a build, with the Python whose packages the image has. It needs nothing but Python 3.10.
The texts come to lie in OUTPUT/python; Debian keeps those of its own packages in /usr/share/doc/<package>/copyright.
The list is OUTPUT/sbom.cdx.json, a CycloneDX 1.6 document of Debian, Python and Julia packages and the components that
no package manager knows of. The same image contents give the same bytes.

    python collect_materials.py OUTPUT --image NAME [--component NAME=VERSION=LICENCE_FILE ...] [--julia-depot FOLDER]

Exit code 1 when a component's licence text is missing.
"""

import argparse
import importlib.metadata
import json
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DPKG_STATUS = Path("/var/lib/dpkg/status")
DEBIAN_TEXTS = Path("/usr/share/doc")
LICENCE_FILE = re.compile(r"(licen[cs]e|copying|notice|authors)", re.IGNORECASE)


@dataclass(frozen=True)
class Component:
    """One entry of the list; `kind` is the type of its package URL, `texts` its licence texts, if any was found."""

    kind: str
    name: str
    version: str
    licence: str = ""
    texts: tuple[Path, ...] = ()

    def entry(self) -> dict[str, Any]:
        """Return the component as CycloneDX writes it."""
        entry: dict[str, Any] = {"type": "library", "name": self.name, "version": self.version}
        if self.kind != "generic":
            namespace = "debian/" if self.kind == "deb" else ""
            entry["purl"] = f"pkg:{self.kind}/{namespace}{self.name}@{self.version}"
        if self.licence:
            entry["licenses"] = [{"license": {"name": self.licence}}]
        if self.texts:
            entry["properties"] = [{"name": "licence-text", "value": str(text)} for text in self.texts]
        return entry


def debian_packages(status: Path = DPKG_STATUS, texts: Path = DEBIAN_TEXTS) -> Iterator[Component]:
    """List what dpkg has installed; nothing on a system without it."""
    if not status.is_file():
        return
    for paragraph in status.read_text(encoding="utf-8").split("\n\n"):
        fields = dict(re.findall(r"^(\S+): (.*)$", paragraph, re.MULTILINE))
        if "installed" in fields.get("Status", "").split():
            text = texts / fields["Package"] / "copyright"
            yield Component("deb", fields["Package"], fields["Version"], texts=(text,) if text.is_file() else ())


def python_packages(output: Path) -> Iterator[Component]:
    """List the packages of the running Python, with their licence texts copied below `output`."""
    for distribution in importlib.metadata.distributions():
        fields = distribution.metadata.json
        name, version = str(fields["name"]), distribution.version
        found = [
            file for file in distribution.files or () if ".dist-info" in str(file) and LICENCE_FILE.search(file.name)
        ]
        copied = []
        for file in found:
            inside = Path(str(file).split(".dist-info/", 1)[1])
            target = output / "python" / f"{name}-{version}" / inside
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(str(distribution.locate_file(file)), target)
            copied.append(target)
        licence = str(fields.get("license_expression") or fields.get("license") or "")
        # Some packages put the whole text into the field of its name.
        yield Component(
            "pypi", name, version, licence if "\n" not in licence and len(licence) < 100 else "", tuple(copied)
        )


def julia_packages(depot: Path) -> Iterator[Component]:
    """List the packages of a Julia depot; their licence texts stay beside their sources."""
    for project in sorted(depot.glob("packages/*/*/Project.toml")):
        fields = dict(re.findall(r'^(name|version) = "(.*)"$', project.read_text(encoding="utf-8"), re.MULTILINE))
        texts = tuple(sorted(file for file in project.parent.iterdir() if LICENCE_FILE.match(file.name)))
        yield Component("julia", fields.get("name", project.parents[1].name), fields.get("version", ""), texts=texts)


def named_component(text: str) -> Component:
    """Read NAME=VERSION=LICENCE_FILE; ValueError for another text or a file that is not there."""
    name, version, file = text.split("=", 2)
    if not Path(file).is_file():
        raise ValueError(f"{name}: there is no licence text {file}")
    return Component("generic", name, version, texts=(Path(file),))


def bill_of_materials(image: str, components: Sequence[Component]) -> dict[str, Any]:
    """Return the CycloneDX document of an image."""
    ordered = sorted(set(components), key=lambda each: (each.kind, each.name.lower(), each.version))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "container", "name": image}},
        "components": [each.entry() for each in ordered],
    }


def main(arguments: Sequence[str]) -> int:
    """Collect and list; returns the exit code."""
    parser = argparse.ArgumentParser(description="Collects licence texts and lists what an image holds.")
    parser.add_argument("output", type=Path)
    parser.add_argument("--image", required=True)
    parser.add_argument("--component", action="append", default=[], metavar="NAME=VERSION=LICENCE_FILE")
    parser.add_argument("--julia-depot", type=Path, default=Path("/nowhere"))
    given = parser.parse_args(arguments)
    try:
        named = [named_component(text) for text in given.component]
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    given.output.mkdir(parents=True, exist_ok=True)
    components = [*debian_packages(), *python_packages(given.output), *julia_packages(given.julia_depot), *named]
    document = bill_of_materials(given.image, components)
    (given.output / "sbom.cdx.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    without = sorted(each.name for each in components if not each.texts)
    sys.stdout.write(
        f"{len(components)} components; without a licence text of their own: {', '.join(without) or 'none'}\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
