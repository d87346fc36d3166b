"""A session: the questions about one camera's stream, or about no stream."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headstart.answers.answer import Answer
from headstart.answers.preview import Confirmed, Preview, Retracted, Shown
from headstart.answers.timeline import Span, Stage
from headstart.engine.loop_thread import EngineLoop
from headstart.engine.question import Question, RequestOptions, schema_text
from headstart.media.clip import Clip, ClipFiles
from headstart.media.events import Events
from headstart.media.video import Video
from headstart.speculation.drafter import StreamKey

if TYPE_CHECKING:
    from headstart.engine.target import Target

Askable = Clip | ClipFiles | Video | Events | str | Path
"""A path is what the target makes of a single file: a video, or a recording of events."""


class Session:
    """Asks the target about clips of one stream, again and again.

    The target's earlier answers on a stream draft its next ones. Tenants share neither these nor
    cached prefixes. May be used from several threads and event loops at once; vLLM batches what
    runs together.
    """

    def __init__(
        self, target: "Target", loop: EngineLoop, key: StreamKey | None, options: RequestOptions
    ) -> None:
        self.key = key
        self.options = options
        self.target = target
        self.loop = loop

    def ask(
        self,
        clip: Askable,
        question: str,
        *,
        max_tokens: int = 256,
        schema: Mapping[str, Any] | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> Answer:
        """The target's greedy answer; ``on_text`` gets each piece of it as it is decoded.

        With ``schema``, a JSON schema, the answer is JSON that follows it, unless ``max_tokens``
        end it before (``finish_reason`` is then ``length``). `SchemaError` says what to change
        in a schema that vLLM cannot follow.
        """
        asked = self.question(clip, question, max_tokens, schema)

        def show(shown: Shown) -> None:
            if on_text is not None and isinstance(shown, Confirmed):
                on_text(shown.text)

        on_shown = None if on_text is None else show
        return self.loop.submit(self.target.ask(asked, on_shown)).result()

    async def ask_async(
        self,
        clip: Askable,
        question: str,
        *,
        max_tokens: int = 256,
        schema: Mapping[str, Any] | None = None,
    ) -> Answer:
        """As `ask`, from any event loop. Cancelling it cancels the work."""
        asked = await asyncio.to_thread(self.question, clip, question, max_tokens, schema)
        return await self.loop.run(self.target.ask(asked))

    async def stream(
        self,
        clip: Askable,
        question: str,
        *,
        max_tokens: int = 256,
        schema: Mapping[str, Any] | None = None,
    ) -> AsyncGenerator[Preview | Confirmed | Retracted | Answer]:
        """The answer as it comes, drafted words before they are certain; the `Answer` is last.

        From any event loop. Leaving the iterator cancels the work, and closing it waits for that.
        """
        asked = await asyncio.to_thread(self.question, clip, question, max_tokens, schema)
        here, shown = asyncio.get_running_loop(), asyncio.Queue[Shown | None]()

        def show(one: Shown | None) -> None:
            here.call_soon_threadsafe(shown.put_nowait, one)

        asking = self.target.ask(replace(asked, previews=True), show)
        answering = asyncio.create_task(self.loop.run(asking))
        answering.add_done_callback(lambda _: shown.put_nowait(None))
        try:
            while (one := await shown.get()) is not None:
                yield one
            yield answering.result()
        finally:
            answering.cancel()
            await asyncio.wait((answering,))

    def question(
        self, clip: Askable, words: str, max_tokens: int, schema: Mapping[str, Any] | None
    ) -> Question:
        """What `ask` sends to the target; reads the clip's files, if it has any."""
        text = None if schema is None else schema_text(schema)
        view, front_end, loading = self.target.view, self.target.front_end, None
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
        return Question(
            words,
            clip,
            max_tokens,
            self.key,
            tenant="" if self.key is None else self.key.tenant,
            options=self.options,
            loading=loading,
            schema=text,
            is_free=text is None,
            # Without a stream and a draft model no source would have anything to draft.
            is_drafted=self.key is not None or front_end.draft_model is not None,
        )
