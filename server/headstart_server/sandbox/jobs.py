"""The jobs that a confined worker runs on untrusted bytes.

A job gets the pool's request, the bytes, and memory for its output. It returns a description of
the output. The pool must check that description: the bytes may have taken over the worker. Only
the job ``packet`` builds on the job before it.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from headstart.errors import MediaError
from headstart.media.annex_b import Codec
from headstart.media.events import Events, SensorSize
from headstart.media.stream import PacketDecoder
from headstart_events.readers.opening import open_recording
from headstart_server.sandbox.filmstrip import filmstrip
from headstart_server.sandbox.grammars import Grammars
from headstart_server.sandbox.vllm_media import Bounds, Loaders

Request = Mapping[str, Any]
Result = dict[str, Any]


class Jobs:
    """Every job by name. Built before the worker is forked and confined."""

    def __init__(self, loaders: Loaders, grammars: Grammars | None) -> None:
        self._loaders = loaders
        self._grammars = grammars
        self._packets: PacketDecoder | None = None
        self._by_name: dict[str, Callable[[Request, memoryview, memoryview], Result]] = {
            "video": self._video,
            "picture": self._picture,
            "packet": self._packet,
            "events": self._events,
            "filmstrip": self._filmstrip,
            "grammar": self._grammar,
        }

    def run(self, request: Request, content: memoryview, output: memoryview) -> Result:
        """Run one job; a failure is a result with ``error``."""
        try:
            return self._by_name[request["job"]](request, content, output)
        except (MediaError, ValueError) as error:
            return {"error": str(error)[:500]}
        except MemoryError:
            return {"error": "it needs more memory than one job may take"}
        except Exception as error:
            return {"error": f"the decoder failed over it ({type(error).__name__})"}

    def _video(self, request: Request, content: memoryview, output: memoryview) -> Result:
        bounds = Bounds(**request["bounds"])
        frames, metadata = self._loaders.video(bytes(content), bounds, request["is_jpegs"])
        if frames.dtype != np.uint8 or frames.ndim != 4:
            raise MediaError("the video's frames are not of a kind this server hands on")
        _write(output, 0, frames)
        plain = json.loads(json.dumps(metadata, default=_plain))
        return {"shape": frames.shape, "metadata": plain}

    def _picture(self, request: Request, content: memoryview, output: memoryview) -> Result:
        picture = self._loaders.picture(bytes(content), Bounds(**request["bounds"]))
        pixels = np.frombuffer(picture.tobytes(), np.uint8)
        _write(output, 0, pixels)
        return {"mode": picture.mode, "size": picture.size}

    def _packet(self, request: Request, content: memoryview, output: memoryview) -> Result:
        if request["begins"]:
            self._packets = None  # gives its memory back before the next one takes some
            self._packets = PacketDecoder(Codec(request["codec"]), request["max_pixels"])
        if self._packets is None:
            raise MediaError("no key picture came before it")
        frame = self._packets.decode(bytes(content))
        _write(output, 0, frame)
        height, width, _ = frame.shape
        return {"mode": "RGB", "size": [width, height]}

    def _events(self, request: Request, content: memoryview, output: memoryview) -> Result:
        events = _read(request, content)
        start = 0
        for column in (events.t, events.x, events.y, events.p):
            start = _write(output, start, column)
        sensor = events.sensor
        return {"num_events": len(events), "sensor": [sensor.width, sensor.height]}

    def _filmstrip(self, request: Request, content: memoryview, output: memoryview) -> Result:
        picture = np.frombuffer(filmstrip(_read(request, content)), np.uint8)
        return {"num_bytes": _write(output, 0, picture)}

    def _grammar(self, request: Request, content: memoryview, output: memoryview) -> Result:
        if self._grammars is not None:
            self._grammars.compile(json.loads(bytes(content)))
        return {}


def _read(request: Request, content: memoryview) -> Events:
    """Read a window of a recording; without a start it begins where the recording does."""
    sensor = SensorSize.parse(request["sensor"]) if request["sensor"] else None
    path, most_us = Path(f"recording{request['suffix']}"), request["max_window_us"]
    with open_recording(
        path, sensor, request["max_events"], content=content, allow_pickle=False
    ) as recording:
        size = recording.sensor
        if size.width * size.height > request["max_frame_pixels"]:
            raise MediaError(f"a sensor may have {request['max_frame_pixels']} pixels at most")
        start, stop = request["start_us"], request["stop_us"]
        start = recording.first_us if start is None else start
        stop = start + most_us if stop is None else stop
        if not 0 < stop - start <= most_us:
            raise MediaError(
                f"a window of events is longer than 0 and {most_us} us at most;"
                " give start_us and stop_us"
            )
        return recording.read(start, stop)


def _write(output: memoryview, start: int, values: Any) -> int:
    """Write an array to the output; returns where it ends."""
    stop = start + values.nbytes
    if stop > len(output):
        raise MediaError("decoded, it is larger than this server takes")
    place = np.frombuffer(output[start:stop], values.dtype)
    place[:] = values.reshape(-1)
    return int(stop)


def _plain(value: Any) -> Any:
    """A numpy number or array as JSON has it."""
    return value.tolist()
