"""`Headstart`: ask a target about a clip.

with Headstart("path/or/name/of/a/model", draft_model="path/or/name/of/another") as headstart:
    front = headstart.session("front camera")
    answer = front.ask(ClipFiles("street.mp4", "street.raw"), "What is happening?")
    print(answer.text)
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from headstart.doctor.findings import require_engine
from headstart.engine.draft_model import DraftModel
from headstart.engine.draft_model import draft_model as draft_model_of
from headstart.engine.loop_thread import LoopThread
from headstart.engine.model import Model
from headstart.engine.options import Sources
from headstart.engine.question import RequestOptions
from headstart.engine.session import Session
from headstart.errors import DraftingError
from headstart.speculation.drafter import StreamKey


class Headstart(Session):
    """A target engine and everything that gives its answers a head start.

    Takes as long to build as vLLM takes to load the models, and owns vLLM's processes until
    `close`. What is asked here belongs to no stream, and is not remembered; `session` is for a
    camera.
    """

    def __init__(
        self,
        target: str | Path,
        *,
        draft_model: DraftModel | str | Path | None = None,
        sources: Sources = Sources(),  # noqa: B008 - frozen
        max_draft_tokens: int = 32,
        options: RequestOptions = RequestOptions(),  # noqa: B008 - frozen
        num_frames: int | None = None,
        vllm: Mapping[str, Any] | None = None,
    ) -> None:
        """Load ``target``; ``vllm`` holds any of vLLM's own engine arguments, by its names.

        Sessions draft from what the target said before, and every answer from what ``draft_model``
        says of the same clip, ``max_draft_tokens`` at a time; with 0, vLLM's scheduler is left as
        it is. A draft model given by name is one of those that packages beside headstart bring;
        where there is a bridge, only its tower is run, to show the bridge what it sees. All is
        asked in ``options``, where a session has none of its own. Of a clip or a live window the
        target is shown ``num_frames``: its own number, or 8 where it has none.
        """
        require_engine()
        if isinstance(draft_model, str | Path):
            draft_model = draft_model_of(draft_model, {}, sources)
        if max_draft_tokens < 0 or (draft_model is not None and not max_draft_tokens):
            raise DraftingError(
                f"max_draft_tokens is {max_draft_tokens}: give how many tokens of a draft to"
                " verify at once, or 0 and no draft model"
            )
        from headstart.engine.startup import Engines  # needs what the engine brings

        model = Model.checked(target, num_frames)
        self._engines = Engines(model, draft_model, sources, max_draft_tokens, vllm or {})
        self._thread = LoopThread()
        super().__init__(self._engines.target, self._thread, None, options)

    def session(
        self, stream: str, tenant: str = "", options: RequestOptions | None = None
    ) -> Session:
        """One camera's stream, whose answers draft its next ones and those of its tenant."""
        key = StreamKey(tenant, stream)
        return Session(self.target, self.loop, key, self.options if options is None else options)

    def close(self) -> None:
        """End vLLM's processes. What is still being answered is lost."""
        self.loop.submit(self._end()).result()
        self._thread.close()

    async def _end(self) -> None:
        self._engines.close()  # vLLM's client is closed in the loop it was used from

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
