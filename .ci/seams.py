"""Writes what headstart touches in the installed vLLM, with digests, into the package.

    python .ci/seams.py [--check]

With --check nothing is written: it fails if the file in the package is another one.
"""

import difflib
import sys
from pathlib import Path

from headstart.compatibility.seams import file_of, installed_vllm
from headstart.compatibility.source_tree import SourceTree
from headstart.compatibility.touched import seams_now
from headstart.engine.installation import VLLM_VERSION, require_engine


def main(check: bool) -> None:
    """Write the file of the version that headstart is written for."""
    require_engine()
    kept = file_of(VLLM_VERSION)
    own, engine = SourceTree(Path(kept).parents[1]), SourceTree(installed_vllm())
    now = seams_now(own, engine, VLLM_VERSION).text()
    before = kept.read_text() if kept.is_file() else ""
    if now == before:
        return
    sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), now.splitlines(True), n=0))
    if check:
        sys.exit(f"headstart touches other parts of vLLM than {kept.name} says: run `make seams`")
    kept.write_text(now)


if __name__ == "__main__":
    main("--check" in sys.argv[1:])
