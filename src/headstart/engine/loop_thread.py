"""The event loop an engine works in: somebody else's, or one in a thread of its own."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

Result = TypeVar("Result")


class EngineLoop:
    """An event loop that somebody else runs, such as a server's.

    Safe to use from many threads and other event loops.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def submit(self, work: Coroutine[Any, Any, Result]) -> "Future[Result]":
        """Run ``work``; cancelling the future cancels it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """What ``work`` returns, for a coroutine of any loop.

        Cancelling that one cancels the work, and waits until it has cleaned up.
        """
        tasks: list[asyncio.Task[Result]] = []
        ended: Future[None] = Future()

        def begin() -> None:
            tasks.append(self._loop.create_task(work))
            tasks[0].add_done_callback(lambda _: ended.set_result(None))

        self._loop.call_soon_threadsafe(begin)
        waiting = asyncio.wrap_future(ended)
        try:
            await asyncio.shield(waiting)
        except asyncio.CancelledError:
            self.call(lambda: tasks[0].cancel())
            await asyncio.shield(waiting)
            raise
        return tasks[0].result()

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function in the loop, soon; after the loop's end it is not called."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)

    @property
    def is_closed(self) -> bool:
        return self._loop.is_closed()


class LoopThread(EngineLoop):
    """Runs coroutines in a thread of its own until `close`."""

    def __init__(self) -> None:
        super().__init__(asyncio.new_event_loop())
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    @property
    def is_closed(self) -> bool:
        return not self._thread.is_alive()

    def close(self) -> None:
        """Cancel what still runs, and end the thread."""
        self.submit(_cancel_others()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_others() -> None:
    # vLLM leaves its listening tasks to the loop's owner.
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
