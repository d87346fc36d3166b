"""Requests nobody should send, too many of them, and the end: the server stands all of it."""

import base64
import http.client
import json
import signal
import threading
from collections.abc import Iterator

import psutil
import pytest

from rig.live_camera import NUM_SLOTS, LiveCamera, jpegs
from rig.servers import (
    CHAT,
    MAX_TENANT_REQUESTS,
    TIMEOUT_S,
    ask_at_once,
    asking,
    chunks_of,
    content_of,
    metric,
    with_events,
)
from tests.serve.registered_camera import (
    CAMERAS,
    WANTED,
    AnswerReader,
    film_camera,
    write_film,
)

pytestmark = pytest.mark.engine


REFUSED = {
    "another host": ("video_url", "http://127.0.0.1:1/x.mp4", 403),
    "metadata service": ("video_url", "http://169.254.169.254/latest/meta-data", 403),
    "odd scheme": ("video_url", "ftp://example.org/x.mp4", 400),
    "file outside": ("video_url", "file:///etc/passwd", 404),
    "traversal": ("video_url", "file://{root}/../../../etc/passwd", 404),
    "encoded traversal": ("video_url", "file://{root}/%2e%2e/%2e%2e/etc/passwd", 404),
    "directory": ("video_url", "file://{root}", 404),
    "file of a host": ("video_url", "file://elsewhere/etc/passwd", 400),
    "not base64": ("video_url", "data:video/mp4;base64,!!!", 400),
    "not a video": ("video_url", "data:video/mp4;base64,AAAA", 400),
    "events elsewhere": ("event_url", "http://127.0.0.1:1/x.npz", 400),
    "events outside": ("event_url", "file:///etc/passwd", 404),
    "no events": ("event_url", "data:;base64,AAAA", 400),
    "an upload that is none": ("event_url", "events-0", 404),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_open_is_refused_without_a_word_too_much(north, clips, name):
    kind, url, status = REFUSED[name]
    url = url.format(root=clips)
    of_video = asking(clips / "street.mp4", "Where?")
    body = with_events(of_video, url=url) if kind == "event_url" else asking(url, "Where?")
    reply = north.post(CHAT, json=body)
    assert reply.status_code == status, reply.text
    for secret in ("Traceback", "site-packages", "root:", str(clips)):
        assert secret not in reply.text
    # Events have no tokens, so there they are not even looked for.
    found = north.post("/tokenize", json=body).status_code
    assert found == (200 if kind == "event_url" else status)


@pytest.mark.parametrize(
    "field",
    [{"logprobs": True, "top_logprobs": 5}, {"prompt_logprobs": 1}, {"use_beam_search": True}],
    ids=str,
)
def test_a_token_without_a_name_ends_no_server(north, clips, field):
    """This model's vocabulary is padded; vLLM ends when it has to name what is there."""
    reply = north.post(CHAT, json={**asking(clips / "street.mp4", "Which?"), **field})
    assert reply.status_code == 400
    assert "names" in reply.text
    assert north.post(CHAT, json=asking(clips / "street.mp4", "Which?")).status_code == 200


def test_a_pickle_is_not_even_read(north, clips, tmp_path):
    import numpy as np

    np.save(tmp_path / "events.npy", {"x": [1], "y": [1], "t": [1], "p": [1]}, allow_pickle=True)
    encoded = base64.b64encode((tmp_path / "events.npy").read_bytes()).decode()
    body = with_events(asking(clips / "street.mp4", "What?"), url=f"data:;base64,{encoded}")
    reply = north.post(CHAT, json=body)
    assert reply.status_code == 400
    assert "pickled" in reply.text


def test_a_body_too_long_is_refused(server, north):
    reply = north.post(CHAT, content=b" " * (1 << 20) + b"{}")
    assert reply.status_code == 413

    def unending():
        for _ in range(32):
            yield b" " * (1 << 16)

    assert north.post(CHAT, content=unending()).status_code == 413


def test_too_many_at_once_are_told_to_come_back(server, clips):
    body = asking(clips / "street.mp4", "How many?", max_tokens=340, ignore_eos=True)
    replies = ask_at_once(server, body, 5 * MAX_TENANT_REQUESTS)
    assert {reply.status_code for reply in replies} == {200, 429}
    busy = [reply for reply in replies if reply.status_code == 429]
    assert all(int(reply.headers["retry-after"]) > 0 for reply in busy)


def in_flight(client) -> int:
    return int(client.get("/ready").json()["in_flight"])


def tokens_said(client) -> float:
    return metric(client, "vllm:generation_tokens_total")


JSON = {"Content-Type": "application/json"}


def test_a_client_that_leaves_is_not_computed_for(server, north, operator, clips):
    body = asking(clips / "street.mp4", "Who left?", max_tokens=340, ignore_eos=True)
    for stream in (True, False):
        before = tokens_said(operator)
        leaving = http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT_S)
        content = json.dumps({**body, "stream": stream})
        leaving.request("POST", CHAT, content, {**JSON, "Authorization": "Bearer key-north"})
        server.wait_until(lambda: tokens_said(operator) > before, "it under way")  # noqa: B023
        leaving.close()
        server.wait_until(lambda: in_flight(north) == 0, "its place free")
        # Whatever the engine had still to say of it would come with this answer.
        assert north.post(CHAT, json={**body, "max_tokens": 40}).status_code == 200
        assert tokens_said(operator) - before < 340


def test_half_open_connections_keep_nobody_out(server, north, clips):
    import socket

    sockets = []
    for number in range(200):
        half = socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT_S)
        half.sendall(b"POST /v1/chat/completions HTTP/1.1\r\n" if number % 2 else b"")
        sockets.append(half)
    try:
        assert north.post(CHAT, json=asking(clips / "street.mp4", "Still?")).status_code == 200
    finally:
        for half in sockets:
            half.close()


@pytest.fixture
def reader(server, north, camera_port, tmp_path) -> Iterator[AnswerReader]:
    """Of a camera that the server reads."""
    film, source = write_film(tmp_path / "film.mkv"), f"http://127.0.0.1:{camera_port}/"
    with film_camera(film, camera_port, ends=False):
        camera = north.post(CAMERAS, json={**WANTED, "source": source}).json()
        with AnswerReader(server.client(), camera["id"]) as reader:
            yield reader


@pytest.mark.last
def test_told_to_end_it_finishes_what_is_under_way(server, north, clips, reader):
    """Afterwards this server is gone."""
    body = asking(clips / "street.mp4", "What is last?", max_tokens=340, ignore_eos=True)
    expected = content_of(chunks_of(north.post(CHAT, json={**body, "stream": True}).text))
    found: list[str] = []
    asked = {**body, "stream": True, "headstart": {"stream": "never before"}}
    waiting = threading.Thread(
        target=lambda: found.append(server.client().post(CHAT, json=asked).text)
    )
    reader.wait_for("answer")  # its decoder is one of the children
    children = [child.pid for child in server.children()]
    camera, silent = LiveCamera(server), LiveCamera(server)
    scene = "a bus and a car wait here. " * 5
    schema = {"enum": [{"a": scene}]}
    camera.start(stream="last", schema=schema, max_tokens=256, previews=True)
    waiting.start()
    server.wait_until(lambda: in_flight(north) >= 1, "it under way")
    pictures = jpegs(NUM_SLOTS)
    camera.show_window(pictures, 0)
    camera.wait_for("confirmed")
    camera.show_window(pictures[:3], 1)  # not a whole window
    server.process.send_signal(signal.SIGTERM)
    (answer, counts, ended), code = camera.rest_without_words()
    assert json.loads(answer["text"]) == {"a": scene}
    assert counts["windows"]["asked"] == 1, "none that had not ended"
    assert (ended["type"], code) == ("ended", 1001)
    assert list(reader)[-1] == {"type": "ended"}
    (stopped,), code = silent.rest()
    assert (stopped["type"], code) == ("error", 1013)
    waiting.join(TIMEOUT_S)
    assert content_of(chunks_of(found[0])) == expected
    assert server.process.wait(TIMEOUT_S) == 0
    server.wait_until(lambda: not any(map(psutil.pid_exists, children)), "nothing left running")
