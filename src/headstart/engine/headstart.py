"""`Headstart`: ask a target about a video.

with Headstart("path/or/name/of/a/video-llava") as headstart:
    answer = headstart.ask("street.mp4", "What is happening?")
    print(answer.text)
"""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from headstart.drafting.timeline import Span, Stage
from headstart.engine.answer import Answer
from headstart.engine.target import Target
from headstart.media.video import Video, count_frames


class Headstart:
    """A target engine and everything that gets it a head start.

    Takes as long to build as vLLM takes to load the model, and owns vLLM's processes until
    `close`. May be asked from several threads at once; vLLM batches what runs together.
    """

    def __init__(self, target: str | Path, *, vllm: Mapping[str, Any] | None = None) -> None:
        """Load ``target``; ``vllm`` holds any of vLLM's own engine arguments, by its names."""
        self._target = Target(str(target), vllm or {})
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def ask(
        self,
        video: Video | str | Path,
        question: str,
        *,
        max_tokens: int = 256,
        on_text: Callable[[str], None] | None = None,
    ) -> Answer:
        """The target's greedy answer; ``on_text`` sees each piece of it as it is decoded."""
        loading = None
        if not isinstance(video, Video):
            start_s = time.monotonic()
            # A shorter video is shown whole: the model takes fewer frames too.
            num_frames = min(self._target.view.num_frames, count_frames(video))
            video = Video.read(video, num_frames=num_frames)
            loading = Span(Stage.LOAD, start_s, time.monotonic())
        asking = self._ask(video, question, max_tokens, loading, on_text)
        return asyncio.run_coroutine_threadsafe(asking, self._loop).result()

    async def _ask(
        self,
        video: Video,
        question: str,
        max_tokens: int,
        loading: Span | None,
        on_text: Callable[[str], None] | None,
    ) -> Answer:
        pieces = self._target.ask(video, question, max_tokens=max_tokens, loading=loading)
        async for piece in pieces:
            if isinstance(piece, Answer):
                return piece
            if on_text:
                on_text(piece)
        raise AssertionError("the target always ends with an answer")

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
