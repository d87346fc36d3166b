"""Keep what a measuring command prints last, a line of JSON, in benchmarks/results.

    python -m benchmarks.keep replay_one-question headstart replay dsec-1s-50tok.jsonl

The command's date, machine and versions are kept with it. Name the file of a log by itself, from
its own directory: paths of one machine mean nothing on another.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from rig.measurement import RESULTS, Measurement


def main() -> None:
    """Run the command, show what it prints, keep its last line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("name")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    last = ""
    with subprocess.Popen(given.command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            last = line
    if process.returncode:
        sys.exit(f"nothing is kept: the command ended with {process.returncode}")
    print(Measurement(given.name, given.command, json.loads(last)).write(given.output))


if __name__ == "__main__":
    main()
