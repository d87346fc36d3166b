"""`headstart demo` as a person runs it: the page plays the drive, and compares."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rig.servers import free_port, wait_until

START_S = 600.0
SEEN = """
  ({
    answers: [...document.querySelectorAll("#answers li")].map((row) => row.dataset.answer),
    compared: [...bare.values()],
    same: document.getElementById("same").textContent,
    ratio: document.getElementById("ratio").textContent,
    width: document.documentElement.scrollWidth,
    said: document.getElementById("certain").textContent,
    asked: JSON.parse(document.getElementById("asked").dataset.times),
    pictures: document.querySelectorAll("#asked canvas").length,
  })
"""
BETWEEN = "(words.certain === '' && words.unsure === '')"
HAS_EVENTS = """
  [...document.getElementById("events").getContext("2d").getImageData(0, 0, 160, 100).data]
    .some((value) => value === 30 || value === 200)
"""
PROGRAM = "from headstart_lab.cli.live_demo import app; app()"


@pytest.fixture
def demo(trained_pair, tmp_path):
    """The running command, and its page."""
    port, log = free_port(), tmp_path / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "--no-browser", "--port", str(port)],
            stdout=file,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )

    def is_up() -> bool:
        assert process.poll() is None, log.read_text()
        return f"http://127.0.0.1:{port}/live" in log.read_text()

    try:
        wait_until(is_up, "the page named", START_S, log)
        yield process, f"http://127.0.0.1:{port}/live", log
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def number_of(text: str) -> float:
    return float(re.search(r"[\d.]+", text)[0])


@pytest.mark.engine
@pytest.mark.timeout(1200)  # two engines
def test_the_page_plays_the_drive_and_compares(demo, browser, tmp_path):
    process, url, log = demo
    pictures = Path(os.environ.get("HEADSTART_SCREENSHOTS", tmp_path))
    for width in (1200, 390):
        with browser.open(url, width=width) as page:
            # It plays by itself.
            page.wait_for(
                "bare.size >= 3 && document.querySelectorAll('#answers li').length >= 4", 180
            )
            page.wait_for(HAS_EVENTS)
            seen = None
            while seen is None:  # at one moment, between two answers: the page goes on
                page.wait_for(BETWEEN)
                seen = page.evaluate(f"{BETWEEN} ? {SEEN} : null")
            page.screenshot(pictures / f"live-{width}.png")
            assert page.complaints == []
            assert all(each.startswith((url[:21], "data:", "blob:")) for each in page.requested)
        answers = {answer["number"]: answer for answer in map(json.loads, seen["answers"])}
        assert all("." in answer["text"] and answer["num_frames"] for answer in answers.values())
        # The pictures beside the words are those of the window that the words are about.
        newest = answers[max(answers)]
        assert seen["said"] == newest["text"].strip()
        assert seen["pictures"] == len(seen["asked"]) == 4
        start_ms, stop_ms = newest["start_us"] / 1000, newest["stop_us"] / 1000
        assert all(start_ms <= at_ms < stop_ms for at_ms in seen["asked"])
        # The promise, on the screen: vLLM alone said the same about the same frames.
        told, ratio = seen["compared"], seen["ratio"]
        assert all(each["is_same"] for each in told)
        assert f"{len(told)} of {len(told)}" in seen["same"]
        waits = [each["wait_s"] / answers[each["number"]]["wait_s"] for each in told]
        shown = number_of(ratio) if "sooner" in ratio else 1 / number_of(ratio)
        assert min(waits) - 0.1 < shown < max(waits) + 0.1
        assert seen["width"] <= width
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    assert process.wait(90) == 0, log.read_text()[-3000:]
    assert "Traceback" not in log.read_text()
