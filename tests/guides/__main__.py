"""Walks through every guide with the program itself, in fresh processes, as a reader does.

    python -m tests.guides [GUIDE ...]

Prints what each guide took, and why blocks were not run. The tests do the same in forked processes.
"""

import os
import resource
import sys
import tempfile
import time
from pathlib import Path

from tests.documents import WALKED
from tests.guides.place import furnish
from tests.guides.walk import Walk, as_a_person


def main(names: list[str]) -> None:
    """Each in a directory of its own."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    for document in WALKED:
        if names and document.stem not in names:
            continue
        started_s, before_s = time.monotonic(), _cpu_s()
        with tempfile.TemporaryDirectory(prefix="headstart-guide-") as folder:
            furnish(Path(folder))
            walk = Walk(document, Path(folder), as_a_person)
            try:
                walk.run()
            finally:
                walk.close()
        print(
            f"{document.stem}: {walk.num_run} blocks run in {time.monotonic() - started_s:.0f} s,"
            f" {_cpu_s() - before_s:.0f} s of a core; {len(walk.not_run)} not run",
            flush=True,
        )
        for language, reason in walk.not_run:
            print(f"    not run, {language}: {reason}")


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main(sys.argv[1:])
