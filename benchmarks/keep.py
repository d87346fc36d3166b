"""Keep what a measuring command prints last, a line of JSON, in benchmarks/results.

    python -m benchmarks.keep replay_one-question headstart replay dsec-1s-50tok.jsonl

The command's date, machine and versions are kept with it. Name the file of a log by itself, from
its own directory: paths of one machine mean nothing on another.
"""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.measurement import Measurement

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Run the command, show what it prints, keep its last line."""
    if len(sys.argv) < 3:
        sys.exit("usage: python -m benchmarks.keep NAME COMMAND...")
    name, *command = sys.argv[1:]
    last = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            last = line
    if process.returncode:
        sys.exit(f"nothing is kept: the command ended with {process.returncode}")
    print(Measurement(name, command, json.loads(last)).write(RESULTS))


if __name__ == "__main__":
    main()
