"""README's picture of `headstart demo`: its page, at a moment that shows what is said.

    python -m benchmarks.demo_picture docs/pictures/demo.png

Starts the demo on this machine and opens its page in a browser without a window (`make browser`).
From the 16th comparison on, the first answer with certain words (`--says`) is the one: look whether
it fits what is seen, for the lab's target errs. The figures on the picture are this machine's: take
it on a machine that does nothing else.
"""

import argparse
import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from rig.browser import Browser, find_program
from rig.servers import free_port, wait_until

NUM_COMPARED = 16
START_S, LOOK_S = 600.0, 300.0
PROGRAM = "from headstart_lab.cli.live_demo import app; app()"
IS_SHOWN = """
  bare.size >= %d && words.certain === "" && words.unsure === ""
  && $("asked").querySelectorAll("canvas").length === 4 && $("certain").textContent.includes(%s)
  && (camera.onwords = camera.onanswer = camera.oncompared = () => {})
"""
"""True once; the page then stays as it is."""


def main() -> None:
    """Write the picture, and print what its figures are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("picture", type=Path)
    parser.add_argument("--says", default="yellow motorcycle directly ahead")
    given = parser.parse_args()
    program, port = find_program(), free_port()
    if program is None:
        sys.exit("no Chromium on this machine: `make browser` installs one")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        log = Path(folder) / "log"
        with log.open("wb") as output:
            demo = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, "--no-browser", "--port", str(port)],
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            address = f"http://127.0.0.1:{port}/live"
            wait_until(lambda: address in log.read_text(), "the page named", START_S, log)
            browser = Browser(program, Path(folder) / "profile")
            try:
                with browser.open(address, width=1200) as page:
                    page.wait_for(IS_SHOWN % (NUM_COMPARED, json.dumps(given.says)), LOOK_S)
                    page.screenshot(given.picture)
                    for name in ("certain", "ratio", "same"):
                        print(page.evaluate(f"$('{name}').textContent"))
            finally:
                browser.close()
        finally:
            demo.send_signal(signal.SIGINT)
            demo.wait()


if __name__ == "__main__":
    main()
