"""What is done with a stranger's bytes, inside the confined process.

A job gets what it was asked, the bytes, and memory to write its output to. It returns what is
told of the output. Whoever reads that must not trust it: the process may have been taken over.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from headstart.errors import MediaError
from headstart.media.events import Events, SensorSize
from headstart.media.readers.opening import open_recording
from headstart.sandbox.film import film
from headstart.sandbox.grammars import Grammars
from headstart.sandbox.vllm_media import Bounds, Loaders

Told = dict[str, Any]
Asked = Mapping[str, Any]


class Jobs:
    """All that a confined process can do. Built before it is confined."""

    def __init__(self, loaders: Loaders, grammars: Grammars | None) -> None:
        self._loaders = loaders
        self._grammars = grammars
        self._known: dict[str, Callable[[Asked, memoryview, memoryview], Told]] = {
            "video": self._video,
            "picture": self._picture,
            "events": self._events,
            "film": self._film,
            "grammar": self._grammar,
        }

    def do(self, asked: Asked, content: memoryview, output: memoryview) -> Told:
        """One job; what went wrong is told in words."""
        try:
            return self._known[asked["job"]](asked, content, output)
        except (MediaError, ValueError) as error:
            return {"error": str(error)[:500]}
        except MemoryError:
            return {"error": "it needs more memory than one job may take"}
        except Exception as error:
            return {"error": f"the decoder failed over it ({type(error).__name__})"}

    def _video(self, asked: Asked, content: memoryview, output: memoryview) -> Told:
        bounds = Bounds(**asked["bounds"])
        frames, told = self._loaders.video(bytes(content), bounds, asked["is_jpegs"])
        if frames.dtype != np.uint8 or frames.ndim != 4:
            raise MediaError("the video's frames are not of a kind this server hands on")
        _put(output, 0, frames)
        return {"shape": frames.shape, "told": json.loads(json.dumps(told, default=_plain))}

    def _picture(self, asked: Asked, content: memoryview, output: memoryview) -> Told:
        picture = self._loaders.picture(bytes(content), Bounds(**asked["bounds"]))
        pixels = np.frombuffer(picture.tobytes(), np.uint8)
        _put(output, 0, pixels)
        return {"mode": picture.mode, "size": picture.size}

    def _events(self, asked: Asked, content: memoryview, output: memoryview) -> Told:
        events = _read(asked, content)
        start = 0
        for column in (events.t, events.x, events.y, events.p):
            start = _put(output, start, column)
        sensor = events.sensor
        return {"num_events": len(events), "sensor": [sensor.width, sensor.height]}

    def _film(self, asked: Asked, content: memoryview, output: memoryview) -> Told:
        picture = np.frombuffer(film(_read(asked, content)), np.uint8)
        return {"num_bytes": _put(output, 0, picture)}

    def _grammar(self, asked: Asked, content: memoryview, output: memoryview) -> Told:
        if self._grammars is not None:
            self._grammars.compile(json.loads(bytes(content)))
        return {}


def _read(asked: Asked, content: memoryview) -> Events:
    """A window of a recording; open ends are the recording's own."""
    sensor = SensorSize.parse(asked["sensor"]) if asked["sensor"] else None
    path, most_us = Path(f"recording{asked['suffix']}"), asked["max_window_us"]
    with open_recording(
        path, sensor, asked["max_events"], content=content, allow_pickle=False
    ) as recording:
        size = recording.sensor
        if size.width * size.height > asked["max_frame_pixels"]:
            raise MediaError(f"a sensor may have {asked['max_frame_pixels']} pixels at most")
        start, stop = asked["start_us"], asked["stop_us"]
        start = recording.first_us if start is None else start
        stop = start + most_us if stop is None else stop
        if not 0 < stop - start <= most_us:
            raise MediaError(
                f"a window of events is longer than 0 and {most_us} us at most;"
                " give start_us and stop_us"
            )
        return recording.read(start, stop)


def _put(output: memoryview, start: int, values: Any) -> int:
    """Write an array; where the next one goes."""
    stop = start + values.nbytes
    if stop > len(output):
        raise MediaError("decoded, it is larger than this server takes")
    place = np.frombuffer(output[start:stop], values.dtype)
    place[:] = values.reshape(-1)
    return int(stop)


def _plain(value: Any) -> Any:
    """numpy's numbers and arrays as JSON has them."""
    return value.tolist()
