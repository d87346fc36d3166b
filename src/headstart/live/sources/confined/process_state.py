"""What the kernel says of another process."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ProcessState:
    """As of when it was read."""

    cpu_s: float
    """Processor time that all its threads have used."""
    num_threads: int

    @classmethod
    def of(cls, pid: int) -> "ProcessState":
        """Raises `OSError` or `LookupError` where the process has ended."""
        # The second field is the program's name, which may hold anything but is in parentheses.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        cpu_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return cls(cpu_s, int(fields[17]))
