"""Where target and drafter meet: one ask goes to both, one answer comes back.

The target is never behind the drafter in any queue. What the drafter says goes to the target's
scheduler directly; here it is only heard, to be shown and to be drawn.
"""

import asyncio
import contextlib
import os
import uuid
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from headstart.drafters.port import StreamKey
from headstart.drafting.preview import PreviewText, Shown
from headstart.drafting.timeline import Span, Stage, Timeline
from headstart.drafting.translation import check_same_spelling
from headstart.engine import wire
from headstart.engine.answer import Answer
from headstart.engine.asking import AskDetails
from headstart.engine.companion import Companion
from headstart.engine.line import OwnedLine
from headstart.engine.listener import Listener, OnDraft
from headstart.engine.model import Model
from headstart.engine.options import EventDrafter, SchedulerOptions, Sources
from headstart.engine.placement import Machine, Placement, place
from headstart.engine.target import Piece, Target, drafting_arguments
from headstart.engine.worth import DrafterWorth
from headstart.media.clip import Clip


@dataclass(frozen=True)
class Question:
    """One question about one clip, as the pair is asked it."""

    clip: Clip
    words: str
    max_tokens: int
    stream: StreamKey | None = None
    change: float = 0.0
    loading: Span | None = None


class Pair:
    """A target, and a drafter beside it where one is wanted."""

    def __init__(
        self,
        target: Model,
        drafter: EventDrafter | None,
        sources: Sources,
        max_draft_tokens: int,
        vllm: Mapping[str, Any],
    ) -> None:
        """Start both; return when both are up. Where one cannot start, neither is left running."""
        with contextlib.ExitStack() as undo:
            placement, arguments = Placement(), dict(vllm)
            self._listener: Listener | None = None
            self._companion: Companion | None = None
            self._worth = DrafterWorth() if sources.abstain else None
            if max_draft_tokens:
                owned = OwnedLine.take()
                undo.callback(owned.close)
                self._listener = Listener(owned.line)
                undo.callback(self._listener.close)
                options = SchedulerOptions(sources, owned.line.directory)
                arguments |= drafting_arguments(max_draft_tokens, options)
                if drafter is not None:
                    seen = Model.checked(drafter.model)
                    check_same_spelling(target.text_pieces(), seen.text_pieces())
                    placement = place(Machine.here(), arguments, drafter.vllm, os.environ)
                    beside = replace(drafter, vllm={**drafter.vllm, **placement.drafter.arguments})
                    self._companion = Companion(
                        beside,
                        seen.view,
                        owned.line,
                        self._listener,
                        placement.drafter.environment,
                    )
                    undo.callback(self._companion.close)
            with _environment(placement.target.environment):
                self.target = Target(target, {**arguments, **placement.target.arguments})
            undo.callback(self.target.shutdown)
            if self._companion is not None:
                self._companion.wait_ready()
            self._ending = undo.pop_all()

    @property
    def companion(self) -> Companion | None:
        """The drafter, where there is one."""
        return self._companion

    async def ask(
        self, question: Question, *, streaming: bool, previews: bool
    ) -> AsyncGenerator[Shown | Answer]:
        """What is shown of the answer as it comes, then the `Answer`. Leaving it cancels all."""
        newest: dict[str, wire.Drafted] = {}
        news, loop = asyncio.Event(), asyncio.get_running_loop()

        def on_draft(drafted: wire.Drafted) -> None:
            newest[drafted.source] = drafted
            if not previews:
                return
            with contextlib.suppress(RuntimeError):  # the loop may have ended
                loop.call_soon_threadsafe(news.set)

        companion = self._companion
        if self._worth is not None and not previews and not self._worth.is_wanted(question.stream):
            companion = None
        with self._hearing(companion, question, on_draft) as ask:
            details = self._details(question, ask, previews)
            pieces = self.target.ask(
                question.clip,
                question.words,
                max_tokens=question.max_tokens,
                streaming=streaming,
                loading=question.loading,
                details=details,
            )
            screen, said = PreviewText(), list[int]()
            happenings = _merged(pieces, news) if previews else pieces
            async with contextlib.aclosing(happenings):
                async for piece in happenings:
                    if isinstance(piece, Answer):
                        for shown in screen.end():
                            yield shown
                        if self._worth is not None and companion is not None:
                            self._worth.judge(question.stream, newest.values(), piece)
                        timeline = drafter_timeline(newest.values(), question.loading)
                        yield replace(piece, drafter_timeline=timeline)
                        return
                    if piece is not None:
                        said += piece.token_ids
                        for shown in screen.confirm(piece.text):
                            yield shown
                    if previews:
                        for drafted in list(newest.values()):
                            for shown in self._shown(drafted, said, screen):
                                yield shown

    def _shown(self, drafted: wire.Drafted, said: list[int], screen: PreviewText) -> list[Shown]:
        stop = drafted.start + len(drafted.tokens)
        if not 0 <= drafted.start <= len(said) < stop:
            return []
        known = self.target.view.num_text_ids
        tokens = [token for token in drafted.tokens if 0 <= token < known]
        return screen.draft(self.target.text(said[: drafted.start] + tokens), drafted.source)

    @contextlib.contextmanager
    def _hearing(
        self, companion: Companion | None, question: Question, on_draft: OnDraft
    ) -> Iterator[str]:
        if companion is not None:
            with companion.drafting(
                question.clip, question.words, question.max_tokens, on_draft
            ) as ask:
                yield ask
        elif self._listener is not None:
            ask = uuid.uuid4().hex
            with self._listener.hearing(ask, on_draft):
                yield ask
        else:
            yield ""

    def _details(self, question: Question, ask: str, previews: bool) -> AskDetails | None:
        if question.stream is None and self._companion is None:
            return None  # nobody drafts for it
        return AskDetails(
            stream=None if question.stream is None else question.stream.stream,
            tenant="" if question.stream is None else question.stream.tenant,
            question=question.words,
            change=question.change,
            ask=ask,
            preview=previews,
        )

    def close(self) -> None:
        """End both engines."""
        self._ending.close()


async def _merged(
    pieces: AsyncGenerator[Piece | Answer], news: asyncio.Event
) -> AsyncGenerator[Piece | Answer | None]:
    """The pieces as they come, and None whenever there is news in between."""
    coming: asyncio.Task[Any] | None = None
    hearing: asyncio.Task[Any] | None = None
    try:
        while True:
            coming = coming or asyncio.create_task(anext(pieces, None))
            hearing = hearing or asyncio.create_task(news.wait())
            await asyncio.wait((coming, hearing), return_when=asyncio.FIRST_COMPLETED)
            if hearing.done():
                hearing = None
                news.clear()
                yield None
            if coming is not None and coming.done():
                piece, coming = coming.result(), None
                if piece is None:
                    return
                yield piece
    finally:
        for task in (coming, hearing):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, StopAsyncIteration):
                    await task
        await pieces.aclose()


def drafter_timeline(drafted: Iterable[wire.Drafted], loading: Span | None) -> Timeline | None:
    """The drafter's stages, as far as it was heard."""
    heard = max(
        (one for one in drafted if one.stamps is not None),
        key=lambda one: one.made_at_s,
        default=None,
    )
    if heard is None or heard.stamps is None:
        return None
    stamps = heard.stamps
    edges = (
        (Stage.PREPROCESS, stamps.asked_s, stamps.preprocessed_s),
        (Stage.VISION, stamps.scheduled_s, stamps.vision_end_s),
        (Stage.PREFILL, stamps.vision_end_s, stamps.first_token_s),
        (Stage.DECODE, stamps.first_token_s, heard.made_at_s),
    )
    spans = [Span(stage, start_s, max(start_s, end_s)) for stage, start_s, end_s in edges]
    if loading is not None:
        spans.append(loading)
    start_s = min(span.start_s for span in spans)
    return Timeline.of(start_s, heard.made_at_s, spans)


@contextlib.contextmanager
def _environment(added: Mapping[str, str]) -> Iterator[None]:
    """vLLM reads its seat from the environment of the process that starts it."""
    before = {name: os.environ.get(name) for name in added}
    os.environ.update(added)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
