"""Which cores or GPUs the target and a drafter beside it compute on.

Only where the caller has not said. A machine with one core or one GPU is shared.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

_THREADS = "VLLM_CPU_OMP_THREADS_BIND"
_GPUS = "CUDA_VISIBLE_DEVICES"
_KERNELS = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
_MAX_KERNELS = 128
_DRAFTER_SHARE = 4  # the drafter gets one core in so many, and at least one
_SHARED_GPU_MEMORY = {"target": 0.6, "drafter": 0.3}


class Device(StrEnum):
    """What an engine computes on."""

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
        """What this process may use."""
        from vllm.platforms import current_platform

        if current_platform.is_cpu():
            return cls(Device.CPU, cores=tuple(sorted(os.sched_getaffinity(0))))
        visible = os.environ.get(_GPUS)
        gpus = visible.split(",") if visible else map(str, range(current_platform.device_count()))
        return cls(Device.GPU, gpus=tuple(gpus))


@dataclass(frozen=True)
class EngineResources:
    """One engine's part of the machine: environment variables, and vLLM arguments to add."""

    environment: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    cores: tuple[int, ...] = ()
    """The only ones its process may use; none where it may use them all."""

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Set the environment while the engine is started: vLLM reads it then."""
        before = {name: os.environ.get(name) for name in self.environment}
        os.environ.update(self.environment)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


@dataclass(frozen=True)
class Placement:
    """Resources for each of the two."""

    target: EngineResources = EngineResources()
    drafter: EngineResources = EngineResources()


def place(
    machine: Machine,
    target: Mapping[str, Any],
    drafter: Mapping[str, Any],
    environment: Mapping[str, str],
) -> Placement:
    """Resources for a target and a drafter started with these vLLM arguments."""
    num_target = _num_devices(target)
    if machine.device is Device.CPU:
        return _place_on_cores(machine.cores, num_target, environment)
    return _place_on_gpus(machine.gpus, num_target, target, drafter)


def few_kernels(environment: Mapping[str, str]) -> EngineResources:
    """Keep an engine on a CPU from growing by half a gigabyte and more as it verifies drafts.

    oneDNN compiles a kernel for each width of a batch and keeps 1,024 of them unless told
    otherwise; with drafts almost every pass has another width.
    """
    return (
        EngineResources()
        if _KERNELS in environment
        else EngineResources({_KERNELS: str(_MAX_KERNELS)})
    )


def alone_on_two(machine: Machine) -> EngineResources:
    """For a target that has what it and a drafter would have: two GPUs, or every core.

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
    num_drafter = max(1, len(cores) // _DRAFTER_SHARE)
    # vLLM binds the threads of a worker in a process of its own. The drafter computes in its one
    # process, which vLLM leaves alone.
    return Placement(
        EngineResources({_THREADS: ",".join(map(str, cores[:-num_drafter]))}),
        EngineResources({"OMP_NUM_THREADS": str(num_drafter)}, cores=cores[-num_drafter:]),
    )


def _place_on_gpus(
    gpus: tuple[str, ...],
    num_target: int,
    target: Mapping[str, Any],
    drafter: Mapping[str, Any],
) -> Placement:
    free = gpus[num_target : num_target + _num_devices(drafter)]
    if len(free) == _num_devices(drafter):
        return Placement(drafter=EngineResources({_GPUS: ",".join(free)}))
    name = "gpu_memory_utilization"
    return Placement(
        EngineResources(arguments={} if name in target else {name: _SHARED_GPU_MEMORY["target"]}),
        EngineResources(arguments={} if name in drafter else {name: _SHARED_GPU_MEMORY["drafter"]}),
    )


def _num_devices(arguments: Mapping[str, Any]) -> int:
    sizes = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
    count = 1
    for name in sizes:
        count *= int(arguments.get(name, 1))
    return count
