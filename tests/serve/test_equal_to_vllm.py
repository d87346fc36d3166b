"""vLLM's plain server and ours asked the same: the same answers; and what a dead engine does."""

import json
import math
from concurrent.futures import ThreadPoolExecutor

import pytest

from rig.servers import (
    MODEL,
    Server,
    asking,
    chunks_of,
    content_of,
    data_url,
    running,
    start,
)

pytestmark = pytest.mark.engine

# Times, random names, and a digest of the settings.
PASSING = {"id", "created", "system_fingerprint", "headstart", "root"}
"""Of a model vLLM lists its path as the root, and ours its name."""


def requests(clips) -> list[tuple[str, str, dict]]:
    """Fifty: about two clips, greedy and sampled, whole and streamed, right and wrong."""
    street, dusk = data_url(clips / "street.mp4"), data_url(clips / "dusk.mp4")
    chat = [
        asking(clip, question, max_tokens=most, stream=stream)
        for clip in (street, dusk)
        for question in ("What is happening?", "Is anyone crossing the road?", "Why?")
        for most, stream in ((1, False), (24, False), (24, True), (9, True))
    ]
    usual = asking(street, "What now?")
    said = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Yes."}]
    variants = [
        {"n": 2, "temperature": 1.0, "seed": 7},
        {"temperature": 1.0, "seed": 3},
        {"temperature": 0.7, "top_p": 0.8, "seed": 4, "stream": True},
        {"min_tokens": 4},
        {"stop": ["e"]},
        {"stream": True, "stream_options": {"include_usage": True}},
        {"frequency_penalty": 1.0},
        {"max_completion_tokens": 5},
        {"ignore_eos": True, "max_tokens": 30},
        {"return_token_ids": True},
        {"messages": [*said, {"role": "user", "content": "And now?"}]},
        {"messages": [{"role": "system", "content": "Be brief."}, *usual["messages"]]},
        {"model": "another"},
        {"messages": []},
        {"temperature": -1},
        {"max_tokens": 10**9},
        {"messages": [{"role": "user", "content": "word " * 3000}]},
        {"messages": "not a list"},
        {"stream": "maybe"},
        {"max_tokens": None},
    ]
    chat += [{**usual, **variant} for variant in variants]
    texts = [
        {"model": MODEL, "prompt": "USER: Hello ASSISTANT:", "max_tokens": 8, "temperature": 0},
        {"model": MODEL, "prompt": ["a", "b"], "max_tokens": 4, "temperature": 0},
        {"model": MODEL, "prompt": "a", "max_tokens": 6, "temperature": 0, "stream": True},
        {"model": "another", "prompt": "a"},
    ]
    return [
        *(("POST", "/v1/chat/completions", body) for body in chat),
        *(("POST", "/v1/completions", body) for body in texts),
        ("POST", "/tokenize", {"model": MODEL, "prompt": "hello"}),
        ("GET", "/v1/models", {}),
    ]


def answer_of(client, method: str, path: str, body: dict) -> tuple[int, object]:
    reply = client.request(method, path, json=body if method == "POST" else None)
    if reply.headers["content-type"].startswith("text/event-stream"):
        return reply.status_code, as_one(chunks_of(reply.text))
    return reply.status_code, stripped(reply.json())


def stripped(value):
    """Without what differs between any two answers."""
    if isinstance(value, dict):
        return {key: stripped(part) for key, part in value.items() if key not in PASSING}
    return [stripped(part) for part in value] if isinstance(value, list) else value


def as_one(chunks: list[dict]) -> dict:
    """A stream's chunks put together: where one ends is a matter of the moment."""
    chunks = [chunk for chunk in chunks if "headstart" not in chunk]
    whole: dict = {"text": {}, "ends": {}, "usage": None, "fields": set(), "model": set()}
    for chunk in chunks:
        whole["fields"] |= set(chunk)
        whole["model"].add(chunk["model"])
        whole["usage"] = chunk.get("usage") or whole["usage"]
        for choice in chunk["choices"]:
            index = choice["index"]
            text = choice["delta"].get("content") if "delta" in choice else choice["text"]
            whole["text"][index] = whole["text"].get(index, "") + (text or "")
            if choice["finish_reason"]:
                whole["ends"][index] = choice["finish_reason"]
    return whole


def same(first, second) -> bool:
    """Equal, but for the last digits of numbers that were computed in another order."""
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, float) and isinstance(second, float):
        return math.isclose(first, second, rel_tol=1e-3, abs_tol=1e-3)
    return type(first) is type(second) and first == second


def test_the_comparison_itself_sees_a_difference():
    assert same({"a": [1, 2.00001]}, {"a": [1, 2.0]})
    assert not same({"a": [1, "x"]}, {"a": [1, "y"]})
    assert not same({"a": 1}, {"a": 1, "b": None})


def test_fifty_requests_are_answered_as_by_vllm(pair, clips):
    plain, ours = (server.client() for server in pair)
    asked = requests(clips)
    assert len(asked) == 50
    for method, path, body in asked:
        expected = answer_of(plain, method, path, body)
        found = answer_of(ours, method, path, body)
        if expected[0] != 200:  # refused by us, in our words
            expected, found = expected[:1], found[:1]
        assert same(list(expected), list(found)), (path, str(body)[-300:], expected, found)


def test_with_drafts_the_answers_are_the_same(pair, clips):
    plain, ours = (server.client() for server in pair)
    greedy = [
        r for r in requests(clips) if r[1].startswith("/v1/chat") and r[2]["temperature"] == 0
    ]
    accepted = 0
    for method, path, body in greedy[:24]:
        expected = answer_of(plain, method, path, body)
        for _ in range(2):
            asked = {**body, "headstart": {"stream": "camera-1"}}
            assert same(list(expected), list(answer_of(ours, method, path, asked)))
        whole = ours.post(path, json={**asked, "stream": False}).json()
        accepted += whole["headstart"]["accepted_tokens"]
    assert accepted > 0, "nothing was drafted right, so nothing was shown"


def test_malformed_bodies_are_refused_with_the_same_status(pair):
    plain, ours = (server.client() for server in pair)
    for content, kind in (
        (b"{", "application/json"),
        (b"[]", "application/json"),
        (b"null", "application/json"),
        (b"", "application/json"),
        (b"{}", "text/plain"),
        (b'{"model": "target", "messages": [{"role": 7}]}', "application/json"),
    ):
        told = [
            client.post("/v1/chat/completions", content=content, headers={"content-type": kind})
            for client in (plain, ours)
        ]
        assert told[0].status_code == told[1].status_code
        assert told[1].json()["error"]["message"]


def test_the_official_client_works_unchanged(pair, clips):
    from openai import NotFoundError, OpenAI

    body = asking(clips / "street.mp4", "What is happening?")
    texts = []
    for server in pair:
        client = OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
        with client:
            whole = client.chat.completions.create(**body)
            streamed = list(client.chat.completions.create(**body, stream=True))
            texts.append(whole.choices[0].message.content)
            texts.append("".join(chunk.choices[0].delta.content or "" for chunk in streamed))
            extended = (
                client.chat.completions.create(
                    **body, stream=True, extra_body={"headstart": {"stream": "c", "preview": True}}
                )
                if server is pair[1]
                else []
            )
            if extended:
                texts.append("".join(chunk.choices[0].delta.content or "" for chunk in extended))
            with pytest.raises(NotFoundError):
                client.chat.completions.create(**{**body, "model": "another"})
            assert [model.id for model in client.models.list()] == [MODEL]
    assert len(texts) == 5
    assert len(set(texts)) == 1


def test_what_the_client_did_not_ask_for_is_not_sent(pair, clips):
    ours = pair[1].client()
    body = asking(clips / "street.mp4", "What is happening?")
    assert "headstart" not in ours.post("/v1/chat/completions", json=body).json()
    streamed = ours.post("/v1/chat/completions", json={**body, "stream": True})
    assert not any("headstart" in chunk for chunk in chunks_of(streamed.text))


def test_the_log_has_a_line_a_request(pair, pair_home, clips):
    ours = pair[1].client()
    reply = ours.post("/v1/chat/completions", json=asking(clips / "street.mp4", "And?"))
    name = reply.headers["x-request-id"]
    assert reply.json()["id"] == f"chatcmpl-{name}"

    def lines() -> list[dict]:
        return [
            json.loads(line) for line in (pair_home / "requests.jsonl").read_text().splitlines()
        ]

    pair[1].wait_until(lambda: any(line.get("request_id") == name for line in lines()), "a line")
    (line,) = [line for line in lines() if line.get("request_id") == name]
    assert (line["status"], line["path"]) == (200, "/v1/chat/completions")
    assert line["ms"] > 0


@pytest.mark.last
def test_a_dead_engine_ends_requests_cleanly_and_the_server_with_it(
    pair, clips, ours_command, pair_home
):
    """Afterwards this server is gone; started again, it answers as before."""
    plain, ours = pair
    body = asking(clips / "street.mp4", "What is happening?", max_tokens=400, ignore_eos=True)
    expected = content_of(chunks_of(stream(plain, body)))
    with ThreadPoolExecutor(4) as threads:
        before = ours.client().get("/metrics").text
        waiting = [threads.submit(ended, ours, {**body, "stream": s}) for s in (True, False)]
        ours.wait_until(lambda: running_requests(ours) >= 2, f"two under way {before[-200:]}")
        ours.engine().kill()
        # A second or two on a quiet machine; vLLM's own time limits are much longer.
        results = [result.result(timeout=60.0) for result in waiting]
    for result in results:
        assert "Traceback" not in result["text"]
        assert "/site-packages/" not in result["text"]
    assert results[0]["status"] == 200
    assert '"error"' in results[0]["text"]
    assert results[1]["status"] == 503
    assert "engine has ended" in results[1]["text"]
    assert ours.process.wait(60) == 1, "started again by whoever watches it, it must end with 1"

    again = start(ours_command(ours.port), ours.port, pair_home / "again.log")
    with running(again):
        assert content_of(chunks_of(stream(again, body))) == expected


def stream(server: Server, body: dict) -> str:
    return server.client().post("/v1/chat/completions", json={**body, "stream": True}).text


def ended(server: Server, body: dict) -> dict:
    reply = server.client().post("/v1/chat/completions", json=body)
    return {"status": reply.status_code, "text": reply.text}


def running_requests(server: Server) -> float:
    text = server.client().get("/metrics").text
    return sum(
        float(line.split()[-1])
        for line in text.splitlines()
        if line.startswith("vllm:num_requests_running")
    )
