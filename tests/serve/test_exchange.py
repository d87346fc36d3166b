"""What goes out: previews apart from content, answers untouched, and what is counted and noted."""

import asyncio
import json
import time
from types import SimpleNamespace

import pytest

from headstart.drafting.fate import Fate
from headstart.drafting.timeline import Stage
from headstart.engine.report import Report
from headstart.serve.crowd import Crowd
from headstart.serve.exchange import Exchange
from headstart.serve.guard import ROUTES, find_route
from headstart.serve.logbook import Logbook
from headstart.serve.refusal import RefusedError
from headstart.serve.settings import Limits
from headstart.serve.telling import told
from headstart.serve.watch import Watch


def chunk(text: str) -> bytes:
    return b"data: " + json.dumps({"choices": [{"delta": {"content": text}}]}).encode() + b"\n\n"


def start(kind: bytes, length: int | None = None) -> dict:
    headers = [(b"content-type", kind)]
    if length is not None:
        headers.append((b"content-length", str(length).encode()))
    return {"type": "http.response.start", "status": 200, "headers": headers}


class Sent:
    def __init__(self) -> None:
        self.messages: list[dict] = []

    async def __call__(self, message) -> None:
        self.messages.append(dict(message))

    @property
    def body(self) -> bytes:
        return b"".join(m["body"] for m in self.messages if m["type"] == "http.response.body")

    @property
    def told(self) -> list[dict]:
        events = [e for e in self.body.decode().split("\n\n") if e.startswith("data: {")]
        chunks = [json.loads(event.removeprefix("data: ")) for event in events]
        return [c["headstart"] for c in chunks if "headstart" in c]


def streamed(pieces: list[bytes], previews: dict[int, str]) -> Sent:
    """A stream cut anywhere, with previews before some of its pieces."""
    sent = Sent()

    async def run() -> None:
        exchange = Exchange(sent, "id", "model")
        if -1 in previews:
            await exchange.preview(previews[-1], "eventgpt")
        await exchange.send(start(b"text/event-stream; charset=utf-8"))
        for number, piece in enumerate(pieces):
            if number in previews:
                await exchange.preview(previews[number], "eventgpt")
            await exchange.send({"type": "http.response.body", "body": piece, "more_body": True})
        await exchange.send({"type": "http.response.body", "body": b""})
        await exchange.finish({"passes": 1})
        await exchange.preview("too late", "x")
        await exchange.finish({"passes": 2})

    asyncio.run(run())
    return sent


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_the_answers_chunks_pass_to_the_byte(size):
    whole = chunk("A ") + b": keep-alive\n\n" + chunk("car\u2028.") + b"data: [DONE]\n\n"
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    sent = streamed(pieces, {})
    ours = [e + b"\n\n" for e in sent.body.split(b"\n\n") if b'"headstart"' in e]
    assert len(ours) == 1
    assert sent.body.replace(ours[0], b"") == whole
    assert sent.body.endswith(b"data: [DONE]\n\n")
    assert sent.messages[-1].get("more_body") is not True
    assert sent.told == [{"passes": 1}]


def test_a_preview_is_shown_once_and_not_against_the_answer():
    pieces = [chunk("A "), chunk("car"), chunk(" stops"), b"data: [DONE]\n\n"]
    previews = {-1: "A", 0: "A car", 1: "A car", 2: "A bus", 3: "A car stops here"}
    sent = streamed(pieces, previews)
    assert [t.get("preview") for t in sent.told] == ["A", "A car", "A car stops here", None]


def test_a_whole_answer_gets_one_more_field_and_an_error_none():
    for body, has in (({"choices": ["ü"]}, True), ({"error": {"message": "no"}}, False)):
        sent = Sent()
        content = json.dumps(body).encode()

        async def run(sent=sent, content=content) -> None:
            exchange = Exchange(sent, "id", "model")
            await exchange.send(start(b"application/json", len(content)))
            await exchange.send({"type": "http.response.body", "body": content})
            await exchange.finish({"passes": 1})

        asyncio.run(run())
        headers = dict(sent.messages[0]["headers"])
        assert int(headers[b"content-length"]) == len(sent.body)
        assert json.loads(sent.body) == {**body, **({"headstart": {"passes": 1}} if has else {})}


def watch() -> Watch:
    stats = SimpleNamespace(scheduled_ts=2.0, first_token_ts=3.0, last_token_ts=4.0)
    fates = (
        Fate("memory", 0, (1, 2, 3), 0.0, 2),
        Fate("memory", 3, (4,), 0.0, 0),
        Fate("eventgpt", 4, (5, 6), 0.0, 2),
    )
    return Watch("id", 1.0, 1.2, 1.5, 4.5, 7, stats=stats, report=Report((2, 0, 2), fates))


def test_an_answers_drafts_are_told_by_source():
    found = told(watch())
    assert found["sources"]["memory"] == {"drafted_tokens": 4, "accepted_tokens": 2}
    assert found["sources"]["eventgpt"] == {"drafted_tokens": 2, "accepted_tokens": 2}
    assert (found["accepted_tokens"], found["drafted_tokens"], found["passes"]) == (4, 6, 3)
    assert found["fused"]
    assert told(Watch("id", 1.0))["passes"] is None


def test_the_five_stages_lie_on_one_line():
    timeline = watch().timeline(vision_s=0.4)
    assert [span.stage for span in timeline.spans] == list(Stage)
    assert timeline.duration_s(Stage.VISION) == pytest.approx(0.4)
    assert timeline.duration_s(Stage.PREFILL) == pytest.approx(0.6)
    assert timeline.total_s == pytest.approx(3.5)
    assert Watch("id", 1.0).timeline() is None


def test_spans_reach_opentelemetry():
    trace = pytest.importorskip("opentelemetry.sdk.trace")
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from headstart.serve.tracing import Tracing

    kept = InMemorySpanExporter()
    provider = trace.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    Tracing(provider).tell(watch(), 0.4)
    spans = {span.name: span for span in kept.get_finished_spans()}
    assert set(spans) == {"headstart.answer", *(f"headstart.{stage}" for stage in Stage)}
    whole = spans.pop("headstart.answer")
    assert all(span.parent.span_id == whole.context.span_id for span in spans.values())
    assert whole.end_time - whole.start_time == pytest.approx(3.5e9, rel=1e-6)


def test_nobody_is_sent_spans_unasked(monkeypatch):
    from headstart.serve.tracing import Tracing

    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", raising=False)
    assert not Tracing().on


def test_a_crowd_has_room_for_so_many_and_drains():
    async def run() -> None:
        crowd = Crowd(Limits(max_requests=3, max_tenant_requests=2))
        with crowd.joined("a"), crowd.joined("a"):
            with pytest.raises(RefusedError, match="your requests"), crowd.joined("a"):
                pass
            with crowd.joined("b"):
                with pytest.raises(RefusedError) as caught, crowd.joined("b"):
                    pass
                assert (caught.value.status, caught.value.retry_after_s) == (429, 1)
                assert crowd.size == 3
            assert not await crowd.drain(0.01)
            with pytest.raises(RefusedError, match="stopped"), crowd.joined("b"):
                pass
        assert crowd.size == 0
        assert await crowd.drain(60)

    asyncio.run(run())


def test_a_log_that_cannot_be_written_is_counted(tmp_path):
    lines = tmp_path / "log.jsonl"
    for path in (lines, "/dev/full"):
        logbook = Logbook(path if path is lines else type(lines)(path))
        logbook.note(event="request", odd=object())
        logbook.close()
        deadline = time.monotonic() + 60
        while path is not lines and not logbook.num_dropped:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert json.loads(lines.read_text())["event"] == "request"


def test_the_table_of_routes_is_the_whole_truth():
    assert find_route("POST", "/v1/chat/completions") is not None
    assert find_route("HEAD", "/health") is not None
    for method, path in (
        ("GET", "/v1/chat/completions"),
        ("POST", "/v1/chat/completions/"),
        ("POST", "/V1/chat/completions"),
        ("GET", "/demo/a/b"),
        ("GET", "/demo/"),
        ("DELETE", "/v1/headstart/events/"),
        ("TRACE", "/"),
    ):
        assert find_route(method, path) is None, path
    assert len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)
