"""The front end: every question to a target passes here, from Python and from HTTP.

It sends the question to a draft model, tags the request for the scheduler, takes in the drafts, and
knows afterwards what became of them. `Headstart` and the server differ only in who hands the
request to vLLM.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from threading import Lock
from typing import Protocol

from headstart.answers.preview import PreviewText, Shown
from headstart.answers.timeline import Span, Stage, Timeline
from headstart.engine.draft_model import RunningDraftModel
from headstart.engine.drafts.messages import Drafted
from headstart.engine.drafts.subscriber import DraftSubscriber
from headstart.engine.engine_client import EngineClient
from headstart.engine.question import Question
from headstart.engine.request_record import RehearsalCounts, RequestRecord
from headstart.engine.request_tags import RequestTags
from headstart.media.change import EventPicture
from headstart.media.events import Events
from headstart.speculation.drafter import StreamKey
from headstart.speculation.fair_table import FairTable

MAX_STREAMS = 4096
FIRST_USUAL = 0.5  # between clips a second apart, on drives of the lab
WEIGHT_OF_LAST = 0.1  # in what is usual on a stream


class SceneChange:
    """The last event picture of each stream, to tell how much the scene has changed since.

    Bounded in streams; no tenant can push out another's. Thread-safe.

    A moving camera's pictures always differ from one clip to the next, so only a difference beyond
    the stream's usual one counts as change.
    """

    def __init__(self) -> None:
        self._last: FairTable[str, tuple[EventPicture, float]] = FairTable(MAX_STREAMS)
        self._lock = Lock()

    def change(self, stream: StreamKey, events: Events | None) -> float:
        """From 0 to 1, how different these events are from the stream's last.

        Without events, or on a new stream, the change is 0.
        """
        if events is None or not len(events):
            return 0.0
        picture = EventPicture.of(events)
        with self._lock:
            last, usual = self._last.get(stream.tenant, stream.stream) or (None, FIRST_USUAL)
            difference = 0.0 if last is None else picture.change_from(last)
            if last is not None:
                usual += WEIGHT_OF_LAST * (difference - usual)
            self._last.put(stream.tenant, stream.stream, (picture, usual))
        return max(0.0, difference - usual)


class AnswerListener(Protocol):
    """Is told of each question, in the front end's event loop. It returns at once."""

    def asked(self, question: Question) -> None:
        """A question is on its way to the engine. May be told of the same one twice."""
        ...

    def answered(self, question: Question, record: RequestRecord) -> None: ...


class FrontEnd:
    """A target's engine and what drafts beside it, as one. Used from one event loop."""

    def __init__(
        self,
        engine: EngineClient,
        drafts: DraftSubscriber | None = None,
        draft_model: RunningDraftModel | None = None,
        listeners: Sequence[AnswerListener] = (),
    ) -> None:
        """Without ``drafts`` no draft is shown before it is verified."""
        self.engine = engine
        self.drafts = drafts
        self.draft_model = draft_model
        self.rehearsals = RehearsalCounts()
        """Of the engine, up to the last answer that came through here."""
        self._listeners = tuple(listeners)
        self._scenes = SceneChange()

    def announce(self, question: Question) -> None:
        """A question will be asked as soon as its clip is decoded: the listeners may begin."""
        for listener in self._listeners:
            listener.asked(question)

    @contextlib.asynccontextmanager
    async def open_request(
        self, question: Question, record: RequestRecord
    ) -> AsyncIterator["OpenRequest"]:
        """Have a question drafted and recorded until the block is left.

        Inside the block the caller generates, with the tags of what this yields. Its clip is the
        stream's last one from now on.
        """
        asking = OpenRequest(question, record, self.engine, await self._change(question))
        with contextlib.ExitStack() as block:
            self.announce(question)
            for listener in self._listeners:
                block.callback(listener.answered, question, record)
            block.enter_context(self.engine.recording(record))
            if self.drafts is not None and question.is_drafted:
                block.enter_context(self.drafts.subscribe(record.request_id, asking.hear))
                if self.draft_model is not None:
                    block.enter_context(self.draft_model.drafting(question, record))
            yield asking
        if record.report is not None:
            self.rehearsals.add(record.report.rehearsals)

    async def _change(self, question: Question) -> float:
        """How different the clip's events are from the stream's last; see `SceneChange`."""
        events = None if question.clip is None else question.clip.events
        if question.stream is None or events is None:
            return 0.0
        # Comparing takes too long for the loop.
        return await asyncio.to_thread(self._scenes.change, question.stream, events)

    def close(self) -> None:
        """End what drafts beside the target, and hear no more drafts."""
        if self.draft_model is not None:
            self.draft_model.close()
        if self.drafts is not None:
            self.drafts.close()


class OpenRequest:
    """One question under way: what the drafters expect, and what is shown of it."""

    def __init__(
        self, question: Question, record: RequestRecord, engine: EngineClient, change: float = 0.0
    ) -> None:
        self.record = record
        self.screen = PreviewText()
        self.on_news: Callable[[], None] = lambda: None
        """Called, if the question wants previews, when a draft has come."""
        self._question = question
        self._change = change
        self._engine = engine
        self._newest: dict[str, Drafted] = {}
        self._loop = asyncio.get_running_loop()

    @property
    def tags(self) -> RequestTags | None:
        """What the request to vLLM must say to the drafters."""
        return self._question.tags(self.record.request_id, self._change)

    def hear(self, drafted: Drafted) -> None:
        """Take a draft, from the listener's thread."""
        self._newest[drafted.draft.source] = drafted
        if self._question.previews:
            with contextlib.suppress(RuntimeError):  # the loop may have ended
                self._loop.call_soon_threadsafe(lambda: self.on_news())

    def previews(self) -> list[Shown]:
        """What the newest drafts add to what is shown, if the question wants to be shown any."""
        shown: list[Shown] = []
        if not self._question.previews:
            return shown
        said = self.record.token_ids
        for drafted in list(self._newest.values()):
            draft = drafted.draft
            if 0 <= draft.start <= len(said) < draft.stop:
                text = self._engine.text([*said[: draft.start], *draft.tokens])
                shown += self.screen.draft(text, draft.source)
        return shown

    def drafter_timeline(self) -> Timeline | None:
        """Of the draft model's engine up to its newest draft; none while none has come.

        The clip was loaded for both models.
        """
        newest = list(self._newest.values())
        stamped = [(drafted.draft, drafted.stamps) for drafted in newest if drafted.stamps]
        if not stamped:
            return None
        last, stamps = max(stamped, key=lambda one: one[0].made_at_s)
        edges = (
            (Stage.PREPROCESS, stamps.asked_s, stamps.preprocessed_s),
            (Stage.VISION, stamps.scheduled_s, stamps.vision_end_s),
            (Stage.PREFILL, stamps.vision_end_s, stamps.first_token_s),
            (Stage.DECODE, stamps.first_token_s, last.made_at_s),
        )
        spans = [Span(stage, start_s, max(start_s, end_s)) for stage, start_s, end_s in edges]
        if self.record.loading is not None:
            spans.append(self.record.loading)
        return Timeline.of(min(span.start_s for span in spans), last.made_at_s, spans)
