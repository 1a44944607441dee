"""The instance types that Braket hybrid jobs can run on, and those that they no longer can."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from hybridjobs.model.errors import SpecError, closest

REGIONS: Final = ("us-east-1", "us-west-1", "us-west-2", "eu-west-2", "eu-north-1")
_ALL_BUT_US_WEST_1: Final = tuple(region for region in REGIONS if region != "us-west-1")
_US_EAST_1_AND_US_WEST_2: Final = ("us-east-1", "us-west-2")


@dataclass(frozen=True)
class InstanceType:
    """What one instance offers.

    `gpu_memory_gib` is the memory of one GPU as its vendor states it. `regions` are those of REGIONS that offer the
    type. `default_quota` is the number of instances a new account may use at once in a region, None where AWS does
    not document it; 0 means that nothing starts before a quota increase is granted.
    """

    name: str
    vcpus: int
    memory_gib: float
    gpus: int = 0
    gpu_model: str | None = None
    gpu_memory_gib: float = 0
    regions: tuple[str, ...] = REGIONS
    default_quota: int | None = None


def _sizes(family: str, sizes: Mapping[str, tuple[int, float, int | None]]) -> list[InstanceType]:
    """Describe a family without GPUs; each size gives vCPUs, memory in GiB and default quota."""
    return [
        InstanceType(name=f"ml.{family}.{size}", vcpus=vcpus, memory_gib=memory, default_quota=quota)
        for size, (vcpus, memory, quota) in sizes.items()
    ]


def _gpu_sizes(
    family: str,
    sizes: Mapping[str, tuple[int, float, int, int | None]],
    *,
    model: str,
    memory_gib: float,
    regions: tuple[str, ...] = REGIONS,
) -> list[InstanceType]:
    """Describe a family with GPUs; each size gives vCPUs, memory in GiB, GPUs and default quota."""
    return [
        InstanceType(
            name=f"ml.{family}.{size}",
            vcpus=vcpus,
            memory_gib=memory,
            gpus=gpus,
            gpu_model=model,
            gpu_memory_gib=memory_gib,
            regions=regions,
            default_quota=quota,
        )
        for size, (vcpus, memory, gpus, quota) in sizes.items()
    ]


# Names: the InstanceType enumeration of the Braket API. Regions and quotas: "Amazon Braket quotas" in its developer
# guide. Sizes: the EC2 instance type of the same name.
_TYPES: Final = [
    *_sizes("t3", {"large": (2, 8, 5), "xlarge": (4, 16, 5), "2xlarge": (8, 32, 5)}),
    *_sizes(
        "m4",
        {
            "xlarge": (4, 16, None),
            "2xlarge": (8, 32, None),
            "4xlarge": (16, 64, None),
            "10xlarge": (40, 160, None),
            "16xlarge": (64, 256, None),
        },
    ),
    *_sizes(
        "m5",
        {
            "large": (2, 8, 5),
            "xlarge": (4, 16, 5),
            "2xlarge": (8, 32, 5),
            "4xlarge": (16, 64, 5),
            "12xlarge": (48, 192, 0),
            "24xlarge": (96, 384, 0),
        },
    ),
    *_sizes(
        "c4",
        {"xlarge": (4, 7.5, None), "2xlarge": (8, 15, None), "4xlarge": (16, 30, None), "8xlarge": (36, 60, None)},
    ),
    *_sizes(
        "c5",
        {
            "xlarge": (4, 8, 5),
            "2xlarge": (8, 16, 5),
            "4xlarge": (16, 32, 1),
            "9xlarge": (36, 72, 1),
            "18xlarge": (72, 144, None),
        },
    ),
    *_sizes(
        "c5n",
        {
            "xlarge": (4, 10.5, None),
            "2xlarge": (8, 21, None),
            "4xlarge": (16, 42, None),
            "9xlarge": (36, 96, None),
            "18xlarge": (72, 192, None),
        },
    ),
    *_gpu_sizes(
        "p4d", {"24xlarge": (96, 1152, 8, 0)}, model="NVIDIA A100", memory_gib=40, regions=_US_EAST_1_AND_US_WEST_2
    ),
    *_gpu_sizes(
        "g4dn",
        {
            "xlarge": (4, 16, 1, 0),
            "2xlarge": (8, 32, 1, 0),
            "4xlarge": (16, 64, 1, 0),
            "8xlarge": (32, 128, 1, 0),
            "12xlarge": (48, 192, 4, 0),
            "16xlarge": (64, 256, 1, 0),
        },
        model="NVIDIA T4",
        memory_gib=16,
    ),
    *_gpu_sizes(
        "g6",
        {
            "xlarge": (4, 16, 1, 5),
            "2xlarge": (8, 32, 1, 5),
            "4xlarge": (16, 64, 1, 5),
            "8xlarge": (32, 128, 1, 5),
            "12xlarge": (48, 192, 4, 5),
            "16xlarge": (64, 256, 1, 5),
            "24xlarge": (96, 384, 4, 1),
            "48xlarge": (192, 768, 8, 1),
        },
        model="NVIDIA L4",
        memory_gib=24,
        regions=_ALL_BUT_US_WEST_1,
    ),
    *_gpu_sizes(
        "g6e",
        {
            "xlarge": (4, 32, 1, 5),
            "2xlarge": (8, 64, 1, 5),
            "4xlarge": (16, 128, 1, 5),
            "8xlarge": (32, 256, 1, 5),
            "12xlarge": (48, 384, 4, 1),
            "16xlarge": (64, 512, 1, 1),
            "24xlarge": (96, 768, 4, 1),
            "48xlarge": (192, 1536, 8, 1),
        },
        model="NVIDIA L40S",
        memory_gib=48,
        regions=_US_EAST_1_AND_US_WEST_2,
    ),
]

INSTANCE_TYPES: Final[Mapping[str, InstanceType]] = MappingProxyType({each.name: each for each in _TYPES})

# The nearest type by number of GPUs, each with at least the memory of the one it replaces.
RETIRED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ml.p2.xlarge": "ml.g6.xlarge",
        "ml.p2.8xlarge": "ml.g6.48xlarge",
        "ml.p2.16xlarge": "ml.g6.48xlarge",
        "ml.p3.2xlarge": "ml.g6.xlarge",
        "ml.p3.8xlarge": "ml.g6.12xlarge",
        "ml.p3.16xlarge": "ml.g6.48xlarge",
        "ml.p3dn.24xlarge": "ml.p4d.24xlarge",
    }
)


def instance_type(name: str) -> InstanceType:
    """Look up an instance type by its Braket name, such as `ml.m5.2xlarge`.

    Raises SpecError for a type that Braket has retired, naming the one to use instead, and for an unknown name,
    naming the closest one.
    """
    known = INSTANCE_TYPES.get(name)
    if known is not None:
        return known
    replacement = RETIRED.get(name) or RETIRED.get(f"ml.{name}")
    if replacement is not None:
        raise SpecError(
            "Braket no longer offers this instance type for hybrid jobs",
            key="instance.type",
            value=name,
            remedy=f'Use "{replacement}" ({_summary(INSTANCE_TYPES[replacement])})',
        )
    match = closest(name, INSTANCE_TYPES)
    raise SpecError(
        "Braket has no such instance type for hybrid jobs",
        key="instance.type",
        value=name,
        remedy=f'Did you mean "{match}"?' if match else f"Choose one of {', '.join(INSTANCE_TYPES)}",
    )


def _summary(kind: InstanceType) -> str:
    gpus = f", {kind.gpus} x {kind.gpu_model} {kind.gpu_memory_gib:g} GB" if kind.gpus else ""
    return f"{kind.vcpus} vCPUs, {kind.memory_gib:g} GiB{gpus}"
