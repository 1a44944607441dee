"""All jobs that the project declares, each checked together with its source folder."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field

from hybridjobs.model.errors import SpecError, SpecProblem, closest
from hybridjobs.model.inputs import input_files
from hybridjobs.model.job_spec import JobSpec
from hybridjobs.model.source_archive import source_files
from hybridjobs.model.source_rules import broken_source_rules, folder_name_problem
from hybridjobs.model.validation import Declaration, read_toml, toml_key, validated

JOBS_FILE: Final = "jobs.toml"


class SourceTable(Declaration):
    """The table `[source]` of a `jobs.toml`: the folders beside the source folder that its archive takes along."""

    libraries: Annotated[tuple[str, ...], Field(strict=False)] = ()


class JobsFile(Declaration):
    """A whole `jobs.toml`; its jobs are validated one by one."""

    missing: ClassVar[Mapping[str, str]] = {"jobs": "Declare a job in a table [jobs.<name>]"}

    source: SourceTable = SourceTable()
    jobs: dict[str, dict[str, Any]]


@dataclass(frozen=True)
class CatalogueEntry:
    """A job with the folder of its source, the folders of its libraries, and the file that declares it."""

    spec: JobSpec
    source_folder: Path
    libraries: tuple[Path, ...]
    file: Path


def load_catalogue(job_sources: Path) -> Mapping[str, CatalogueEntry]:
    """Read the `jobs.toml` of every folder below `job_sources`, by the names of the jobs.

    Folders without a `jobs.toml` are libraries. Raises one SpecError with every problem of every file, among them two
    jobs whose names differ only in dashes and case: they would share the name of a stack output.
    """
    if not job_sources.is_dir():
        raise SpecError(
            "there is no such folder", file=str(job_sources), remedy="Run this in the project's root folder"
        )
    entries: list[CatalogueEntry] = []
    problems: list[SpecProblem] = []
    for file in sorted(job_sources.glob(f"*/{JOBS_FILE}")):
        try:
            entries.extend(_read(file))
        except SpecError as error:
            problems.extend(error.problems)
    problems.extend(_same_names(entries))
    if problems:
        raise SpecError.of(problems)
    return {entry.spec.name: entry for entry in sorted(entries, key=lambda entry: entry.spec.name)}


def revised_entry(entry: CatalogueEntry, changes: Mapping[str, Any], *, file: str, prefix: str) -> CatalogueEntry:
    """Merge `changes`, which stand in `file` below the key `prefix`, into a job's table, and check the job again.

    Tables are merged key by key, every other value is replaced. Raises SpecError with every problem of the result.
    """
    table = _merged(entry.spec.model_dump(exclude={"name"}), changes)
    members = source_files(entry.source_folder, entry.libraries)
    spec = _checked_spec(entry.spec.name, table, folder=entry.source_folder, members=members, file=file, prefix=prefix)
    return replace(entry, spec=spec)


def _read(file: Path) -> list[CatalogueEntry]:
    """Read one `jobs.toml`; raises one SpecError with every problem of its jobs."""
    jobs_file = validated(JobsFile, read_toml(file), file=str(file))
    folder = file.parent
    name_problem = folder_name_problem(folder)
    if name_problem is not None:
        raise SpecError.of([name_problem])
    libraries = _libraries(jobs_file.source.libraries, folder, file)
    members = source_files(folder, libraries)
    entries: list[CatalogueEntry] = []
    problems: list[SpecProblem] = []
    for name, table in jobs_file.jobs.items():
        try:
            spec = _checked_spec(
                name, table, folder=folder, members=members, file=str(file), prefix=toml_key("jobs", name)
            )
        except SpecError as error:
            problems.extend(error.problems)
        else:
            entries.append(CatalogueEntry(spec=spec, source_folder=folder, libraries=libraries, file=file))
    if problems:
        raise SpecError.of(problems)
    return entries


def _checked_spec(
    name: str, table: Mapping[str, Any], *, folder: Path, members: Mapping[str, Path], file: str, prefix: str
) -> JobSpec:
    """Validate a job's table by itself and then together with its source folder."""
    if "name" in table:
        raise SpecError(
            "there is no such key",
            file=file,
            key=f"{prefix}.name",
            value=table["name"],
            remedy="The name of the table is the name of the job",
        )
    spec = validated(JobSpec, {**table, "name": name}, file=file, prefix=prefix)
    problems = list(broken_source_rules(spec, folder, members))
    for channel, path in spec.inputs.items():
        try:
            input_files(folder, {channel: path})
        except SpecError as error:
            problems.extend(error.problems)
    if problems:
        raise SpecError.of(problem.at(file=file, prefix=prefix) for problem in problems)
    return spec


def _libraries(names: Sequence[str], folder: Path, file: Path) -> tuple[Path, ...]:
    siblings = [each.name for each in folder.parent.iterdir() if each.is_dir() and each.name != folder.name]
    problems: list[SpecProblem] = []
    for position, name in enumerate(names):
        key = f"source.libraries.{position}"
        if name in names[:position]:
            problems.append(SpecProblem("this library is named twice", "Name it once", str(file), key, name))
        elif name == folder.name:
            problems.append(
                SpecProblem("the archive holds its own source folder anyway", "Remove the name", str(file), key, name)
            )
        elif name not in siblings:
            match = closest(name, siblings)
            problems.append(
                SpecProblem(
                    problem=f"there is no such folder beside {folder.name}",
                    remedy=f'Did you mean "{match}"?' if match else f"Create {folder.parent / name}",
                    file=str(file),
                    key=key,
                    value=name,
                )
            )
        else:
            name_problem = folder_name_problem(folder.parent / name)
            problems.extend([name_problem] if name_problem else [])
    if problems:
        raise SpecError.of(problems)
    return tuple(folder.parent / name for name in names)


def _same_names(entries: Sequence[CatalogueEntry]) -> Iterator[SpecProblem]:
    first_of: dict[str, CatalogueEntry] = {}
    for entry in entries:
        name = entry.spec.name
        first = first_of.setdefault(name.replace("-", "").lower(), entry)
        if first is not entry:
            yield SpecProblem(
                problem=f"{first.file} declares {first.spec.name}, and names must differ in more than dashes and case",
                remedy="Rename one of the two jobs",
                file=str(entry.file),
                key=toml_key("jobs", name),
            )


def _merged(table: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(table)
    for key, value in changes.items():
        old = merged.get(key)
        merged[key] = _merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged
