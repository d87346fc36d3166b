"""The page a server shows in a browser, and the examples of docs/serving.md."""

import base64
import json
import os
from pathlib import Path

import pytest

from tests.serve.live_camera import NUM_SLOTS, said_over_http
from tests.serve.servers import (
    CHAT,
    asking,
)

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("width", [1200, 390], ids=["desktop", "phone"])
def test_the_page_asks_previews_and_confirms(server, browser, clips, tmp_path, width):
    expected = (
        server.client()
        .post(CHAT, json=asking(clips / "street.mp4", "What is happening?", max_tokens=64))
        .json()["choices"][0]["message"]["content"]
    )
    with browser.open(f"{server.url}/", width=width) as page:
        page.evaluate(
            "document.getElementById('key').value = 'key-north',"
            "document.getElementById('key').dispatchEvent(new Event('change'))"
        )
        page.wait_for("document.getElementById('clip').value === 'dusk'")
        page.evaluate(
            "document.getElementById('clip').value = 'street',"
            "document.getElementById('clip').dispatchEvent(new Event('change'))"
        )
        page.wait_for("!document.getElementById('events').hidden")
        page.wait_for("!document.getElementById('ask').disabled")
        for number in (1, 2):
            page.evaluate("document.getElementById('ask').click()")
            page.wait_for(f"document.getElementById('t-answers').textContent === '{number}'")
            assert page.evaluate("document.getElementById('certain').textContent") == expected
            assert page.evaluate("document.getElementById('unsure').textContent") == ""
        assert page.evaluate("document.querySelectorAll('#gantt rect').length") >= 5
        assert int(page.evaluate("document.getElementById('t-accepted').textContent")) > 0
        assert page.evaluate("document.getElementById('trouble').textContent") == ""
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, "it does not fit"
        page.screenshot(Path(os.environ.get("HEADSTART_SCREENSHOTS", tmp_path)) / f"{width}.png")
        # 401 until the key was typed.
        assert [said for said in page.complaints if "401" not in said] == []
        assert all(url.startswith((server.url, "data:", "blob:")) for url in page.requested)


def test_the_documents_examples_run(server, tmp_path):
    """docs/serving.md word for word, against this server."""
    from tests.serve.documented import run_examples

    run_examples(server, tmp_path)


# What the page sends is kept, so that the target can be asked about the same bytes over HTTP.
KEEP_WHAT_IS_SENT = """
window.sent = [];
const send = WebSocket.prototype.send;
WebSocket.prototype.send = function (message) {
  if (typeof message !== "string")
    window.sent.push([Number(new DataView(message.buffer).getBigInt64(1)),
                      btoa(String.fromCharCode(...message.subarray(9)))]);
  return send.call(this, message);
};
"""


def test_the_example_page_shows_a_camera_and_resumes(server, browser):
    page_file = Path(__file__).parents[2] / "examples" / "live_camera.html"
    with browser.open(page_file.as_uri(), width=390) as page:
        page.evaluate(KEEP_WHAT_IS_SENT)
        fields = {"server": f"ws://127.0.0.1:{server.port}", "key": "key-north"}
        for name, value in fields.items():
            page.evaluate(f"document.getElementById({name!r}).value = {value!r}")
        page.evaluate("document.getElementById('start').click()")
        page.wait_for("document.querySelectorAll('#answers li').length >= 1")
        page.evaluate("live.socket.close()")  # it comes back by itself
        page.wait_for("live.started && live.started.resumed")
        page.wait_for("document.querySelectorAll('#answers li').length >= 3")
        page.evaluate("document.getElementById('end').click()")
        page.wait_for("live.isOver")
        rows = page.evaluate(
            "[...document.querySelectorAll('#answers li')].map((row) => row.dataset.answer)"
        )
        sent = page.evaluate("window.sent")
        assert page.evaluate("document.getElementById('trouble').textContent") == ""
        assert page.complaints == []
        assert [url for url in page.requested if not url.startswith("file:")] == []
    answers = [json.loads(row) for row in reversed(rows)]
    assert [answer["number"] for answer in answers] == list(range(1, len(answers) + 1))
    whole = next(answer for answer in answers if answer["num_frames"] == NUM_SLOTS)
    slots: dict[int, bytes] = {}
    for time_us, content in sent:
        if whole["start_us"] <= time_us < whole["stop_us"]:
            length_us = whole["stop_us"] - whole["start_us"]
            slot = (time_us - whole["start_us"]) * NUM_SLOTS // length_us
            slots.setdefault(slot, base64.b64decode(content))
    expected = said_over_http(server, list(slots.values()), max_tokens=64)
    assert whole["text"] == expected
