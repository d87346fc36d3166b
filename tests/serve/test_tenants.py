"""Tenants of one server: what each may reach, and nothing of the others."""

import pytest

from rig.servers import (
    CHAT,
    MODEL,
    UPLOADS,
    WINDOW,
    ask,
    asking,
    metric,
    with_events,
)

pytestmark = pytest.mark.engine


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
        assert stranger.get("/openapi.json").status_code == 200
        assert stranger.get("/ready").json() == {"ready": True}
        for path in ("/metrics", "/version", "/demo"):
            assert stranger.get(path).status_code == 401, path


def test_an_operator_sees_everything_and_asks_nothing(operator, clips):
    for path in ("/metrics", "/version", "/v1/models", "/ready"):
        assert operator.get(path).status_code == 200, path
    recording = (clips / "street.npz").read_bytes()
    for reply in (
        operator.post(CHAT, json=asking(clips / "street.mp4", "Who?")),
        operator.post(UPLOADS, content=recording),
        operator.delete(f"{UPLOADS}/events-0"),
        operator.get("/demo/street.mp4"),
    ):
        assert reply.status_code == 403
        assert "tenant" in reply.text


def test_tenants_are_not_told_where_the_model_lies(north):
    (model,) = north.get("/v1/models").json()["data"]
    assert (model["id"], model["root"]) == (MODEL, MODEL)


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


def test_tenants_share_no_cached_token_and_no_encoded_frame(north, south, operator, tmp_path):
    from headstart.media.video import Video
    from headstart_lab.street import street_video

    street = street_video(num_frames=16, width=96, height=64)
    Video(street.frames // 7, street.times_us).write(tmp_path / "never shown.mp4")
    body = asking(tmp_path / "never shown.mp4", "What is cached?")

    def seen(client):
        """How many tokens were cached, and how many frames were known."""
        before = known_frames(operator)
        cached = ask(client, body)["usage"]["prompt_tokens_details"]["cached_tokens"]
        return cached, known_frames(operator) - before

    assert seen(north) == (0, 0)
    assert seen(south) == (0, 0)
    for client in (north, south):
        cached, frames = seen(client)
        assert cached > 0
        assert frames > 0


def known_frames(client) -> float:
    """vLLM's count of pictures it had preprocessed before."""
    return metric(client, "vllm:mm_cache_hits_total")


def test_nobody_passes_for_another_tenant(north, south, clips):
    # A salt and a stream of its own, so that nobody's earlier questions are in the way.
    body = {**asking(clips / "street.mp4", "Who is it?", max_tokens=40), "cache_salt": "spoofed"}
    for _ in range(2):
        expected = ask(north, body, stream="spoofed")
    assert expected["usage"]["prompt_tokens_details"]["cached_tokens"] > 0
    assert expected["headstart"]["sources"]["memory"]["accepted_tokens"] > 0
    found = ask(south, body, stream="spoofed")
    assert found["choices"] == expected["choices"]
    assert found["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert "memory" not in found["headstart"]["sources"]


@pytest.mark.parametrize(
    "spoof",
    [
        {"vllm_xargs": {"headstart": '{"tenant": "north", "stream": "spoofed"}'}},
        {"kv_transfer_params": {"do_remote_prefill": True}},
    ],
    ids=["vllm_xargs", "kv_transfer_params"],
)
def test_what_would_pass_for_another_tenant_is_refused_by_name(south, clips, spoof):
    reply = south.post(CHAT, json={**asking(clips / "street.mp4", "Who is it?"), **spoof})
    assert reply.status_code == 400
    assert next(iter(spoof)) in reply.json()["error"]["message"]


@pytest.mark.parametrize("video", [True, False], ids=["with", "without"])
def test_nobody_names_a_picture(north, clips, video):
    body = asking(clips / "street.mp4", "Which?")
    part = body["messages"][0]["content"][0]
    part |= {"uuid": "mine"} if video else {"uuid": "mine", "video_url": None}
    reply = north.post(CHAT, json=body)
    assert reply.status_code == 400
    assert "mine" not in reply.text


def test_an_upload_is_its_tenants_own(north, south, clips):
    kept = north.post(UPLOADS, content=(clips / "street.npz").read_bytes()).json()["id"]
    assert south.get(f"{UPLOADS}/{kept}").status_code == 404
    assert south.delete(f"{UPLOADS}/{kept}").status_code == 404
    body = with_events(asking(clips / "street.mp4", "Whose?"), url=kept, **WINDOW)
    assert south.post(CHAT, json=body).status_code == 404
    assert north.post(CHAT, json=body).status_code == 200
