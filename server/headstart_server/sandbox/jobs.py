"""The jobs that a confined worker runs on untrusted bytes.

A job gets the pool's request, the bytes, and memory for its output. It returns a description of
the output. The pool must check that description: the bytes may have taken over the worker. Only
the job ``packet`` builds on the job before it.
"""

import io
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import PIL.Image

from headstart.errors import MediaError
from headstart.live.sources.confined.stream_worker import small_video
from headstart.media.annex_b import Codec
from headstart.media.events import Events, SensorSize
from headstart.media.stream import PacketDecoder
from headstart_events.readers.opening import open_recording, preload
from headstart_events.rendering import render
from headstart_server.sandbox.vllm_media import Bounds, Loaders

Request = Mapping[str, Any]
Result = dict[str, Any]

NUM_FRAMES = 32  # page.html counts on it
MAX_SIDE = 320
_BOUNDS = Bounds(max_frame_pixels=1 << 20, max_clip_pixels=1 << 20, max_video_s=60)
_SMALL_PACKETS = {
    Codec.H264: bytes.fromhex(
        "000000016742c00ada7a1000000300100000030328f1226a0000000168ce0fc8000000016588843a2628000902"
        "e0"
    ),
    Codec.H265: bytes.fromhex(
        "0000000140010c01ffff01600000030090000003000003001eba02400000000142010101600000030090000003"
        "000003001ea04208596e92930b9a020000030002000003003210000000014401c073c089000000012801ac760d"
        "9ffef2ee"
    ),
}
"""One black key picture of each codec, of 16x16 and of 32x32."""


class Grammars:
    """Compiles the grammars that constrain answers, to bound the time that takes.

    vLLM compiles a grammar in the server's and in the engine's process without any bound. So a
    worker compiles it first, and a grammar that takes too long there never reaches vLLM.
    """

    def __init__(self, vocabulary: str) -> None:
        """``vocabulary``: xgrammar's ``TokenizerInfo`` as it serializes itself."""
        import xgrammar

        self._xgrammar = xgrammar
        info = xgrammar.TokenizerInfo.deserialize_json(vocabulary)
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)

    def compile(self, constraint: Mapping[str, Any]) -> None:
        """Compile one field of vLLM's ``structured_outputs``; raises where xgrammar refuses it."""
        grammar = self._xgrammar.Grammar
        try:
            for kind, value in constraint.items():
                match kind:
                    case "json":
                        text = value if isinstance(value, str) else json.dumps(value)
                        self._compiler.compile_json_schema(text)
                    case "json_object":
                        self._compiler.compile_builtin_json_grammar()
                    case "regex":
                        self._compiler.compile_regex(value)
                    case "grammar":
                        self._compiler.compile_grammar(value)
                    case "choice":
                        quoted = [json.dumps(str(choice)) for choice in value]
                        ebnf = "root ::= " + " | ".join(quoted)
                        self._compiler.compile_grammar(grammar.from_ebnf(ebnf))
                    case "structural_tag":
                        text = value if isinstance(value, str) else json.dumps(value)
                        self._compiler.compile_structural_tag(text)
        except RuntimeError as error:
            raise MediaError(str(error).splitlines()[0]) from error


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


def filmstrip(events: Events) -> bytes:
    """One tall PNG for the page; each frame shows an equal part of the recording's time."""
    start_us = int(events.t[0]) if len(events) else 0
    edges = np.linspace(start_us, start_us + events.duration_us + 1, NUM_FRAMES + 1).astype(int)
    small = _thinned(events)
    frames = [render(small.between(int(start), int(stop))) for start, stop in pairwise(edges)]
    file = io.BytesIO()
    PIL.Image.fromarray(np.concatenate(frames)).quantize(8).save(file, "PNG")
    return file.getvalue()


def _thinned(events: Events) -> Events:
    """Keep every nth pixel, so that neither side has more than `MAX_SIDE` of them."""
    sensor = events.sensor
    scale = -(-max(sensor.width, sensor.height) // MAX_SIDE)
    kept = (events.x % scale == 0) & (events.y % scale == 0)
    size = SensorSize(-(-sensor.width // scale), -(-sensor.height // scale))
    x, y = events.x[kept] // scale, events.y[kept] // scale
    return Events(x.astype(np.uint16), y.astype(np.uint16), events.t[kept], events.p[kept], size)


def warm_up(loaders: Loaders) -> None:
    """Decode one file of each kind, whole and damaged, before workers are forked.

    Packages import parts of themselves on first use, which a confined worker cannot do.
    """
    cv2.setNumThreads(0)  # a process with threads cannot be forked safely
    preload()
    PIL.Image.init()
    for kind in ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"):
        file = io.BytesIO()
        PIL.Image.new("RGB", (16, 16)).save(file, kind)
        loaders.picture(file.getvalue(), _BOUNDS)
        with suppress(Exception):
            loaders.picture(file.getvalue()[:-20], _BOUNDS)
    loaders.video(small_video(), _BOUNDS, is_jpegs=False)
    with suppress(Exception):
        loaders.video(small_video()[:300], _BOUNDS, is_jpegs=False)
    for codec, packet in _SMALL_PACKETS.items():
        PacketDecoder(codec, _BOUNDS.max_frame_pixels).decode(packet)
        with suppress(Exception):
            PacketDecoder(codec, _BOUNDS.max_frame_pixels).decode(packet[:-4])
