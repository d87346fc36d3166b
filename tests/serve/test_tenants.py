"""vLLM's own command with our flags: tenants, events, streams, previews, the drafter, the page."""

import base64
import http.client
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from tests.serve.servers import (
    DRAFTER_ENGINE,
    ENGINE,
    MODEL,
    TIMEOUT_S,
    asking,
    chunks_of,
    content_of,
    free_port,
    running,
    serve_command,
    start,
    toml,
    with_events,
)

pytestmark = pytest.mark.engine

CHAT = "/v1/chat/completions"
UPLOADS = "/v1/headstart/events"
WINDOW = {"start_us": 200_000, "stop_us": 280_000}
MOST = 4
"""Requests at once, of one tenant."""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("tenants")


@pytest.fixture(scope="module")
def server(home, clips, tiny_target, tiny_drafter):
    """Started as `headstart serve --flags` says, by somebody who runs vLLM themselves."""
    (home / "line").mkdir(mode=0o700)
    config, port = home / "headstart.toml", free_port()
    tables = {
        "server": {
            "target": tiny_target,
            "drafter": tiny_drafter,
            "port": port,
            "demo": clips,
            "log": "/dev/full",  # a full disk from the first line on
        },
        "tenants": {"north": ["key-north", "key-north-2"], "south": ["key-south"]},
        "limits": {"max_tenant_requests": MOST, "max_body_bytes": 1 << 20, "drain_s": 100.0},
        "media": {"root": clips},
        "vllm": {**ENGINE, "enable_prompt_tokens_details": True},
        "drafter_vllm": DRAFTER_ENGINE,
    }
    config.write_text(toml(tables))
    told = subprocess.run(
        [sys.executable, *serve_command("--config", str(config), "--flags")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    words = shlex.split(told.replace('"LINE"', json.dumps(str(home / "line"))))
    variables = dict(word.split("=", 1) for word in words[: words.index("python")])
    command = words[words.index("python") + 1 :]
    server = start(command, port, home / "server.log", **variables)
    server.key = "key-north"
    with running(server):
        yield server


@pytest.fixture(scope="module")
def north(server):
    return server.client("key-north")


@pytest.fixture(scope="module")
def south(server):
    return server.client("key-south")


@pytest.fixture
def drafter_up(server, north):
    server.wait_until(lambda: north.get("/ready").json()["drafter"] == "up", "the drafter up", 300)


def test_only_open_routes_are_there(server, north):
    for method, path in (
        ("POST", "/collective_rpc"),
        ("POST", "/sleep"),
        ("POST", "/reset_prefix_cache"),
        ("POST", "/v1/load_lora_adapter"),
        ("POST", "/invocations"),
        ("POST", "/scale_elastic_ep"),
        ("POST", "/start_profile"),
        ("POST", "/v1/responses"),
        ("POST", "/v1/messages"),
        ("POST", "/v1/chat/completions/batch"),
        ("GET", "/docs"),
        ("GET", "/server_info"),
        ("GET", "/v1/chat/completions/"),
        ("GET", "//v1/models"),
        ("GET", "/demo/../etc/passwd"),
        ("GET", "/demo/..%2fetc%2fpasswd"),
    ):
        assert north.request(method, path, json={}).status_code == 404, path
    assert north.get(CHAT).status_code == 405
    open_paths = north.get("/openapi.json").json()["paths"]
    assert CHAT in open_paths
    assert UPLOADS in open_paths
    assert "/v1/responses" not in open_paths


def test_a_key_is_needed_and_none_is_told_apart(server, clips):
    body = asking(clips / "street.mp4", "Who?")
    for key in ("", "wrong", "key-nort"):
        stranger = server.client(key)
        for reply in (stranger.get("/v1/models"), stranger.post(CHAT, json=body)):
            assert reply.status_code == 401
            assert "north" not in reply.text
        assert stranger.get("/").status_code == 200
        assert stranger.get("/health").status_code == 200
        assert stranger.get("/metrics").status_code == 200


def test_tenants_are_not_told_where_the_model_lies(north):
    (model,) = north.get("/v1/models").json()["data"]
    assert (model["id"], model["root"]) == (MODEL, MODEL)


def ask(client, body, **wishes):
    reply = client.post(CHAT, json={**body, "headstart": wishes})
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_a_stream_remembers_its_own_tenants_answers_only(north, south, clips):
    body = asking(clips / "street.mp4", "What is remembered?", max_tokens=40)
    first = ask(north, body, stream="camera")
    again = ask(north, body, stream="camera")
    assert first["choices"] == again["choices"]
    assert again["headstart"]["sources"]["memory"]["accepted_tokens"] > 0
    for client, stream in ((south, "camera"), (north, "another camera")):
        stranger = ask(client, body, stream=stream)
        assert stranger["choices"] == first["choices"]
        assert "memory" not in stranger["headstart"]["sources"]


def test_tenants_share_no_cached_token_and_no_encoded_frame(north, south, clips):
    body = asking(clips / "dusk.mp4", "What is cached?")

    def seen(client):
        """How many tokens were cached, and how many frames were known."""
        before = known_frames(client)
        cached = ask(client, body)["usage"]["prompt_tokens_details"]["cached_tokens"]
        return cached, known_frames(client) - before

    assert seen(north) == (0, 0)
    assert seen(south) == (0, 0)
    for client in (north, south):
        cached, frames = seen(client)
        assert cached > 0
        assert frames > 0


def known_frames(client) -> float:
    """vLLM's count of pictures it had preprocessed before."""
    return sum(
        float(line.split()[-1])
        for line in client.get("/metrics").text.splitlines()
        if line.startswith("vllm:mm_cache_hits_total")
    )


@pytest.mark.parametrize(
    "spoof",
    [
        {},
        {"vllm_xargs": {"headstart": '{"tenant": "north", "stream": "spoofed xargs"}'}},
        {"kv_transfer_params": {"do_remote_prefill": True}},
    ],
    ids=["salt", "xargs", "transfer"],
)
def test_nobody_passes_for_another_tenant(north, south, clips, spoof, request):
    # A salt and a stream of its own, so that nobody's earlier questions are in the way.
    stream = f"spoofed {request.node.callspec.id}"
    body = {**asking(clips / "street.mp4", "Who is it?", max_tokens=40), "cache_salt": stream}
    for _ in range(2):
        expected = ask(north, body, stream=stream)
    assert expected["usage"]["prompt_tokens_details"]["cached_tokens"] > 0
    assert expected["headstart"]["sources"]["memory"]["accepted_tokens"] > 0
    found = ask(south, {**body, **spoof}, stream=stream)
    assert found["choices"] == expected["choices"]
    assert found["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert "memory" not in found["headstart"]["sources"]


def test_a_named_picture_of_another_tenant_is_not_found(north, south, clips):
    body = asking(clips / "street.mp4", "Which?")
    named = json.loads(json.dumps(body))
    named["messages"][0]["content"][0]["uuid"] = "mine"
    assert north.post(CHAT, json=named).status_code == 200
    other = json.loads(json.dumps(body))
    other["messages"][0]["content"][0] = {"type": "video_url", "video_url": None, "uuid": "mine"}
    assert south.post(CHAT, json=other).status_code == 400


def test_events_come_as_data_as_an_upload_and_as_a_file(north, clips, drafter_up):
    recording = clips / "street.npz"
    kept = north.post(UPLOADS, content=recording.read_bytes())
    assert kept.status_code == 201
    picture = north.get(kept.headers["location"])
    assert picture.content.startswith(b"\x89PNG")
    encoded = base64.b64encode(recording.read_bytes()).decode()
    body = asking(clips / "street.mp4", "What do the events say?", max_tokens=40)
    expected = north.post(CHAT, json=body).json()["choices"]
    for url in (
        kept.json()["id"],
        f"data:application/octet-stream;base64,{encoded}",
        recording.as_uri(),
    ):
        answer = ask(north, with_events(body, url=url, **WINDOW), stream=url[:99], timeline=True)
        assert answer["choices"] == expected
    assert north.delete(kept.headers["location"]).status_code == 200
    gone = north.post(CHAT, json=with_events(body, url=kept.json()["id"], **WINDOW))
    assert gone.status_code == 404


def test_an_upload_is_its_tenants_own(north, south, clips):
    kept = north.post(UPLOADS, content=(clips / "street.npz").read_bytes()).json()["id"]
    assert south.get(f"{UPLOADS}/{kept}").status_code == 404
    assert south.delete(f"{UPLOADS}/{kept}").status_code == 404
    body = with_events(asking(clips / "street.mp4", "Whose?"), url=kept, **WINDOW)
    assert south.post(CHAT, json=body).status_code == 404
    assert north.post(CHAT, json=body).status_code == 200


def test_previews_come_before_the_answer_and_never_in_its_content(server, north, clips, drafter_up):
    # Large frames: the drafter, which looks at events only, begins well before the target.
    body = asking(clips / "wide.mp4", "What is previewed?", max_tokens=60, ignore_eos=True)
    expected = north.post(CHAT, json=body).json()["choices"][0]["message"]["content"]
    asked = with_events(body, url=(clips / "street.npz").as_uri(), **WINDOW)
    wishes = {"preview": True, "timeline": True, "stream": "previews"}
    sources: set[str] = set()

    def previewed() -> bool:
        reply = north.post(CHAT, json={**asked, "stream": True, "headstart": wishes})
        chunks = chunks_of(reply.text)
        assert content_of(chunks) == expected
        previews = [c for c in chunks if "preview" in c.get("headstart", {})]
        assert all(c["choices"][0]["delta"] == {"content": ""} for c in previews)
        sources.update(c["headstart"]["source"] for c in previews)
        told = chunks[-1]["headstart"]
        assert told["timeline"]["total_ms"] > 0
        return {"eventgpt", "memory"} <= sources and bool(told["timeline"]["drafter"])

    # A drafter is heard when it has something to say, which an answer does not wait for.
    server.wait_until(previewed, f"previews of both kinds, so far {sources}", 300)


def test_without_its_drafter_the_server_goes_on_and_gets_it_back(server, north, clips, drafter_up):
    body = asking(clips / "street.mp4", "What if it dies?", max_tokens=40)
    expected = north.post(CHAT, json=body).json()["choices"]
    asked = with_events(body, url=(clips / "street.npz").as_uri(), **WINDOW)
    (drafter,) = [
        child for child in server.children() if "drafter_process" in " ".join(child.cmdline())
    ]
    drafter.suspend()
    assert ask(north, asked, stream="stopped")["choices"] == expected
    drafter.resume()
    assert ask(north, asked, stream="resumed")["choices"] == expected
    drafter.kill()
    server.wait_until(lambda: north.get("/ready").json()["drafter"] == "down", "the drafter down")
    ready = north.get("/ready")
    assert ready.status_code == 200
    assert "headstart_drafter_up 0.0" in north.get("/metrics").text
    assert ask(north, asked, stream="killed")["choices"] == expected
    server.wait_until(lambda: north.get("/ready").json()["drafter"] == "up", "it back", 300)
    assert ask(north, asked, stream="back")["choices"] == expected


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
    tokenized = north.post("/tokenize", json=body)
    assert tokenized.status_code == status or kind == "event_url"


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
    statuses, headers = [], []

    def one() -> None:
        reply = server.client().post(CHAT, json=body)
        statuses.append(reply.status_code)
        headers.append(reply.headers)

    threads = [threading.Thread(target=one) for _ in range(5 * MOST)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)
    assert set(statuses) == {200, 429}
    busy = [h for s, h in zip(statuses, headers, strict=True) if s == 429]
    assert all(int(h["retry-after"]) > 0 for h in busy)


def in_flight(client) -> int:
    return int(client.get("/ready").json()["in_flight"])


def tokens_said(client) -> float:
    return sum(
        float(line.split()[-1])
        for line in client.get("/metrics").text.splitlines()
        if line.startswith("vllm:generation_tokens_total")
    )


def test_a_client_that_leaves_is_not_computed_for(server, north, clips):
    body = asking(clips / "street.mp4", "Who left?", max_tokens=340, ignore_eos=True)
    for stream in (True, False):
        before = tokens_said(north)
        leaving = http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT_S)
        content = json.dumps({**body, "stream": stream})
        leaving.request("POST", CHAT, content, {**JSON, "Authorization": "Bearer key-north"})
        server.wait_until(lambda: tokens_said(north) > before, "it under way")  # noqa: B023
        leaving.close()
        server.wait_until(lambda: in_flight(north) == 0, "its place free")
        # Whatever the engine had still to say of it would come with this answer.
        assert north.post(CHAT, json={**body, "max_tokens": 40}).status_code == 200
        assert tokens_said(north) - before < 340


JSON = {"Content-Type": "application/json"}


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


def test_a_full_disk_costs_log_lines_and_no_request(server, north):
    assert north.get("/v1/models").status_code == 200

    def dropped() -> bool:
        text = north.get("/metrics").text
        (line,) = [li for li in text.splitlines() if li.startswith("headstart_log_lines_dropped ")]
        return float(line.split()[-1]) > 0

    server.wait_until(dropped, "lines dropped")


def test_figures_are_on_vllms_own_page(north):
    text = north.get("/metrics").text
    for name in (
        'headstart_accepted_tokens_total{source="memory"}',
        'headstart_drafted_tokens_total{source="memory"}',
        "headstart_saved_passes_total",
        "headstart_fused_answers_total",
        "headstart_answers_total",
        "headstart_drafter_up",
        'headstart_turned_away_total{reason="tenant"}',
        'headstart_stage_seconds_count{stage="prefill"}',
        "vllm:num_requests_running",
    ):
        assert name in text, name
    (remembered,) = [li for li in text.splitlines() if li.startswith("headstart_memory_answers ")]
    assert float(remembered.split()[-1]) > 0


def test_the_dashboard_asks_for_figures_that_exist(north):
    text = north.get("/metrics").text
    dashboard = (Path(__file__).parents[2] / "docs" / "headstart-dashboard.json").read_text()
    asked = {
        name
        for panel in json.loads(dashboard)["panels"]
        for target in panel["targets"]
        for name in re.findall(r"(?:headstart_|vllm:)\w+", target["expr"])
    }
    assert len(asked) > 10
    assert not [name for name in asked if name not in text]


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
        where = os.environ.get("HEADSTART_SCREENSHOTS")
        page.screenshot(
            (tmp_path if where is None else __import__("pathlib").Path(where)) / f"{width}.png"
        )
        # 401 until the key was typed.
        assert [said for said in page.complaints if "401" not in said] == []
        assert all(url.startswith((server.url, "data:", "blob:")) for url in page.requested)


def test_the_documents_examples_run(server, tmp_path):
    """docs/serving.md word for word, against this server."""
    from tests.serve.documented import run_examples

    run_examples(server, tmp_path)


def test_told_to_end_it_finishes_what_is_under_way(server, north, clips):
    """Last: afterwards this server is gone."""
    body = asking(clips / "street.mp4", "What is last?", max_tokens=340, ignore_eos=True)
    expected = content_of(chunks_of(north.post(CHAT, json={**body, "stream": True}).text))
    found: list[str] = []
    asked = {**body, "stream": True, "headstart": {"stream": "never before"}}
    waiting = threading.Thread(
        target=lambda: found.append(server.client().post(CHAT, json=asked).text)
    )
    children = [child.pid for child in server.children()]
    waiting.start()
    server.wait_until(lambda: in_flight(north) >= 1, "it under way")
    server.process.send_signal(signal.SIGTERM)
    waiting.join(TIMEOUT_S)
    assert content_of(chunks_of(found[0])) == expected
    assert server.process.wait(TIMEOUT_S) == 0
    server.wait_until(lambda: not any(map(psutil.pid_exists, children)), "nothing left running")
