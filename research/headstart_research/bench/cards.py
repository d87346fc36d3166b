"""The GPUs of this machine, as their driver's own command describes them.

No CUDA library is loaded: a process that has one keeps some of the card's memory.
"""

import csv
import subprocess
from collections.abc import Sequence

WHAT = (
    *("name", "driver_version", "compute_cap", "memory.total", "power.limit", "clocks.max.sm"),
    *("pcie.link.gen.max", "pcie.link.width.max", "persistence_mode", "mig.mode.current"),
)
"""What does not change. No serial number and no address is asked for."""
NOW = ("temperature.gpu", "clocks.sm", "power.draw", "utilization.gpu", "memory.used")
_TIMEOUT_S = 30


def cards(fields: Sequence[str]) -> list[dict[str, str]]:
    """The fields of each NVIDIA card; none where the driver's command is missing or fails."""
    query = f"--query-gpu={','.join(fields)}"
    try:
        done = subprocess.run(
            ["nvidia-smi", query, "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return parse(done.stdout, fields)


def parse(table: str, fields: Sequence[str]) -> list[dict[str, str]]:
    """The rows of ``nvidia-smi --format=csv,noheader``, each with its unit as it is printed."""
    rows = csv.reader(table.splitlines(), skipinitialspace=True)
    return [dict(zip(fields, row, strict=True)) for row in rows if len(row) == len(fields)]
