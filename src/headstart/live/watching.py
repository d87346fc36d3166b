"""Watches cameras: the same question about every window of each, answered as they end.

for answer in headstart.watch("rtsp://camera/street", "What is happening?", target="my-target"):
    print(answer.text, answer.wait_s)
"""

import contextlib
import logging
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

from headstart.answers.preview import Shown
from headstart.engine.headstart import Headstart
from headstart.errors import LiveError
from headstart.live.session import LiveCounts, LiveSession
from headstart.live.sources.opening import open_source
from headstart.live.sources.source import Source, SourceCounts
from headstart.live.standing import StandingQuestion
from headstart.live.when import Always, When
from headstart.live.window_question import WindowAnswer
from headstart.live.windows import Windows

logger = logging.getLogger(__name__)

Camera = Source | str | Path
DEFAULT_WINDOWS = Windows(seconds=2.0)


def watch(
    cameras: Camera | Sequence[Camera],
    question: str,
    *,
    target: str | Path | None = None,
    headstart: Headstart | None = None,
    windows: Windows = DEFAULT_WINDOWS,
    when: Callable[[], When] = Always,
    max_tokens: int = 256,
    schema: Mapping[str, Any] | None = None,
    on_shown: Callable[[str, Shown], None] | None = None,
) -> "Watch":
    """Ask about every window of one camera or of several; iterate over the answers.

    A camera is a file, an address or a device as `open_source` takes it, or any `Source`. It is
    watched until it ends, or until the iterator is closed or no longer used. The engine is started
    on ``target`` and ended with the iterator, unless a running ``headstart`` is given.

    ``when`` is called once for each camera; what it makes decides which windows are asked about.
    ``on_shown`` gets a camera's name and the words of its answer as they come, drafted ones before
    they are certain; it is called in the engine's thread, so it must return at once.
    """
    if (target is None) is (headstart is None):
        raise LiveError("watching needs one engine: give either a target or a running headstart")
    listed = [cameras] if not isinstance(cameras, Sequence) or isinstance(cameras, str) else cameras
    if not listed:
        raise LiveError("no camera to watch: give at least one")
    sources = [open_source(str(one)) if isinstance(one, str | Path) else one for one in listed]
    streams = _names([source.name for source in sources])
    with contextlib.ExitStack() as undo:
        for source in sources:
            undo.callback(source.close)
        if headstart is None:
            assert target is not None
            headstart = undo.enter_context(Headstart(target))
        answers = _Answers(len(sources))
        watched = []
        for stream, source in zip(streams, sources, strict=True):
            live = LiveSession(headstart.session(stream), windows, when=when())
            shown = None if on_shown is None else partial(on_shown, stream)
            standing = live.standing(question, max_tokens=max_tokens, schema=schema, on_shown=shown)
            camera = _Watched(stream, source, live, standing, answers)
            undo.callback(camera.close)
            watched.append(camera)
        undo.callback(answers.close)
        return Watch(watched, answers, undo.pop_all())


@dataclass(frozen=True)
class WatchCounts:
    """What became of one camera's frames and windows."""

    source: SourceCounts
    live: LiveCounts


class Watch:
    """An iterator over the answers about all cameras, in the order in which they were given.

    A reader that is slow delays no camera: see `StandingQuestion`. A camera that fails ends, and
    the others go on; the first failure is raised when all have ended.
    """

    def __init__(
        self, watched: Sequence["_Watched"], answers: "_Answers", ending: contextlib.ExitStack
    ) -> None:
        self._watched = watched
        self._answers = answers
        # Threads hold what they need and not this object: it is closed when nobody uses it.
        self._close = weakref.finalize(self, ending.close)
        for camera in watched:
            camera.start()

    def __iter__(self) -> Iterator[WindowAnswer]:
        return self

    def __next__(self) -> WindowAnswer:
        answer = self._answers.take()
        if answer is not None:
            return answer
        failure = self._answers.failure
        self.close()
        raise failure or StopIteration

    @property
    def counts(self) -> Mapping[str, WatchCounts]:
        """So far, by the camera's name; also after the end."""
        return {each.stream: each.counts for each in self._watched}

    def close(self) -> None:
        """Watch no more; answers under way are cancelled. No thread is left. Twice is no error."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class _Watched:
    """One camera: a thread that feeds its frames, and one that reads its answers."""

    def __init__(
        self,
        stream: str,
        source: Source,
        live: LiveSession,
        standing: StandingQuestion,
        answers: "_Answers",
    ) -> None:
        self.stream = stream
        self._source, self._live, self._standing = source, live, standing
        self._answers = answers
        self._threads = [
            threading.Thread(target=work, name=f"{name} {stream}", daemon=True)
            for name, work in (("feed", self._feed), ("read", self._read))
        ]

    @property
    def counts(self) -> WatchCounts:
        return WatchCounts(self._source.counts, self._live.counts)

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End both threads; the answers must have been closed before. The reader ends first."""
        self._live.close()
        self._standing.close()
        for thread in self._threads:
            # Whoever drops the last reference to a `Watch` may be one of its own threads.
            if thread.ident is not None and thread is not threading.current_thread():
                thread.join()

    def _feed(self) -> None:
        try:
            for arrival in self._source.arrivals():
                self._live.feed(arrival.frame, arrival.time_us, arrival.events)
        except Exception as error:
            self._fail(error)
        self._live.end()

    def _read(self) -> None:
        try:
            for answer in self._standing:
                self._answers.put(answer)
        except Exception as error:
            self._fail(error)
        self._source.close()
        self._answers.end_one()

    def _fail(self, error: Exception) -> None:
        logger.warning("%s is watched no longer: %s", self.stream, error)
        self._answers.fail(error)


class _Answers:
    """Hands the answers of several cameras to one reader, one at a time."""

    def __init__(self, num_cameras: int) -> None:
        self._num_cameras = num_cameras
        self._next: WindowAnswer | None = None
        self.failure: Exception | None = None
        """The first of any camera."""
        self._is_closed = False
        self._changed = threading.Condition()

    def put(self, answer: WindowAnswer) -> None:
        """Wait until there is room: what a reader does not take waits in its `StandingQuestion`."""
        with self._changed:
            self._changed.wait_for(lambda: self._next is None)
            if not self._is_closed:
                self._next = answer
                self._changed.notify_all()

    def take(self) -> WindowAnswer | None:
        """The next answer; None when all cameras have ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._next is not None or not self._num_cameras)
            answer, self._next = self._next, None
            self._changed.notify_all()
            return answer

    def fail(self, error: Exception) -> None:
        with self._changed:
            if not self._is_closed:
                self.failure = self.failure or error

    def end_one(self) -> None:
        with self._changed:
            self._num_cameras -= 1
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._next = self.failure = None
            self._changed.notify_all()


def _names(given: Sequence[str]) -> list[str]:
    names: list[str] = []
    for name in given:
        alike = sum(each == name for each in given[: len(names)])
        names.append(f"{name} {alike + 1}" if alike else name)
    return names
