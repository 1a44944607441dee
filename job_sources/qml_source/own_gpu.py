"""Which GPU a worker uses. Imports nothing: it is asked before anything may touch a GPU."""

from collections.abc import Mapping


def own_gpu(environment: Mapping[str, str]) -> dict[str, str]:
    """The variable that shows a worker its own GPU and no other, {} on a host without GPUs."""
    gpus = int(environment.get("SM_NUM_GPUS") or 0)
    if not gpus:
        return {}
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    numbers = visible.split(",") if visible else [str(number) for number in range(gpus)]
    return {"CUDA_VISIBLE_DEVICES": numbers[int(environment["LOCAL_RANK"]) % len(numbers)]}
