"""Which cores or GPUs the target and a model beside it compute on.

Only where the caller has not said. A machine with one core or one GPU is shared.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from headstart.engine.engine_resources import EngineResources

_THREADS = "VLLM_CPU_OMP_THREADS_BIND"
_GPUS = "CUDA_VISIBLE_DEVICES"
_BESIDE_SHARE = 4  # the model beside gets one core in so many, and at least one
_SHARED_GPU_MEMORY = {"target": 0.6, "beside": 0.3}


class Device(StrEnum):
    CPU = "cpu"
    GPU = "gpu"


@dataclass(frozen=True)
class Machine:
    """The cores or GPUs that there are, by number."""

    device: Device
    cores: tuple[int, ...] = ()
    gpus: tuple[str, ...] = ()

    @classmethod
    def here(cls) -> "Machine":
        from vllm.platforms import current_platform

        if current_platform.is_cpu():
            return cls(Device.CPU, cores=tuple(sorted(os.sched_getaffinity(0))))
        visible = os.environ.get(_GPUS)
        gpus = visible.split(",") if visible else map(str, range(current_platform.device_count()))
        return cls(Device.GPU, gpus=tuple(gpus))


@dataclass(frozen=True)
class Placement:
    """Resources for each of the two."""

    target: EngineResources = EngineResources()  # noqa: RUF009 - frozen
    beside: EngineResources = EngineResources()  # noqa: RUF009 - frozen


def place(
    machine: Machine,
    target: Mapping[str, Any],
    beside: Mapping[str, Any],
    environment: Mapping[str, str],
) -> Placement:
    """Resources for a target and a model beside it started with these vLLM arguments."""
    num_target = _num_devices(target)
    if machine.device is Device.CPU:
        return _place_on_cores(machine.cores, num_target, environment)
    return _place_on_gpus(machine.gpus, num_target, target, beside)


def alone_on_two(machine: Machine) -> EngineResources:
    """For a target that has what it and a model beside it would have: two GPUs, or every core.

    Left to itself vLLM keeps one core from its own threads, for its scheduler and its server.
    """
    if machine.device is Device.CPU:
        return EngineResources({_THREADS: ",".join(map(str, machine.cores))})
    return EngineResources(arguments={"tensor_parallel_size": 2})


def _place_on_cores(
    cores: tuple[int, ...], num_target: int, environment: Mapping[str, str]
) -> Placement:
    if environment.get(_THREADS, "auto") != "auto" or num_target > 1 or len(cores) < 2:
        return Placement()
    num_beside = max(1, len(cores) // _BESIDE_SHARE)
    # vLLM binds the threads of a worker in a process of its own. The model beside computes in its
    # one process, which vLLM leaves alone.
    return Placement(
        EngineResources({_THREADS: ",".join(map(str, cores[:-num_beside]))}),
        EngineResources({"OMP_NUM_THREADS": str(num_beside)}, cores=cores[-num_beside:]),
    )


def _place_on_gpus(
    gpus: tuple[str, ...],
    num_target: int,
    target: Mapping[str, Any],
    beside: Mapping[str, Any],
) -> Placement:
    free = gpus[num_target : num_target + _num_devices(beside)]
    if len(free) == _num_devices(beside):
        return Placement(beside=EngineResources({_GPUS: ",".join(free)}))
    name = "gpu_memory_utilization"
    return Placement(
        EngineResources(arguments={} if name in target else {name: _SHARED_GPU_MEMORY["target"]}),
        EngineResources(arguments={} if name in beside else {name: _SHARED_GPU_MEMORY["beside"]}),
    )


def _num_devices(arguments: Mapping[str, Any]) -> int:
    sizes = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
    count = 1
    for name in sizes:
        count *= int(arguments.get(name, 1))
    return count
