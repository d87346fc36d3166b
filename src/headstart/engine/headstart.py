"""`Headstart`: ask a target about a clip.

with Headstart("path/or/name/of/a/video-llava") as headstart:
    answer = headstart.ask("street.mp4", "What is happening?")
    print(answer.text)
"""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from headstart.drafting.timeline import Span, Stage
from headstart.engine.answer import Answer
from headstart.engine.asking import AskDetails
from headstart.engine.target import Target
from headstart.media.clip import Clip, ClipFiles
from headstart.media.events import Events
from headstart.media.video import Video


class Headstart:
    """A target engine and everything that gets it a head start.

    Takes as long to build as vLLM takes to load the model, and owns vLLM's processes until
    `close`. May be asked from several threads at once; vLLM batches what runs together.
    """

    def __init__(
        self,
        target: str | Path,
        *,
        max_draft_tokens: int = 0,
        vllm: Mapping[str, Any] | None = None,
    ) -> None:
        """Load ``target``; ``vllm`` holds any of vLLM's own engine arguments, by its names.

        Sessions draft from what the target said before, ``max_draft_tokens`` at a time; with 0,
        vLLM's scheduler is left as it is.
        """
        self._target = Target(str(target), vllm or {}, max_draft_tokens)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def ask(
        self,
        clip: Clip | ClipFiles | Video | Events | str | Path,
        question: str,
        *,
        max_tokens: int = 256,
        on_text: Callable[[str], None] | None = None,
        details: AskDetails | None = None,
    ) -> Answer:
        """The target's greedy answer; ``on_text`` sees each piece of it as it is decoded.

        A path is what the target makes of a single file: a video, or a recording of events.
        """
        view, loading = self._target.view, None
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
        asking = self._ask(clip, question, max_tokens, loading, on_text, details)
        return asyncio.run_coroutine_threadsafe(asking, self._loop).result()

    async def _ask(
        self,
        clip: Clip,
        question: str,
        max_tokens: int,
        loading: Span | None,
        on_text: Callable[[str], None] | None,
        details: AskDetails | None,
    ) -> Answer:
        pieces = self._target.ask(
            clip,
            question,
            max_tokens=max_tokens,
            streaming=on_text is not None,
            loading=loading,
            details=details,
        )
        async for piece in pieces:
            if isinstance(piece, Answer):
                return piece
            if on_text:
                on_text(piece)
        raise AssertionError("the target always ends with an answer")

    def session(self, stream: str, tenant: str = "") -> "Session":
        """One camera's stream: what is said on it is remembered on it, and nowhere else."""
        return Session(self, stream, tenant)

    def close(self) -> None:
        """End vLLM's processes. What is still being answered is lost."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._target.shutdown()
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
    stream: str
    tenant: str = ""

    def ask(
        self,
        clip: Clip | ClipFiles | Video | Events | str | Path,
        question: str,
        *,
        max_tokens: int = 256,
        on_text: Callable[[str], None] | None = None,
    ) -> Answer:
        """As `Headstart.ask`, with this stream's memory."""
        details = AskDetails(stream=self.stream, tenant=self.tenant, question=question)
        return self.headstart.ask(
            clip, question, max_tokens=max_tokens, on_text=on_text, details=details
        )
