"""What goes out: previews apart from content, answers untouched, and what is counted and noted."""

import asyncio
import json
import os
from dataclasses import replace
from types import SimpleNamespace

import pytest

from headstart.answers.preview import PreviewText
from headstart.answers.timeline import Stage
from headstart.engine.request_record import Report, RequestRecord
from headstart.speculation.draft import Draft, Verdict
from headstart_server.access_log import AccessLog
from headstart_server.admission import RequestsInFlight
from headstart_server.limits import Limits
from headstart_server.refusal import RefusedError
from headstart_server.response import Response, draft_counts
from headstart_server.routes import ROUTES, find_route
from rig.waiting import wait_until


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


class Drafts:
    """The front end's side of a response: drafts of the whole answer, as they come."""

    def __init__(self) -> None:
        self.screen = PreviewText()
        self.newest = ""

    def previews(self) -> list:
        return self.screen.draft(self.newest, "eventgpt")


def streamed(pieces: list[bytes], previews: dict[int, str]) -> Sent:
    """A stream cut anywhere, with previews before some of its pieces."""
    sent, drafts = Sent(), Drafts()

    async def run() -> None:
        response = Response(sent, "id", "model", drafts)

        async def draft(text: str) -> None:
            drafts.newest = text
            await response.show_previews()

        if -1 in previews:
            await draft(previews[-1])
        await response.send(start(b"text/event-stream; charset=utf-8"))
        for number, piece in enumerate(pieces):
            if number in previews:
                await draft(previews[number])
            await response.send({"type": "http.response.body", "body": piece, "more_body": True})
        await response.send({"type": "http.response.body", "body": b""})
        await response.finish({"passes": 1})
        await draft(drafts.screen.confirmed + " too late")
        await response.finish({"passes": 2})

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
            response = Response(sent, "id", "model", Drafts())
            await response.send(start(b"application/json", len(content)))
            await response.send({"type": "http.response.body", "body": content})
            await response.finish({"passes": 1})

        asyncio.run(run())
        headers = dict(sent.messages[0]["headers"])
        assert int(headers[b"content-length"]) == len(sent.body)
        assert json.loads(sent.body) == {**body, **({"headstart": {"passes": 1}} if has else {})}


def recorded(**more) -> RequestRecord:
    stats = SimpleNamespace(scheduled_ts=2.0, first_token_ts=3.0, last_token_ts=4.0)
    verdicts = (
        Verdict(Draft((1, 2, 3), "memory", 0.0), 2),
        Verdict(Draft((4,), "memory", 0.0, 3), 0),
        Verdict(Draft((5, 6), "eventgpt", 0.0, 4), 2),
    )
    record = RequestRecord("id", 1.0, 1.2, generate_s=1.5, end_s=4.5, num_cached_tokens=7)
    return replace(record, stats=stats, report=Report((2, 0, 2), verdicts), **more)


def test_an_answers_drafts_are_told_by_source():
    found = draft_counts(recorded())
    assert found["sources"]["memory"] == {"drafted_tokens": 4, "accepted_tokens": 2}
    assert found["sources"]["eventgpt"] == {"drafted_tokens": 2, "accepted_tokens": 2}
    assert (found["accepted_tokens"], found["drafted_tokens"], found["passes"]) == (4, 6, 3)
    assert found["fused"]
    assert draft_counts(RequestRecord("id", 1.0, 1.0))["passes"] is None


def test_the_five_stages_lie_on_one_line():
    timeline = recorded(vision_s=0.4).timeline()
    assert [span.stage for span in timeline.spans] == list(Stage)
    assert timeline.duration_s(Stage.VISION) == pytest.approx(0.4)
    assert timeline.duration_s(Stage.PREFILL) == pytest.approx(0.6)
    assert timeline.total_s == pytest.approx(3.5)
    assert RequestRecord("id", 1.0, 1.0).timeline() is None


def test_a_vision_tower_that_seems_to_outlast_the_prefill_is_cut_at_the_first_token():
    timeline = recorded(vision_s=7.0).timeline()
    assert timeline.duration_s(Stage.VISION) == pytest.approx(1.0)
    assert timeline.duration_s(Stage.PREFILL) == 0.0


def test_without_a_clip_to_read_nothing_was_loaded():
    timeline = recorded(loaded_s=1.0).timeline()
    assert Stage.LOAD not in {span.stage for span in timeline.spans}
    assert timeline.total_s == pytest.approx(3.5)


def test_spans_reach_opentelemetry():
    trace = pytest.importorskip("opentelemetry.sdk.trace")
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from headstart_server.tracing import Tracing

    kept = InMemorySpanExporter()
    provider = trace.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    Tracing(provider).tell(recorded(vision_s=0.4))
    spans = {span.name: span for span in kept.get_finished_spans()}
    assert set(spans) == {"headstart.answer", *(f"headstart.{stage}" for stage in Stage)}
    whole = spans.pop("headstart.answer")
    assert all(span.parent.span_id == whole.context.span_id for span in spans.values())
    assert whole.end_time - whole.start_time == pytest.approx(3.5e9, rel=1e-6)


def test_nobody_is_sent_spans_unasked(monkeypatch):
    from headstart_server.tracing import Tracing

    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", raising=False)
    assert Tracing.configured() is None


def test_so_many_requests_are_admitted_and_then_drained():
    async def run() -> None:
        requests = RequestsInFlight(Limits(max_requests=3, max_tenant_requests=2))
        with requests.admit("a"), requests.admit("a"):
            with pytest.raises(RefusedError, match="your requests"), requests.admit("a"):
                pass
            with requests.admit("b"):
                with pytest.raises(RefusedError) as caught, requests.admit("b"):
                    pass
                assert (caught.value.status, caught.value.retry_after_s) == (429, 1)
                assert requests.num == 3
            assert not await requests.drain(0.01)
            with pytest.raises(RefusedError, match="stopped"), requests.admit("b"):
                pass
        assert requests.num == 0
        assert await requests.drain(60)

    asyncio.run(run())


def test_a_log_that_cannot_be_written_is_counted(tmp_path):
    lines = tmp_path / "log.jsonl"
    for path in (lines, "/dev/full"):
        access_log = AccessLog(path if path is lines else type(lines)(path))
        access_log.note(event="request", odd=object())
        access_log.close()
        if path is not lines:
            wait_until(lambda log=access_log: log.num_dropped)
    assert json.loads(lines.read_text())["event"] == "request"


def test_nobody_else_may_read_the_access_log(tmp_path):
    file = tmp_path / "log"
    before = os.umask(0)
    try:
        log = AccessLog(file)
        log.note(event="up")
        log.close()
    finally:
        os.umask(before)
    assert file.stat().st_mode & 0o777 == 0o600
    again = AccessLog(file)
    again.note(event="down")
    again.close()
    assert [json.loads(line)["event"] for line in file.read_text().splitlines()] == ["up", "down"]


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
