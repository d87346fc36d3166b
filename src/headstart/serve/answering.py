"""From a request's body to vLLM's answer, with the drafters at work beside it."""

import asyncio
import contextlib
import time
import traceback
from collections.abc import Coroutine
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

from headstart.engine.asking import AskDetails
from headstart.engine.drafter_timeline import drafter_timeline
from headstart.engine.scenes import Scenes
from headstart.engine.wire import Drafted
from headstart.engine.worth import DrafterWorth
from headstart.media.events import Events
from headstart.serve import figures
from headstart.serve.chat import Asked, Reading
from headstart.serve.decoding import Decoding
from headstart.serve.drafter import Drafter
from headstart.serve.exchange import Exchange
from headstart.serve.fetching import EventPart, Fetching, check_recording, suffix_of
from headstart.serve.guard import CHAT
from headstart.serve.library import Library
from headstart.serve.loading import Loading
from headstart.serve.passage import Passage
from headstart.serve.prediction import predicted_usage
from headstart.serve.quota import Quota
from headstart.serve.refusal import App, RefusedError, Send, bad_request
from headstart.serve.second_chance import SecondChance
from headstart.serve.settings import Settings
from headstart.serve.telling import told, told_times
from headstart.serve.tracing import Tracing
from headstart.serve.usage import UsageDetails
from headstart.serve.watch import Watch, WatchedEngine

VISION_TIMEOUT_S = 2.0
HOUSEKEEPING_S = 10.0


class Answering:
    """Used from one event loop only."""

    def __init__(
        self,
        app: App,
        settings: Settings,
        engine: WatchedEngine,
        drafter: Drafter,
        reading: Reading,
        decoding: Decoding,
        quota: Quota,
        tokenizer: Any,
        model: str,
    ) -> None:
        self._app = app
        self._engine = engine
        self._drafter = drafter
        self._tokenizer = tokenizer
        self._model = model
        self._has_drafter = settings.drafter is not None
        self.library = Library(settings.limits)
        self._fetching = Fetching(settings, self.library)
        self._reading = reading
        self._decoding = decoding
        self._loading = Loading(self._fetching, decoding, settings.limits)
        figures.MEDIA_BYTES.set_function(lambda: self._loading.num_bytes)
        self._quota = quota
        self._tracing = Tracing()
        self._scenes = Scenes()
        self._worth = DrafterWorth()
        self._background: set[asyncio.Task[None]] = set()
        self.later(self.keep_house())

    async def answer(self, passage: Passage, body: bytes, threads: Executor, path: str) -> None:
        """One request to the target."""
        loop = asyncio.get_running_loop()
        session = passage.header(b"x-session-id")
        asked = await loop.run_in_executor(
            threads, self._reading.read, body, passage.tenant, path, session
        )
        if asked.grammar is not None:
            await self._decoding.check_grammar(passage.tenant, asked.grammar)
        events = await self._events(passage.tenant, asked.events, threads)
        async with self._loading.loaded(passage.tenant, asked.media) as let_go:
            stream = None if asked.details is None else asked.details.stream_key
            times = passage.received_s, time.monotonic()
            watch = Watch(passage.request_id, *times, stream=stream, on_word=let_go)
            await self._answer(passage, asked, events, path, watch)

    async def _events(
        self, tenant: str, part: EventPart | None, threads: Executor
    ) -> Events | None:
        if part is None:
            return None
        loop = asyncio.get_running_loop()
        fetched = await loop.run_in_executor(threads, self._fetching.events, tenant, part)
        return await self._decoding.events(tenant, fetched, part)

    async def _answer(
        self, passage: Passage, asked: Asked, events: Events | None, path: str, watch: Watch
    ) -> None:
        exchange = None
        if path == CHAT and asked.wishes is not None:
            exchange = Exchange(passage.send, passage.request_id, self._model)
        self._engine.begin(watch)
        try:
            if asked.details is None:
                await self._ask(passage, asked.plain(), passage.send)
            else:
                await self._ask_with_drafts(passage, asked, asked.details, events, watch, exchange)
        except Exception as error:
            if watch.generate_s or passage.started or isinstance(error, RefusedError):
                raise
            # Not yet asked of the engine, so only read: vLLM fails on some fields of a wrong kind.
            passage.details |= {"error": repr(error), "trace": traceback.format_exc()}
            raise bad_request("vLLM cannot read this request; check its fields' types") from error
        finally:
            self._engine.end(watch)
            self._quota.charge(passage.tenant, watch.num_tokens)
            self._note(passage, watch, exchange)
        if exchange is not None:
            content = told(watch)
            if asked.wishes is not None and asked.wishes.timeline:
                content["timeline"] = await self._times(watch)
            await exchange.finish(content)
        if self._tracing.on:
            self.later(self._trace(watch))

    async def _ask_with_drafts(
        self,
        passage: Passage,
        asked: Asked,
        details: AskDetails,
        events: Events | None,
        watch: Watch,
        exchange: Exchange | None,
    ) -> None:
        stream = watch.stream
        if stream is not None:
            # Memory is trusted less the more the scene has changed.
            details = replace(details, change=self._scenes.change(stream, events))
        # Whoever wants to see drafts wants them whether they pay or not.
        previews = asked.wishes is not None and asked.wishes.preview
        judged = stream is not None and events is not None and not previews and self._drafter.is_up
        wanted = not judged or self._worth.is_wanted(stream)
        hearing = _Hearing(self, watch, exchange if previews else None)
        send = exchange.send if exchange else passage.send
        if (expected := asked.prediction) is not None:
            send = UsageDetails(send, lambda: _predicted(expected, watch)).send
        with self._drafter.drafting(
            events if wanted else None, details.question, asked.max_tokens, hearing.on_draft
        ) as ask:
            await self._ask(passage, asked.told(details, ask), send)
        watch.drafter = drafter_timeline(hearing.newest.values(), None)
        if judged and wanted and (answer := watch.answer()) is not None:
            self._worth.judge(stream, answer)

    async def _ask(self, passage: Passage, body: bytes, send: Send) -> None:
        chance = SecondChance(send)
        await self._app(*passage.onward(body), chance.send)
        if chance.wanted:
            passage.details["asked_again"] = True
            await self._app(*passage.onward(body), chance.send)

    def keep(self, tenant: str, body: bytes, format_name: str | None) -> str:
        """Keep an uploaded recording."""
        suffix = suffix_of(format_name)
        check_recording(body, suffix)
        name = self.library.add(tenant, body, suffix)
        figures.UPLOAD_BYTES.set(self.library.num_bytes)
        return name

    async def film(self, tenant: str, name: str, threads: Executor) -> bytes:
        """An uploaded recording as a picture."""
        loop = asyncio.get_running_loop()
        fetched = await loop.run_in_executor(threads, self._fetching.upload, tenant, name)
        return await self._decoding.film(tenant, fetched)

    def spell(self, watch: Watch, drafted: Drafted) -> str:
        """The whole answer, as somebody expects it."""
        tokens = [*watch.token_ids[: drafted.start], *drafted.tokens]
        return str(self._tokenizer.decode(tokens, skip_special_tokens=True))

    async def _times(self, watch: Watch) -> dict[str, Any] | None:
        timeline = watch.timeline(await self._vision_s(watch))
        if timeline is None:
            return None
        return told_times(watch, timeline)

    async def _vision_s(self, watch: Watch) -> float:
        """A busy engine is not waited for long: then the tower's time is in the prefill's."""
        with contextlib.suppress(TimeoutError, Exception):
            async with asyncio.timeout(VISION_TIMEOUT_S):
                return await self._engine.vision_s(watch)
        return 0.0

    async def keep_house(self) -> None:
        """Throw away, now and then, what vLLM keeps for people who ask about times."""
        while True:
            await asyncio.sleep(HOUSEKEEPING_S)
            with contextlib.suppress(Exception):  # the next turn will do
                await self._engine.gather_times()
            figures.DRAFTER_UP.set(self._drafter.is_up)

    async def _trace(self, watch: Watch) -> None:
        self._tracing.tell(watch, await self._vision_s(watch))

    def _note(self, passage: Passage, watch: Watch, exchange: Exchange | None) -> None:
        figures.count_answer(watch, passage.tenant)
        figures.DRAFTER_UP.set(self._drafter.is_up)
        passage.details["cached_tokens"] = watch.num_cached_tokens
        if watch.report is not None:
            passage.details["accepted_tokens"] = watch.num_accepted
        if exchange is not None:
            figures.PREVIEWS.inc(exchange.num_previews)
            passage.details["previews"] = exchange.num_previews

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside the requests."""
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    @property
    def engine_is_dead(self) -> bool:
        """Whether the target's engine is gone."""
        return bool(self._engine.errored)

    async def engine_is_healthy(self) -> bool:
        """Whether the target's engine has not ended."""
        try:
            await self._engine.check_health()
        except Exception:
            return False
        return True

    @property
    def decoders_state(self) -> str:
        """For people: up, or down while they are started (again)."""
        return "up" if self._decoding.is_up else "down"

    @property
    def drafter_state(self) -> str:
        """For people: none, up or down."""
        if not self._has_drafter:
            return "none"
        figures.DRAFTER_UP.set(self._drafter.is_up)
        return "up" if self._drafter.is_up else "down"

    def close(self) -> None:
        """End what is beside the target."""
        for task in self._background:
            task.cancel()
        self._drafter.close()
        self.library.close()
        self._tracing.close()


async def _predicted(expected: tuple[int, ...], watch: Watch) -> dict[str, int]:
    # In a thread: a long answer full of repetitions takes a while to compare.
    return await asyncio.to_thread(predicted_usage, expected, list(watch.token_ids))


class _Hearing:
    """The drafts for one request, as they are heard from another thread."""

    def __init__(self, answering: Answering, watch: Watch, exchange: Exchange | None) -> None:
        self._answering = answering
        self._watch = watch
        self._exchange = exchange
        self._loop = asyncio.get_running_loop()
        self.newest: dict[str, Drafted] = {}

    def on_draft(self, drafted: Drafted) -> None:
        """Called by the listener's thread."""
        self.newest[drafted.source] = drafted
        if self._exchange is not None:
            with contextlib.suppress(RuntimeError):  # the loop is gone: so is the client
                self._loop.call_soon_threadsafe(self._show, drafted)

    def _show(self, drafted: Drafted) -> None:
        if self._exchange is not None and drafted.start <= len(self._watch.token_ids):
            text = self._answering.spell(self._watch, drafted)
            self._answering.later(self._exchange.preview(text, drafted.source))
