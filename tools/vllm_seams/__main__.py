"""Writes which parts of the installed vLLM headstart touches, with digests; or compares with it.

    python -m tools.vllm_seams [--check | --compare [FOLDER]]

With --check nothing is written: it fails if the file that is kept is another one. With --compare it
names the parts that another vLLM, which is read and not imported, has changed or has not.
"""

import argparse
import difflib
import sys
from pathlib import Path

from headstart.doctor.findings import VLLM_VERSION, require_engine
from headstart.errors import CompatibilityError
from tools.vllm_seams.seams import Seams, file_of, installed_vllm
from tools.vllm_seams.source_tree import SourceTree
from tools.vllm_seams.touched import seams_now

ROOT = Path(__file__).parents[2]
PACKAGES = sorted(
    init.parent
    for init in ROOT.glob("*/headstart*/__init__.py")
    if init.parent.name != "headstart_lab"  # a user of headstart's, which touches no vLLM
)
"""Of every distribution that may touch vLLM."""


def main() -> None:
    """Write, check or compare, as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="write nothing; fail if it differs")
    what.add_argument(
        "--compare",
        nargs="?",
        const=Path(),
        type=Path,
        metavar="FOLDER",
        help="name what a vLLM has changed: this folder's, or the installed one's",
    )
    arguments = parser.parse_args()
    try:
        if arguments.compare is None:
            keep(arguments.check)
        else:
            compare(installed_vllm() if arguments.compare == Path() else arguments.compare)
    except CompatibilityError as error:
        sys.exit(f"error: {error}")


def keep(check: bool) -> None:
    """Write the file of the version that headstart is written for."""
    require_engine()
    kept = file_of(VLLM_VERSION)
    now = seams_now(SourceTree(*PACKAGES), SourceTree(installed_vllm()), VLLM_VERSION).text()
    before = kept.read_text() if kept.is_file() else ""
    if now == before:
        return
    sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), now.splitlines(True), n=0))
    if check:
        sys.exit(f"headstart touches other parts of vLLM than {kept.name} says: run `make seams`")
    kept.write_text(now)


def compare(folder: Path) -> None:
    """Print which seams differ; exit with 1 if any does."""
    seams = Seams.of(VLLM_VERSION)
    differences = seams.differences(SourceTree(folder))
    for difference in differences:
        word = "gone   " if difference.is_gone else "changed"
        print(f"{word} {difference.name}  {' '.join(difference.users)}")
    num_gone = sum(difference.is_gone for difference in differences)
    num_same = len(seams.by_name) - len(differences)
    print(
        f"of {len(seams.by_name)} seams of vLLM {seams.version} in {folder}: {num_same} the same,"
        f" {len(differences) - num_gone} changed, {num_gone} gone"
    )
    if differences:
        sys.exit(1)


if __name__ == "__main__":
    main()
