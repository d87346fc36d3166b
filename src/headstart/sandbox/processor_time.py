"""The processor time of another process."""

import os
from pathlib import Path


def processor_time_s(pid: int) -> float:
    """Seconds that all its threads have used; raises if it has ended."""
    # The second field is the program's name, which may hold anything but is in parentheses.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
