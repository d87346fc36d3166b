"""Events beside a video: drafts and previews of the drafter, which may go and come back."""

import base64

import pytest

from rig.servers import (
    CHAT,
    UPLOADS,
    WINDOW,
    ask,
    asking,
    chunks_of,
    content_of,
    with_events,
)

pytestmark = pytest.mark.engine


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


def test_without_its_drafter_the_server_goes_on_and_gets_it_back(
    server, north, operator, clips, drafter_up
):
    body = asking(clips / "street.mp4", "What if it dies?", max_tokens=40)
    expected = north.post(CHAT, json=body).json()["choices"]
    asked = with_events(body, url=(clips / "street.npz").as_uri(), **WINDOW)
    (drafter,) = [
        child
        for child in server.children()
        if "headstart_events.beside.process" in " ".join(child.cmdline())
    ]
    drafter.suspend()
    assert ask(north, asked, stream="stopped")["choices"] == expected
    drafter.resume()
    assert ask(north, asked, stream="resumed")["choices"] == expected
    drafter.kill()
    server.wait_until(lambda: north.get("/ready").json()["drafter"] == "down", "the drafter down")
    ready = north.get("/ready")
    assert ready.status_code == 200
    assert "headstart_drafter_up 0.0" in operator.get("/metrics").text
    assert ask(north, asked, stream="killed")["choices"] == expected
    server.wait_until(lambda: north.get("/ready").json()["drafter"] == "up", "it back", 300)
    assert ask(north, asked, stream="back")["choices"] == expected
