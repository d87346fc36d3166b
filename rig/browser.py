"""A real browser for pages we make: Chromium without a window, driven over its own protocol.

    def test_the_page_shows_its_figures(browser, tmp_path):
        with browser.open("file:///...", width=390) as page:
            page.wait_for("document.querySelector('svg') !== null")
            assert page.evaluate("document.title") == "..."
            page.screenshot(tmp_path / "phone.png")
            assert page.complaints == []

`make browser` installs it where it is missing; without it the tests that need it are skipped.
"""

import base64
import itertools
import json
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rig.waiting import wait_until

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
)
TIMEOUT_S = 90.0


def find_program() -> str | None:
    """The browser of this machine, if it has one."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Page:
    """One open page. What it asked the network for and complained of is kept as it is read."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self.requested: list[str] = []
        """Every address it fetched, itself first."""
        self.complaints: list[str] = []
        """Uncaught exceptions, console errors and failed loads."""

    def go(self, url: str, width: int, height: int) -> None:
        """Load a page into a window of this size and wait until it is complete."""
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        reply = self.call("Page.navigate", url=url)
        assert "errorText" not in reply, f"{url}: {reply['errorText']}"
        self.wait_for("document.readyState === 'complete' && location.href !== 'about:blank'")

    def evaluate(self, script: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        reply = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in reply, reply["exceptionDetails"]
        return reply["result"].get("value")

    def wait_for(self, condition: str, timeout_s: float = TIMEOUT_S) -> None:
        """Until an expression is true in the page."""
        wait_until(lambda: self.evaluate(f"Boolean({condition})"), condition, timeout_s)

    def screenshot(self, path: Path) -> Path:
        """The whole page, however long, as PNG."""
        reply = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(reply["data"]))
        return path

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the browser's protocol; events that come meanwhile are noted."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=TIMEOUT_S))
            if message.get("id") == number:
                assert "error" not in message, f"{method}: {message['error']}"
                return message["result"]
            if "method" in message:
                self._note(message["method"], message["params"])

    def _note(self, event: str, details: dict[str, Any]) -> None:
        if event == "Network.requestWillBeSent":
            self.requested.append(details["request"]["url"])
        elif event == "Runtime.exceptionThrown":
            thrown = details["exceptionDetails"]
            self.complaints.append(thrown.get("exception", {}).get("description", thrown["text"]))
        elif event == "Runtime.consoleAPICalled" and details["type"] == "error":
            self.complaints.append(str([part.get("value") for part in details["args"]]))
        elif event == "Log.entryAdded" and details["entry"]["level"] == "error":
            entry = details["entry"]
            self.complaints.append(f"{entry['text']} {entry.get('url', '')}")


class Browser:
    """A running Chromium with an empty profile. `close` ends it."""

    def __init__(self, program: str, profile: Path) -> None:
        self._process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._port = self._wait_for_port(profile / "DevToolsActivePort")

    def _wait_for_port(self, file: Path) -> int:
        def is_up() -> bool:
            assert self._process.poll() is None, "the browser ended while starting"
            # Two lines, written in one go or seen halfway.
            return file.exists() and file.read_text().count("\n") >= 1

        try:
            wait_until(is_up, "the browser", TIMEOUT_S)
        except AssertionError:
            self.close()
            raise
        return int(file.read_text().splitlines()[0])

    @contextmanager
    def open(self, url: str, width: int = 1200, height: int = 900) -> Iterator[Page]:
        """A page in a tab of its own, closed afterwards. Below 600 px wide it is a phone's."""
        from websockets.sync.client import connect

        tab = json.loads(self._tabs("new"))
        try:
            # Screenshots are long messages; a proxy has no business on the loopback.
            with connect(tab["webSocketDebuggerUrl"], max_size=None, proxy=None) as socket:
                page = Page(socket)
                page.go(url, width, height)
                yield page
        finally:
            self._tabs(f"close/{tab['id']}")

    def _tabs(self, wish: str) -> bytes:
        address = f"http://127.0.0.1:{self._port}/json/{wish}"
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(urllib.request.Request(address, method="PUT"), timeout=TIMEOUT_S) as reply:
            return bytes(reply.read())

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, started once for all pages."""
    pytest.importorskip("websockets", reason="the browser is driven over websockets")
    program = find_program()
    if program is None:
        pytest.skip("no Chromium on this machine: `make browser` installs one")
    # Its helpers may still be writing when it is gone.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        running = Browser(program, Path(profile))
        try:
            yield running
        finally:
            running.close()
