"""From a request's body to vLLM's answer, through the front end."""

import asyncio
import contextlib
import time
import traceback
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from headstart.engine.front_end import FrontEnd, OpenRequest
from headstart.engine.request_record import RequestRecord
from headstart.media.clip import Clip
from headstart.media.events import Events
from headstart_server import metrics
from headstart_server.asgi import App
from headstart_server.media.decoder import MediaDecoder
from headstart_server.media.fetcher import EventPart, MediaFetcher
from headstart_server.media.loader import MediaLoader
from headstart_server.parsed_request import ParsedRequest, RequestParser
from headstart_server.prediction import predicted_usage
from headstart_server.quota import Quota
from headstart_server.refusal import RefusedError, bad_request
from headstart_server.request_context import RequestContext
from headstart_server.response import Response, draft_counts, stage_times
from headstart_server.routes import CHAT
from headstart_server.tracing import Tracing

VISION_TIMEOUT_S = 2.0
GATHER_S = 10.0
NUM_THREADS = 4
Result = TypeVar("Result")


class Answering:
    """Used from one event loop only."""

    def __init__(
        self,
        app: App,
        front_end: FrontEnd,
        parser: RequestParser,
        fetcher: MediaFetcher,
        decoder: MediaDecoder,
        loader: MediaLoader,
        quota: Quota,
        model: str,
    ) -> None:
        self._app = app
        self._front_end = front_end
        self._engine = front_end.engine
        self._model = model
        self._parser = parser
        self._fetcher = fetcher
        self._decoder = decoder
        self._loader = loader
        self._quota = quota
        self._tracing = Tracing.configured()
        self._threads = ThreadPoolExecutor(NUM_THREADS, thread_name_prefix="requests")
        self._background: set[asyncio.Task[None]] = set()
        self._later(self._gather_times())

    async def answer(self, context: RequestContext, body: bytes, path: str) -> None:
        """One request to the target."""
        tenant, session = context.tenant, context.header(b"x-session-id") or context.stream
        parsed = await self._in_thread(self._parser.parse, body, tenant, path, session)
        self._front_end.announce(parsed.question)
        if parsed.grammar is not None:
            await self._decoder.check_grammar(tenant, parsed.grammar)
        events = await self._events(tenant, parsed.events)
        question = parsed.question
        if events is not None:
            question = replace(question, clip=Clip(events=events))
        async with self._loader.loaded(tenant, parsed.media) as let_go:
            record = RequestRecord(
                context.request_id,
                received_s=context.received_s,
                loaded_s=time.monotonic(),
                stream=question.stream,
                on_word=let_go,
            )
            async with self._front_end.open_request(question, record) as asking:
                await self._answer(context, parsed, asking, path)

    async def _events(self, tenant: str, part: EventPart | None) -> Events | None:
        if part is None:
            return None
        fetched = await self._in_thread(self._fetcher.events, tenant, part)
        return await self._decoder.events(tenant, fetched, part)

    async def _answer(
        self, context: RequestContext, parsed: ParsedRequest, asking: OpenRequest, path: str
    ) -> None:
        record, prediction = asking.record, parsed.question.prediction
        options = parsed.options if path == CHAT else None
        response = Response(
            context.send,
            context.request_id,
            self._model,
            None if options is None else asking,
            None if prediction is None else partial(_predicted, prediction, record),
        )
        asking.on_news = lambda: self._later(response.show_previews())
        try:
            await self._ask(context, parsed.body(asking.tags), response)
        except Exception as error:
            if record.generate_s or context.started or isinstance(error, RefusedError):
                raise
            # Not yet asked of the engine, so only read: vLLM fails on some fields of a wrong kind.
            context.details |= {"error": repr(error), "trace": traceback.format_exc()}
            raise bad_request("vLLM cannot read this request; check its fields' types") from error
        finally:
            self._quota.charge(context.tenant, record.num_tokens)
            self._note(context, record, None if options is None else response)
        told = None if options is None else draft_counts(record)
        if told is not None and options is not None and options.timeline:
            await self._time_vision(record)
            told["timeline"] = stage_times(record, asking.drafter_timeline())
        await response.finish(told)
        if self._tracing is not None:
            self._later(self._trace(self._tracing, record))

    async def _ask(self, context: RequestContext, body: bytes, response: Response) -> None:
        await self._app(*context.onward(body), response.send)
        if response.wants_retry:
            context.details["asked_again"] = True
            await self._app(*context.onward(body), response.send)

    async def _time_vision(self, record: RequestRecord) -> None:
        """A busy engine is not waited for long: then the tower's time is in the prefill's."""
        with contextlib.suppress(TimeoutError, Exception):
            async with asyncio.timeout(VISION_TIMEOUT_S):
                await self._engine.time_vision(record)

    async def _gather_times(self) -> None:
        """Fetch vLLM's times of the vision tower now and then: it keeps them until then."""
        while True:
            await asyncio.sleep(GATHER_S)
            with contextlib.suppress(Exception):
                await self._engine.gather_times()

    async def _trace(self, tracing: Tracing, record: RequestRecord) -> None:
        if not record.vision_s:
            await self._time_vision(record)
        tracing.tell(record)

    def _note(
        self, context: RequestContext, record: RequestRecord, response: Response | None
    ) -> None:
        metrics.count_answer(record, context.tenant)
        context.details["cached_tokens"] = record.num_cached_tokens
        if record.report is not None:
            context.details["accepted_tokens"] = record.num_accepted
        if response is not None:
            metrics.PREVIEWS.inc(response.num_previews)
            context.details["previews"] = response.num_previews

    async def _in_thread(self, work: Callable[..., Result], *arguments: Any) -> Result:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, work, *arguments)

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside the requests."""
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def close(self) -> None:
        """End what runs beside the requests."""
        for task in self._background:
            task.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._tracing is not None:
            self._tracing.close()


async def _predicted(prediction: tuple[int, ...], record: RequestRecord) -> dict[str, int]:
    # In a thread: a long answer full of repetitions takes a while to compare.
    return await asyncio.to_thread(predicted_usage, prediction, list(record.token_ids))
