"""Where target and drafter meet: one ask goes to both, one answer comes back.

The target is never behind the drafter in any queue. What the drafter says goes to the target's
scheduler directly; here it is only heard, to be shown and to be drawn.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import replace
from typing import Any

from headstart.drafting.preview import PreviewText, Shown
from headstart.engine import wire
from headstart.engine.answer import Answer
from headstart.engine.asking import AskDetails
from headstart.engine.drafter_timeline import drafter_timeline
from headstart.engine.listener import OnDraft
from headstart.engine.model import Model
from headstart.engine.options import EventDrafter, Sources
from headstart.engine.placement import Seat, few_kernels
from headstart.engine.question import Question
from headstart.engine.sidecar import Sidecar
from headstart.engine.target import Piece, Target
from headstart.engine.worth import DrafterWorth


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
            self.sidecar: Sidecar | None = None
            self._worth = DrafterWorth() if drafter is not None and sources.abstain else None
            arguments, seat = vllm, Seat()
            if max_draft_tokens:
                self.sidecar = Sidecar(target, drafter, sources, max_draft_tokens, vllm)
                undo.callback(self.sidecar.close)
                arguments, seat = self.sidecar.arguments, self.sidecar.seat
            # Without drafts vLLM is left as it is: what others are compared with.
            kernels = few_kernels(os.environ) if max_draft_tokens else Seat()
            with kernels.taken(), seat.taken():
                self.target = Target(target, {**arguments, **seat.arguments})
            undo.callback(self.target.shutdown)
            if self.sidecar is not None:
                self.sidecar.wait_ready()
            self._ending = undo.pop_all()

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

        # Whoever wants to see drafts wants them whether they pay or not. The drafter speaks
        # prose, of which no schema lets a word through.
        free = question.schema is None
        worth = None if previews or question.stream is None or not free else self._worth
        wanted = free and (worth is None or worth.is_wanted(question.stream))
        with self._drafting(question, on_draft, wanted) as ask:
            details = self._details(question, ask, previews)
            pieces = self.target.ask(
                question.clip,
                question.words,
                max_tokens=question.max_tokens,
                streaming=streaming,
                loading=question.loading,
                schema=question.schema,
                details=details,
            )
            screen, said = PreviewText(), list[int]()
            happenings = _merged(pieces, news) if previews else pieces
            async with contextlib.aclosing(happenings):
                async for piece in happenings:
                    if isinstance(piece, Answer):
                        for shown in screen.end():
                            yield shown
                        if worth is not None and wanted:
                            worth.judge(question.stream, piece)
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
    def _drafting(self, question: Question, on_draft: OnDraft, wanted: bool) -> Iterator[str]:
        if self.sidecar is None:
            yield ""
            return
        with self.sidecar.drafting(
            question.clip, question.words, question.max_tokens, on_draft, wanted
        ) as ask:
            yield ask

    def _details(self, question: Question, ask: str, previews: bool) -> AskDetails | None:
        beside = None if self.sidecar is None else self.sidecar.companion
        if question.stream is None and beside is None:
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
