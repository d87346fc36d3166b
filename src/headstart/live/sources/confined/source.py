"""A camera on the network: its bytes are fetched here, and decoded in a confined process."""

import threading
from collections.abc import Callable, Iterator
from typing import Protocol

from headstart.errors import HeadstartError, SourceError
from headstart.live.sources.confined.boxed_stream import BoxedStream, StreamLimits
from headstart.live.sources.confined.shares import Share
from headstart.live.sources.pace import Pace
from headstart.media.stream import TimedFrame


class ByteStream(Protocol):
    """The bytes of a video as a camera sends them."""

    def chunks(self) -> Iterator[bytes]:
        """Connect and yield bytes. Returning is the stream's end; an error is its loss."""

    @property
    def is_recorded(self) -> bool:
        """Whether the bytes are a whole recording's, which come faster than it lasts."""

    def close(self) -> None:
        """End `chunks` soon. From any thread."""


class BoxedConnection:
    """A `Connection` that decodes nothing in this process."""

    def __init__(self, stream: ByteStream, limits: StreamLimits, share: Share | None) -> None:
        self._stream, self._limits, self._share = stream, limits, share
        self._lock = threading.Lock()
        self._pace = Pace()
        self._box: BoxedStream | None = None
        self._error: Exception | None = None
        self._has_come = False

    def frames(self) -> Iterator[TimedFrame]:
        """Yield the frames of the stream, those of a recording at its pace."""
        with self._lock:
            if self._pace.is_stopped:
                return
            box = self._box = BoxedStream(self._limits, self._share)
        feeder = threading.Thread(target=self._feed, args=(box,), daemon=True)
        feeder.start()
        try:
            for time_us, frame in box.frames():
                if self._stream.is_recorded and time_us is not None:
                    self._pace.wait_until(time_us)
                yield time_us, frame
        except HeadstartError as error:
            # Where no byte came, what broke the connection says more than the decoder can.
            raise error if self._has_come or self._error is None else self._error from error
        finally:
            self.close()
            feeder.join()
            box.close()
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """End the process and the connection. From any thread."""
        self._pace.stop()
        self._stream.close()
        with self._lock:
            if self._box is not None:
                self._box.kill()

    def _feed(self, box: BoxedStream) -> None:
        try:
            for chunk in self._stream.chunks():
                self._has_come = True
                box.write(chunk)
        except BrokenPipeError:
            pass  # the process has ended; `frames` says why
        except TimeoutError:
            self._error = SourceError(
                f"nothing came for {self._limits.silent_s:g} s; see whether the camera runs"
            )
        except (HeadstartError, OSError) as error:
            self._error = error
        except Exception as error:  # a stranger's bytes: whatever they cause, the stream is lost
            self._error = SourceError(f"what it sends makes no sense ({error}); restart the camera")
        finally:
            box.end()


def boxed(
    open_stream: Callable[[], ByteStream], limits: StreamLimits, share: Share | None = None
) -> Callable[[], BoxedConnection]:
    """What makes connections, for `Reconnecting`. The share is for their processes, in turn."""
    return lambda: BoxedConnection(open_stream(), limits, share)
