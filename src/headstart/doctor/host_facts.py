"""Facts of this machine and of what is installed on it; `findings` judges them.

It imports nothing of the engine into this process: an installation too broken to import is what it
is for.
"""

import ctypes
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headstart.doctor.digests import changed_files

_MEMORY, _CGROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")
_CPU_INFO = Path("/proc/cpuinfo")
_LAB_MODELS = ("target", "drafter", "bridge")
_GPU_DEVICES = ("/dev/nvidia0", "/dev/kfd", "/dev/dxg")
"""Of NVIDIA's driver, of AMD's, and of either under Windows."""
_LIST_GPUS = """
import json, torch
gpus = range(torch.cuda.device_count())
memory = [torch.cuda.get_device_properties(gpu).total_memory for gpu in gpus]
print(json.dumps([[torch.cuda.get_device_name(gpu), memory[gpu]] for gpu in gpus]))
"""


@dataclass(frozen=True)
class HostFacts:
    """What `findings` needs to know. By default, a machine with nothing installed."""

    distributions: Mapping[str, str] = field(default_factory=dict)
    """Versions of those that were asked for and are installed."""
    torch_accelerator: str = ""
    """What torch is built for, as ``CUDA 13.0``; empty for the CPU."""
    import_errors: Mapping[str, str] = field(default_factory=dict)
    """Why torch, torchvision or torchaudio do not import, where they are installed."""
    has_libnuma: bool = False
    """Whether the system has the library that vLLM's CPU build is linked with."""
    gpus: tuple[tuple[str, int], ...] = ()
    """Name and bytes of each GPU that torch sees."""
    has_gpu_device: bool = False
    """Whether the driver of a GPU shows one, which torch may be unable to use."""
    architecture: str = "x86_64"
    cpu_flags: frozenset[str] = frozenset()
    """Empty where the system does not tell."""
    num_cores: int = 1
    memory_bytes: int = 0
    """Zero where the system does not tell."""
    free_bytes: int = 0
    """What a program can have without taking it from others."""
    changed_lab: tuple[str, ...] | None = None
    """Files of the lab's models that are not as they were shipped; None without a lab."""
    is_registered: bool = False
    """Whether vLLM's plugin entry point names headstart."""
    plugins: str | None = None
    """The variable ``VLLM_PLUGINS``, if it is set."""


def host_facts(distributions: Iterable[str]) -> HostFacts:
    """Look at this machine, and at these distributions. Takes seconds: torch is tried out."""
    found = installed(distributions)
    errors: dict[str, str] = {}
    gpus: tuple[tuple[str, int], ...] = ()
    if "torch" in found:
        answer, errors["torch"] = _run(_LIST_GPUS)
        gpus = tuple((name, size) for name, size in json.loads(answer or "[]"))
    for name in {"torchvision", "torchaudio"} & found.keys():
        _, errors[name] = _run(f"import {name}")
    total, free = memory_bytes()
    entries = importlib.metadata.entry_points(group="vllm.general_plugins", name="headstart")
    return HostFacts(
        distributions=found,
        torch_accelerator=torch_accelerator(),
        import_errors={name: error for name, error in errors.items() if error},
        has_libnuma=can_load("libnuma.so.1"),
        gpus=gpus,
        has_gpu_device=bool(gpus) or any(Path(device).exists() for device in _GPU_DEVICES),
        architecture=platform.machine(),
        cpu_flags=cpu_flags(),
        num_cores=num_cores(),
        memory_bytes=total,
        free_bytes=free,
        changed_lab=changed_lab(),
        is_registered=bool(entries),
        plugins=os.environ.get("VLLM_PLUGINS"),
    )


def changed_lab() -> tuple[str, ...] | None:
    if (lab := _folder_of("headstart_lab")) is None:
        return None
    models = (lab / "pair" / name for name in _LAB_MODELS)
    return tuple(f"{model.name}/{file}" for model in models for file in changed_files(model))


def can_load(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def installed_version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def installed(distributions: Iterable[str]) -> dict[str, str]:
    found = {name: installed_version(name) for name in distributions}
    return {name: version for name, version in found.items() if version is not None}


def torch_accelerator() -> str:
    """What the installed torch is built for, read from its file of versions."""
    folder = _folder_of("torch")
    text = "" if folder is None else _text(folder / "version.py")
    for name, shown in (("cuda", "CUDA"), ("hip", "ROCm"), ("xpu", "XPU")):
        if built := re.search(rf"^{name}\b.*= '(.+)'$", text, flags=re.MULTILINE):
            return f"{shown} {built[1]}"
    return ""


def _folder_of(package: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    folders = spec.submodule_search_locations if spec is not None else None
    return Path(folders[0]) if folders else None


def num_cores() -> int:
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return allowed or 1


def cpu_flags() -> frozenset[str]:
    lines = _CPU_INFO.read_text().splitlines() if _CPU_INFO.exists() else []
    listed = (line.partition(":")[2] for line in lines if line.startswith(("flags", "Features")))
    return frozenset(next(listed, "").split())


def memory_bytes() -> tuple[int, int]:
    """All memory of the machine or of the container around this process, and what is free of it.

    Zeros where the system does not tell.
    """
    if not _MEMORY.exists():
        return 0, 0
    rows = dict(re.findall(r"^(\w+): +(\d+) kB$", _MEMORY.read_text(), flags=re.MULTILINE))
    total, free = 1024 * int(rows["MemTotal"]), 1024 * int(rows["MemAvailable"])
    limit, used = _number(_CGROUP / "memory.max"), _number(_CGROUP / "memory.current")
    if limit is not None and used is not None:
        # Cached files count as used, and the kernel drops them before anything is refused.
        stat = _CGROUP / "memory.stat"
        cached = re.search(r"^inactive_file (\d+)$", _text(stat), flags=re.MULTILINE)
        used -= int(cached[1]) if cached else 0
        total, free = min(total, limit), min(free, max(0, limit - used))
    return total, free


def _number(file: Path) -> int | None:
    """The number in a file, if there is one: without a limit the kernel writes ``max``."""
    text = _text(file).strip()
    return int(text) if text.isdecimal() else None


def _text(file: Path) -> str:
    return file.read_text() if file.is_file() else ""


def _run(code: str) -> tuple[str, str]:
    """The last line that Python prints for it, or else the last line of its error."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return (done.stdout.strip().splitlines() or [""])[-1], ""
    return "", (done.stderr.strip().splitlines() or ["no message"])[-1]
