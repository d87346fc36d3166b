"""`Headstart`: ask a target about a clip.

with Headstart("path/or/name/of/a/video-llava", drafter="path/or/name/of/an/eventgpt") as headstart:
    front = headstart.session("front camera")
    answer = front.ask(ClipFiles("street.mp4", "street.raw"), "What is happening?")
    print(answer.text)
"""

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from headstart.drafters.port import StreamKey
from headstart.drafting.preview import Confirmed, Preview, Retracted
from headstart.drafting.timeline import Span, Stage
from headstart.engine.answer import Answer
from headstart.engine.installation import require_engine
from headstart.engine.model import Model
from headstart.engine.options import EventDrafter, Sources
from headstart.engine.question import Question, schema_text
from headstart.engine.scenes import Scenes
from headstart.errors import DraftingError
from headstart.media.clip import Clip, ClipFiles
from headstart.media.events import Events
from headstart.media.video import Video

Askable = Clip | ClipFiles | Video | Events | str | Path
"""A path is what the target makes of a single file: a video, or a recording of events."""
Result = TypeVar("Result")


class Headstart:
    """A target engine and everything that gets it a head start.

    Takes as long to build as vLLM takes to load the models, and owns vLLM's processes until
    `close`. May be asked from several threads and event loops at once; vLLM batches what runs
    together.
    """

    def __init__(
        self,
        target: str | Path,
        *,
        drafter: EventDrafter | str | Path | None = None,
        sources: Sources = Sources(),  # noqa: B008 - frozen
        max_draft_tokens: int = 32,
        vllm: Mapping[str, Any] | None = None,
    ) -> None:
        """Load ``target``; ``vllm`` holds any of vLLM's own engine arguments, by its names.

        Sessions draft from what the target said before, and every ask from what ``drafter`` sees
        in the clip's events, ``max_draft_tokens`` at a time; with 0, vLLM's scheduler is left as
        it is.
        """
        require_engine()
        if isinstance(drafter, str | Path):
            drafter = EventDrafter(drafter)
        if max_draft_tokens < 0 or (drafter is not None and not max_draft_tokens):
            raise DraftingError(
                f"max_draft_tokens is {max_draft_tokens}: give how many tokens of a draft to"
                " verify at once, or 0 and no drafter"
            )
        from headstart.engine.pair import Pair  # needs what the engine brings

        model = Model.checked(target)
        self._pair = Pair(model, drafter, sources, max_draft_tokens, vllm or {})
        self._scenes = Scenes()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def ask(
        self,
        clip: Askable,
        question: str,
        *,
        max_tokens: int = 256,
        schema: Mapping[str, Any] | None = None,
        on_text: Callable[[str], None] | None = None,
        stream: StreamKey | None = None,
    ) -> Answer:
        """The target's greedy answer; ``on_text`` sees each piece of it as it is decoded.

        With ``schema``, a JSON schema, the answer is JSON that follows it, unless ``max_tokens``
        end it before (``finish_reason`` is then ``length``). `SchemaError` says what to change
        in a schema that vLLM cannot follow.
        """
        asked = self._question(clip, question, max_tokens, schema, stream)
        return self._submit(self._answer(asked, on_text)).result()

    async def ask_async(
        self,
        clip: Askable,
        question: str,
        *,
        max_tokens: int = 256,
        schema: Mapping[str, Any] | None = None,
        stream: StreamKey | None = None,
    ) -> Answer:
        """As `ask`, from any event loop. Cancelling it cancels the work."""
        asked = await asyncio.to_thread(self._question, clip, question, max_tokens, schema, stream)
        return await asyncio.wrap_future(self._submit(self._answer(asked, None)))

    async def stream(
        self,
        clip: Askable,
        question: str,
        *,
        max_tokens: int = 256,
        schema: Mapping[str, Any] | None = None,
        stream: StreamKey | None = None,
    ) -> AsyncGenerator[Preview | Confirmed | Retracted | Answer]:
        """The answer as it comes, drafted words before they are certain; the `Answer` is last.

        From any event loop. Leaving the iterator cancels the work.
        """
        asked = await asyncio.to_thread(self._question, clip, question, max_tokens, schema, stream)
        shown = self._pair.ask(asked, streaming=True, previews=True)
        turn = asyncio.Lock()

        async def following() -> Preview | Confirmed | Retracted | Answer | None:
            async with turn:
                return await anext(shown, None)

        async def leaving() -> None:
            async with turn:
                await shown.aclose()

        try:
            while (event := await asyncio.wrap_future(self._submit(following()))) is not None:
                yield event
        finally:
            self._submit(leaving())

    def session(self, stream: str, tenant: str = "") -> "Session":
        """One camera's stream: what is said on it is remembered on it, and nowhere else."""
        return Session(self, StreamKey(tenant, stream))

    async def _answer(self, asked: Question, on_text: Callable[[str], None] | None) -> Answer:
        events = self._pair.ask(asked, streaming=on_text is not None, previews=False)
        async with aclosing(events):
            async for event in events:
                if isinstance(event, Answer):
                    return event
                if on_text is not None and isinstance(event, Confirmed):
                    on_text(event.text)
        raise AssertionError("the target always ends with an answer")

    def _question(
        self,
        clip: Askable,
        words: str,
        max_tokens: int,
        schema: Mapping[str, Any] | None,
        stream: StreamKey | None,
    ) -> Question:
        text = None if schema is None else schema_text(schema)
        view, loading = self._pair.target.view, None
        if isinstance(clip, str | Path):
            clip = view.files(Path(clip))
        if isinstance(clip, ClipFiles):
            start_s = time.monotonic()
            clip = clip.read(view.num_frames)
            loading = Span(Stage.LOAD, start_s, time.monotonic())
        elif isinstance(clip, Video):
            clip = Clip(video=clip)
        elif isinstance(clip, Events):
            clip = Clip(events=clip)
        change = 0.0 if stream is None else self._scenes.change(stream, clip.events)
        return Question(clip, words, max_tokens, stream, change, loading, text)

    def _submit(self, work: Coroutine[Any, Any, Result]) -> "Future[Result]":
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """End vLLM's processes. What is still being answered is lost."""
        self._submit(self._end()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._pair.close()
        # vLLM leaves its listening tasks to the loop's owner.
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


@dataclass(frozen=True)
class Session:
    """A stream of clips from one camera, asked about again and again.

    The target's earlier answers on this stream draft its next ones. Tenants share neither
    these nor cached prefixes.
    """

    headstart: Headstart
    key: StreamKey

    def ask(
        self,
        clip: Askable,
        question: str,
        *,
        max_tokens: int = 256,
        schema: Mapping[str, Any] | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> Answer:
        """As `Headstart.ask`, with this stream's memory."""
        return self.headstart.ask(
            clip, question, max_tokens=max_tokens, schema=schema, on_text=on_text, stream=self.key
        )

    async def ask_async(
        self,
        clip: Askable,
        question: str,
        *,
        max_tokens: int = 256,
        schema: Mapping[str, Any] | None = None,
    ) -> Answer:
        """As `Headstart.ask_async`, with this stream's memory."""
        return await self.headstart.ask_async(
            clip, question, max_tokens=max_tokens, schema=schema, stream=self.key
        )

    def stream(
        self,
        clip: Askable,
        question: str,
        *,
        max_tokens: int = 256,
        schema: Mapping[str, Any] | None = None,
    ) -> AsyncGenerator[Preview | Confirmed | Retracted | Answer]:
        """As `Headstart.stream`, with this stream's memory."""
        return self.headstart.stream(
            clip, question, max_tokens=max_tokens, schema=schema, stream=self.key
        )
