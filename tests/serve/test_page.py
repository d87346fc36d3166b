"""The page a server shows in a browser."""

import base64
import json
import os
from pathlib import Path

import pytest

from rig.gstreamer import HAS_SERVER, pipeline, rtsp_server
from rig.live_camera import NUM_SLOTS, said_over_http
from rig.servers import (
    CHAT,
    asking,
)
from tests.serve.registered_camera import CAMERAS, write_film

pytestmark = pytest.mark.engine
HAS_EVENTS = """
  [...$("events").getContext("2d").getImageData(0, 0, $("events").width, $("events").height).data]
    .some((value) => value === 30 || value === 200)
"""


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


@pytest.mark.skipif(not HAS_SERVER, reason="no RTSP server: make rtsp (as root)")
@pytest.mark.parametrize("width", [1200, 390], ids=["desktop", "phone"])
def test_the_live_page_has_the_server_read_a_camera(
    server, north, browser, camera_port, tmp_path, width
):
    film = write_film(tmp_path / "film.mkv")
    mounts = ["/street", pipeline(film, "rtph264pay config-interval=-1")]
    with (
        rtsp_server(mounts, port=str(camera_port)),
        browser.open(f"{server.url}/live", width=width) as page,
    ):
        page.evaluate(
            "$('key').value = 'key-north', $('key').dispatchEvent(new Event('change')),"
            "$('camera').value = 'server', $('camera').dispatchEvent(new Event('change'))"
        )
        page.wait_for("$('state').textContent === 'the server is up'")
        page.evaluate("$('camera').value = 'server', $('window').value = '0.8'")
        page.evaluate("$('address').value = 'rtsp://192.0.2.1/', $('start').click()")
        page.wait_for("$('trouble').textContent.includes('[cameras]')")  # it is not open
        page.evaluate(
            f"$('address').value = 'rtsp://127.0.0.1:{camera_port}/street', $('start').click()"
        )
        page.wait_for("document.querySelectorAll('#answers li').length >= 2")
        page.wait_for("$('picture').width === 96 && $('picture').height === 64")
        page.wait_for(HAS_EVENTS)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        pictures = Path(os.environ.get("HEADSTART_SCREENSHOTS", tmp_path))
        page.screenshot(pictures / f"server-{width}.png")
        rows = page.evaluate(
            "[...document.querySelectorAll('#answers li')].map((row) => row.dataset.answer)"
        )
        numbers = [json.loads(row)["number"] for row in reversed(rows)]
        assert numbers == list(range(1, len(numbers) + 1))
        (camera,) = [each for each in cameras(north) if each["state"] != "ended"]
        assert camera["source"] == f"rtsp://127.0.0.1:{camera_port}/street"
        page.evaluate("$('end').click()")
        page.wait_for("$('state').textContent === 'ended'")
        assert camera["id"] not in [each["id"] for each in cameras(north)]
        # Left without a word, the page ends its camera too.
        page.evaluate("$('start').click()")
        page.wait_for("$('state').textContent === 'live'")
        assert any(each["state"] != "ended" for each in cameras(north))
        refused = ("401", "403", "404")  # without a key, a closed host, no picture yet
        assert [said for said in page.complaints if not any(s in said for s in refused)] == []
        page.evaluate("location.href = 'about:blank'")
        server.wait_until(
            lambda: all(each["state"] == "ended" for each in cameras(north)), "the camera ended"
        )


def cameras(client) -> list[dict]:
    return client.get(CAMERAS).json()["data"]
