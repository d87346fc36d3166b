"""README's picture of `headstart demo`: its page, at a moment that shows what is said.

    python -m benchmarks.demo_picture docs/pictures/demo.png

Starts the demo on this machine and opens its page in a browser without a window (`make browser`).
From the 25th comparison on, the first answer that names somebody else on the road is the one. The
figures on the picture are this machine's: take it on a machine that does nothing else.
"""

import argparse
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.browser import Browser, Page, find_program
from tests.serve.servers import free_port, wait_until

NUM_COMPARED = 25
START_S, LOOK_S = 600.0, 300.0
PROGRAM = "from headstart_lab.cli.live_demo import app; app()"
IS_SHOWN = f"""
  (bare.size >= {NUM_COMPARED} && words.certain === "" && words.unsure === ""
   && $("asked").querySelectorAll("canvas").length === 4
   && !$("certain").textContent.includes("no other"))
"""


def main() -> None:
    """Write the picture, and print what its figures are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("picture", type=Path)
    picture = parser.parse_args().picture
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
                    _shoot(page, picture)
            finally:
                browser.close()
        finally:
            demo.send_signal(signal.SIGINT)
            demo.wait()


def _shoot(page: Page, picture: Path) -> None:
    page.wait_for(IS_SHOWN, LOOK_S)
    page.screenshot(picture)
    for name in ("certain", "ratio", "same"):
        print(page.evaluate(f"$('{name}').textContent"))


if __name__ == "__main__":
    main()
