"""Rules over several keys of a job: combinations that Braket accepts, and that would be paid for in vain."""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from hybridjobs.model.credentials import names_a_secret
from hybridjobs.model.entry_points import is_program, module_named_by
from hybridjobs.model.errors import SpecProblem, suggestion
from hybridjobs.model.images import STOCK_ACCOUNT, EcrImage, StockImage, parse_image

if TYPE_CHECKING:
    from hybridjobs.model.job_spec import JobSpec

# Each with one that computes the same on the other kind of processor, where there is one.
GPU_SIMULATORS: Final[Mapping[str, str]] = {
    "local:pennylane/lightning.gpu": "local:pennylane/lightning.qubit",
    "local:pennylane/lightning.tensor": "local:pennylane/default.tensor",
    "local:hybridjobs/maxcut-julia-cuda": "local:hybridjobs/maxcut-julia",
}
CPU_SIMULATORS: Final[Mapping[str, str | None]] = {
    "local:pennylane/lightning.qubit": "local:pennylane/lightning.gpu",
    "local:hybridjobs/maxcut-cpp": None,
    "local:hybridjobs/maxcut-julia": "local:hybridjobs/maxcut-julia-cuda",
}
# Not all there are: a job's image may hold a plugin or a simulator of its user's own.
KNOWN_SIMULATORS: Final = (
    *GPU_SIMULATORS,
    *CPU_SIMULATORS,
    "local:pennylane/lightning.amdgpu",
    "local:pennylane/lightning.kokkos",
    "local:pennylane/default.clifford",
    "local:pennylane/default.gaussian",
    "local:pennylane/default.mixed",
    "local:pennylane/default.qubit",
    "local:pennylane/default.qutrit",
    "local:pennylane/default.tensor",
    "local:pennylane/null.qubit",
    "local:pennylane/reference.qubit",
    "local:hybridjobs/contraction",
)
# Nearer than this is a slip of the pen; another name may be another simulator.
_TYPO: Final = 0.8

_NUMBER_OR_FLAG: Final = re.compile(r"[-+.\deE]+|true|false")


def broken_rules(spec: "JobSpec") -> Iterator[SpecProblem]:
    """List every rule that `spec` breaks; keys are relative to the job's table."""
    yield from _program_and_image(spec)
    yield from _misspelt_simulator(spec)
    yield from _simulator_and_instance(spec)
    yield from _data_parallel(spec)
    yield from _baseline(spec)
    yield from _secrets(spec)
    yield from _hyperparameter_count(spec)


def _program_and_image(spec: "JobSpec") -> Iterator[SpecProblem]:
    image = parse_image(spec.image)
    stock = isinstance(image, StockImage) or (isinstance(image, EcrImage) and image.account == STOCK_ACCOUNT)
    if not stock or not is_program(spec.entry_point):
        return
    own = 'an image of your own that holds container_assets/entrypoint, such as image = "asset:julia"'
    script = spec.entry_point.endswith((".jl", ".sh"))
    yield SpecProblem(
        problem=f'this is a file\'s path, while the image "{spec.image}" of Braket imports the entry point by its '
        "module name",
        remedy=f"Use {own}" if script else f'Write "{module_named_by(spec.entry_point)}", or use {own}',
        key="entry_point",
        value=spec.entry_point,
    )


def _misspelt_simulator(spec: "JobSpec") -> Iterator[SpecProblem]:
    if spec.device in KNOWN_SIMULATORS or not spec.device.startswith(("local:pennylane/", "local:hybridjobs/")):
        return
    provider = spec.device.partition("/")[0]
    candidates = [known for known in KNOWN_SIMULATORS if known.startswith(f"{provider}/")]
    names = {known.partition("/")[2]: known for known in candidates}
    near = get_close_matches(spec.device.partition("/")[2].lower(), names, n=1, cutoff=_TYPO)
    if near:
        yield SpecProblem(
            problem=f"{provider.removeprefix('local:')} has no such simulator",
            remedy=suggestion(spec.device, [names[near[0]]], noun="simulator"),
            key="device",
            value=spec.device,
        )


def _simulator_and_instance(spec: "JobSpec") -> Iterator[SpecProblem]:
    gpus = spec.instance_type.gpus
    if spec.device in GPU_SIMULATORS and not gpus:
        yield SpecProblem(
            problem=f"this simulator needs a GPU, and {spec.instance.type} has none",
            remedy=f'Use instance.type = "ml.g6.xlarge", or the device "{GPU_SIMULATORS[spec.device]}"',
            key="device",
            value=spec.device,
        )
    if spec.device in CPU_SIMULATORS and gpus:
        on_gpus = CPU_SIMULATORS[spec.device]
        instead = f'"{on_gpus}", or ' if on_gpus else ""
        yield SpecProblem(
            problem=f"this simulator uses CPUs only: the GPUs of {spec.instance.type} would idle and be billed",
            remedy=f'Use {instead}an instance without GPUs such as "ml.m5.2xlarge"',
            key="device",
            value=spec.device,
        )


def _data_parallel(spec: "JobSpec") -> Iterator[SpecProblem]:
    if spec.distribution != "data_parallel":
        return
    gpus, count = spec.instance_type.gpus, spec.instance.count
    if count == 1 and gpus == 1:
        yield SpecProblem(
            problem=f"one {spec.instance.type} has one GPU, and nothing to spread the data over",
            remedy='Use an instance with several GPUs such as "ml.g6.12xlarge", instance.count = 2 or more, or '
            'distribution = "none"',
            key="distribution",
            value=spec.distribution,
        )
    batch = spec.hyperparameters.get("batch_size", "").strip()
    # A host without GPUs has at least one worker; how many of its CPUs work, the job decides.
    workers = count * max(gpus, 1)
    if batch.isdecimal() and int(batch) < workers:
        what = f"{workers} GPUs ({count} x {gpus})" if gpus else f"{workers} hosts"
        yield SpecProblem(
            problem=f"all workers share this batch: of {what} {workers - int(batch)} would idle and be billed",
            remedy=f"Give at least {workers}, or use fewer",
            key="hyperparameters.batch_size",
            value=batch,
        )


def _baseline(spec: "JobSpec") -> Iterator[SpecProblem]:
    if spec.baseline and spec.benchmark is None:
        yield SpecProblem(
            problem="this job is a baseline of no benchmark",
            remedy='Write benchmark = "<name>" too, or leave baseline out',
            key="baseline",
            value=True,
        )


def _secrets(spec: "JobSpec") -> Iterator[SpecProblem]:
    for name, value in spec.hyperparameters.items():
        if names_a_secret(name) and not _NUMBER_OR_FLAG.fullmatch(value):
            yield SpecProblem(
                problem="this is named like a secret, and a job's log repeats its hyperparameters",
                remedy="Remove it, or rename it if it is none; AWS Secrets Manager keeps secrets that the job's role "
                "may read",
                key=f"hyperparameters.{name}",
            )


def _hyperparameter_count(spec: "JobSpec") -> Iterator[SpecProblem]:
    # Two more are sent for data parallelism.
    count = len(spec.hyperparameters)
    if spec.distribution == "data_parallel" and count > 98:
        yield SpecProblem(
            problem=f"a data-parallel job may have 98 hyperparameters of its own, and this has {count}",
            remedy="Put them into a file of an input channel",
            key="hyperparameters",
        )
