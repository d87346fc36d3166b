"""Live cameras over sockets beside bare vLLM: equal answers, and sooner? And beside abusers?

    python -m benchmarks.serve_live TARGET --cameras 8 --minutes 10
    python -m benchmarks.serve_live TARGET --cameras 4 --minutes 3 --rounds 3 --abusers

Each camera shows its own held-out drive of the lab in tumbling windows, with a standing question.
Every two seconds (`--every`) the window of one of them ends, so a window has twice as many seconds
as there are cameras. In the first form the same frames of the same windows are shown to `headstart
serve`, over live sockets, and to vLLM's own server, as a video of JPEGs that is sent with the
window's last frame. Both servers are started once; one is used at a time, in rounds that alternate,
while the other idles. Waits count from the sending of the last frame to the last word.

With `--abusers` the cameras are shown to `headstart serve` alone, in rounds without and with a
client of another tenant: one that behaves, is killed, freezes, sends rubbish, sends too fast, or
uses one name twice. Afterwards vLLM's own server is asked about all their windows.

Prints a table, then one line of JSON. Fails where a promise is broken: an answer that differs or is
lost, a camera that is left, memory that grows. Never for its speed.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from benchmarks.live_beside_abusers import abuse
from benchmarks.live_beside_bare import compare
from benchmarks.live_rounds import Plan
from benchmarks.serving import Workspace


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", type=Path, help="a Video-LLaVA")
    parser.add_argument("--cameras", type=int, default=8)
    parser.add_argument(
        "--minutes", type=float, default=10.0, help="on each server, or beside each abuser"
    )
    parser.add_argument("--rounds", type=int, default=4, help="into which the minutes are divided")
    parser.add_argument("--every", type=float, default=2.0, help="seconds from window to window")
    parser.add_argument("--abusers", action="store_true", help="measure beside abusers instead")
    options = parser.parse_args()
    round_s = 60 * options.minutes / options.rounds
    num_windows = max(1, round(round_s / (options.every * options.cameras)))
    plan = Plan(options.cameras, options.every, options.rounds, num_windows)
    with tempfile.TemporaryDirectory(prefix="headstart-bench-") as made:
        here = Workspace(Path(made), options.target.absolute(), None, Path(made), "float32")
        figures, faults = (abuse if options.abusers else compare)(plan, here)
    print(json.dumps({**figures, "faults": faults}))
    sys.exit("\n".join(faults) or None)


if __name__ == "__main__":
    main()
