"""What takes longer than CI may: fuzzes and the promise whole, every guide as a reader runs it.

    make nightly                      all of it, one after the other: some hours
    make nightly PARTS='guides bytes'

Each part's log and results are kept in build/nightly. A part that fails does not keep the others
from running: the last line names those that did, and the exit status is their number.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

KEPT, TINY = Path("build/nightly"), Path("build/tiny")
PYTHON, HEADSTART = sys.executable, str(Path(sys.executable).with_name("headstart"))
REPORTS = sorted(Path("tools/vllm_reports").glob("*.py"))
MILLIONS_OF_DRAFTS = ("--drafted", "250000", "--slices", "20", "--parts", f"{KEPT}/schedules")
PARTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "reports": tuple((PYTHON, str(report)) for report in REPORTS),
    "tests": ((PYTHON, "-m", "pytest", "-q", "-m", "nightly"),),
    "guides": ((PYTHON, "-m", "tests.guides"),),
    "promise": ((PYTHON, "-m", "tests.soak.promise", "--output", str(KEPT)),),
    "hooks": (
        (PYTHON, "-m", "tests.soak.prompt_pace"),
        (PYTHON, "-m", "benchmarks.hook_cost", "--batch", "256", "--batch", "1024"),
    ),
    "schedules": (
        (PYTHON, "-m", "tests.schedule_fuzz", *MILLIONS_OF_DRAFTS, "--output", str(KEPT)),
    ),
    "bytes": (
        (HEADSTART, "lab", "tiny", str(TINY)),
        (PYTHON, "-m", "tests.soak.serve_bytes", f"{TINY}/target", "--output", str(KEPT)),
    ),
}


def main(names: list[str]) -> int:
    """How many parts failed."""
    KEPT.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in names:
        log, begun_s = KEPT / f"{name}.log", time.monotonic()
        with log.open("w") as said:
            statuses = [
                subprocess.run(command, stdout=said, stderr=subprocess.STDOUT).returncode
                for command in PARTS[name]
            ]
        if any(statuses):
            failed.append(name)
        took_s = time.monotonic() - begun_s
        print(
            f"{name}: {'FAILED' if any(statuses) else 'ok'} after {took_s:.0f} s, {log}", flush=True
        )
    print(f"failed: {', '.join(failed) or 'none'}")
    return len(failed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all, if none is named")
    chosen = parser.parse_args().parts or list(PARTS)
    if unknown := set(chosen) - set(PARTS):
        parser.error(
            f"no part is called {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}"
        )
    sys.exit(main(chosen))
