"""Write every table and picture of the documents anew, in the checkout where this runs.

    python -m benchmarks.figures [--check]

With --check nothing is written: it fails where a file is out of date, and where no document shows a
table or a picture.
"""

import argparse
import sys

from benchmarks.figures.documents import MarkerError, stale, unused


def main() -> None:
    """Say of each file that it was written, or is out of date."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true")
    is_check = parser.parse_args().check
    faults = [f"no document shows {name}" for name in unused()] if is_check else []
    try:
        out_of_date = stale()
    except MarkerError as error:
        sys.exit(str(error))
    for path, text in out_of_date.items():
        if is_check:
            faults.append(f"{path} is out of date: run `make figures`")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print(f"wrote {path}")
    sys.exit("\n".join(faults) or None)


if __name__ == "__main__":
    main()
