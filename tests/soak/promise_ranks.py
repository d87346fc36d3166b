"""vLLM's data parallelism as the grid of `tests/soak/promise.py` asks it: two engines, one front.

Each rank has a scheduler of its own, and so a memory of its own: a stream keeps to its rank.
"""

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headstart.engine.engine_client import data_parallel_rank
from headstart.speculation.drafter import StreamKey
from tests.engine.promise_engine import Ask, Said

_STATISTICS_S = 0.5  # vLLM counts a step after it has handed out the step's words
_ENDING_S = 5.0


class Ranks:
    """A `Speaker` of several engines, each in a process of its own."""

    def __init__(self, model: Path, arguments: Mapping[str, Any]) -> None:
        from vllm import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM

        self._loop = asyncio.new_event_loop()
        self._counter = itertools.count()

        async def start() -> AsyncLLM:
            return AsyncLLM.from_engine_args(AsyncEngineArgs(str(model), **arguments))

        self._engine = self._loop.run_until_complete(start())

    def say(self, asks: Sequence[Ask], hints: Sequence[Mapping[str, Any] | None]) -> list[Said]:
        """See `Speaker`."""

        async def all_of_them() -> list[Said]:
            said = await asyncio.gather(*map(self._say, asks, hints))
            await asyncio.sleep(_STATISTICS_S)
            return said

        return self._loop.run_until_complete(all_of_them())

    async def _say(self, ask: Ask, hint: Mapping[str, Any] | None) -> Said:
        from vllm.sampling_params import RequestOutputKind

        params = ask.params(hint)
        params.output_kind = RequestOutputKind.FINAL_ONLY
        name = (hint or {}).get("stream")
        stream = None if name is None else StreamKey("", name)
        rank = data_parallel_rank(stream, self._engine.vllm_config.parallel_config)
        prompt, request_id = {"prompt_token_ids": list(ask.prompt)}, next(self._counter)
        outputs = self._engine.generate(prompt, params, str(request_id), data_parallel_rank=rank)
        (output,) = [output async for output in outputs]
        return Said.of(output)

    def close(self) -> None:
        """See `Speaker`."""
        self._engine.shutdown()
        # vLLM's own tasks end only while the loop runs, and complain if it is closed before.
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self._loop.run_until_complete(asyncio.wait(tasks, timeout=_ENDING_S))
        self._loop.close()
