"""Every test; what fails is run once more, to tell a disturbed test from a broken one.

    python .ci/verdict.py [arguments of pytest's own]

Three processes share the tests, group by group (tests/conftest.py makes the groups): on two cores,
since each waits for engines and servers for much of its time. What fails is
run again by itself, in one process. A busy machine may disturb a test that waits for processes:
those that pass only the second time are named ("disturbed: ..."), so that they can be mended. A
test that fails twice fails the run. So does a run that did not come to its end, since then nobody
knows what else would have failed.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

ALL_PASSED = 0
SOME_FAILED = 1
FAILURES = Path(".pytest_cache/v/cache/lastfailed")
SIDE_BY_SIDE = (
    *("-n", "3", "--dist", "loadfile", "--no-loadscope-reorder"),
    # A test that ends its process would end the next one too.
    *("--max-worker-restart", "0", "-p", "lost_worker"),
    *("-p", "slowest_files"),
)


def main(arguments: list[str]) -> int:
    """The exit status: zero only if each test has passed."""
    status = pytest("--cache-clear", *SIDE_BY_SIDE, *arguments)
    failed = failures()
    if status != SOME_FAILED or not failed:
        # All is well, or the run broke off; an exit in its middle leaves no list of failures.
        return status
    print(f"\n{len(failed)} failed; once more, by themselves", flush=True)
    status = pytest("--cache-clear", *arguments, *sorted(failed))
    if status not in (ALL_PASSED, SOME_FAILED):
        return status  # it did not try them all, so none of them is known to be only disturbed
    twice = failures()
    for name in sorted(failed - twice):
        print(f"disturbed: {name}")
    for name in sorted(failed & twice):
        print(f"failed twice: {name}")
    return status or int(bool(failed & twice))


def pytest(*arguments: str) -> int:
    """Run tests of this directory, with the plugins that lie beside this file."""
    search = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        check=False,
        env={**os.environ, "PYTHONPATH": search},
    ).returncode


def failures() -> set[str]:
    """What pytest remembers as not having passed when it was last tried."""
    return set(json.loads(FAILURES.read_text())) if FAILURES.exists() else set()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
