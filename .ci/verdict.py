"""Every test; what fails is run once more, to tell a disturbed test from a broken one.

    python .ci/verdict.py [arguments of pytest's own]

A busy machine may disturb a test that waits for processes. Those that pass only the second time
are named ("disturbed: ..."), so that they can be mended; a test that fails twice fails the run. So
does a run that did not come to its end, since then nobody knows what else would have failed.
"""

import json
import subprocess
import sys
from pathlib import Path

SOME_FAILED = 1
FAILURES = Path(".pytest_cache/v/cache/lastfailed")


def main(arguments: list[str]) -> int:
    """The exit status: zero only if each test has passed."""
    status = pytest("--cache-clear", *arguments)
    failed = failures()
    if status != SOME_FAILED or not failed:
        # All is well, or the run broke off; an exit in its middle leaves no list of failures.
        return status
    print(f"\n{len(failed)} failed; once more, by themselves", flush=True)
    status = pytest("--last-failed", "--last-failed-no-failures=none", *arguments)
    twice = failures()
    for name in sorted(failed - twice):
        print(f"disturbed: {name}")
    for name in sorted(failed & twice):
        print(f"failed twice: {name}")
    return status or int(bool(failed & twice))


def pytest(*arguments: str) -> int:
    """Run the tests of this directory."""
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode


def failures() -> set[str]:
    """What pytest remembers as not having passed when it was last tried."""
    return set(json.loads(FAILURES.read_text())) if FAILURES.exists() else set()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
