"""Small valid files of every container that the server reads, made by common writers.

`hostile` returns files made by hand to do harm.
"""

import base64
import io
import tempfile
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import av
import numpy as np
from PIL import Image

from headstart.errors import HeadstartError
from headstart.media.events import SensorSize
from headstart.media.video import Video
from headstart_events.simulation import simulate
from headstart_events.writers.writing import write_recording
from headstart_lab.street import street_video
from tests.serve import attacks

WIDTH, HEIGHT, NUM_FRAMES = 48, 32, 10
MAX_SAMPLE_BYTES = 200_000


class Medium(Enum):
    """The part of a request that a file belongs in."""

    VIDEO = "video_url"
    PICTURE = "image_url"
    EVENTS = "event_url"


@dataclass(frozen=True)
class File:
    """One file to send."""

    medium: Medium
    format: str
    content: bytes
    damage: str = "none"
    width: int = WIDTH
    height: int = HEIGHT

    def url(self, kind: str | None = None) -> str:
        """A data URL; ``kind`` replaces the file's media type."""
        family = {Medium.VIDEO: "video", Medium.PICTURE: "image"}.get(self.medium, "application")
        encoded = base64.b64encode(self.content).decode()
        return f"data:{kind or f'{family}/{self.format}'};base64,{encoded}"


def seeds(samples: Path | None = None) -> list[File]:
    """One or more files of each format, and those of the directory ``samples`` if given."""
    return [*_videos(), *_pictures(), *_recordings(), *_samples(samples)]


def _videos() -> list[File]:
    street = street_video(num_frames=NUM_FRAMES, width=WIDTH, height=HEIGHT)
    made = [_animation(street, "gif"), _animation(street, "webp")]
    with tempfile.TemporaryDirectory() as home:
        street.write(Path(home) / "street.mp4")
        made.append(File(Medium.VIDEO, "mp4", (Path(home) / "street.mp4").read_bytes()))
    for suffix, codec in (
        ("mp4", "mpeg4"),
        ("webm", "libvpx"),
        ("webm", "libvpx-vp9"),
        ("mkv", "libx264"),
        ("avi", "mpeg4"),
        ("avi", "mjpeg"),
        ("mov", "libx264"),
    ):
        made.append(File(Medium.VIDEO, suffix, _encoded(street, suffix, codec)))
    return made


def _encoded(street: Video, suffix: str, codec: str) -> bytes:
    written = {"mkv": "matroska"}.get(suffix, suffix)
    file = io.BytesIO()
    # Without times and random names, so that a seed always makes the same files.
    exact = {"fflags": "+bitexact"}
    with av.open(file, "w", format=written, options=exact) as container:
        stream = container.add_stream(codec, rate=10)
        stream.width, stream.height = WIDTH, HEIGHT
        stream.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
        for frame in street.frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame)))
        container.mux(stream.encode())
    return file.getvalue()


def _animation(street: Video, suffix: str) -> File:
    first, *rest = (Image.fromarray(frame) for frame in street.frames)
    file = io.BytesIO()
    first.save(file, suffix, save_all=True, append_images=rest, duration=100)
    return File(Medium.VIDEO, suffix, file.getvalue())


def _pictures() -> list[File]:
    picture = Image.fromarray(street_video(1, WIDTH, HEIGHT).frames[0])
    made = []
    for suffix, mode, options in (
        ("png", "RGB", {}),
        ("png", "P", {}),
        ("jpeg", "RGB", {}),
        ("jpeg", "CMYK", {"progressive": True}),
        ("webp", "RGB", {}),
        ("webp", "RGBA", {"lossless": True}),
        ("gif", "P", {}),
        ("tiff", "RGB", {}),
        ("tiff", "RGB", {"compression": "tiff_lzw"}),
        ("tiff", "L", {"compression": "jpeg"}),
        ("bmp", "RGB", {}),
    ):
        file = io.BytesIO()
        picture.convert(mode).save(file, suffix, **options)
        made.append(File(Medium.PICTURE, suffix, file.getvalue()))
    return made


def _recordings() -> list[File]:
    street = street_video(num_frames=NUM_FRAMES, width=WIDTH, height=HEIGHT)
    seen = zip(street.times_us.tolist(), street.frames, strict=True)
    blocks = list(simulate(seen))
    made = []
    with tempfile.TemporaryDirectory() as home:
        for suffix in ("npz", "h5", "aedat4", "raw", "evt2.raw", "dat", "csv"):
            path = Path(home) / f"street.{suffix}"
            try:
                write_recording(path, blocks, SensorSize(WIDTH, HEIGHT))
            except HeadstartError:
                continue  # its library is not installed
            made.append(File(Medium.EVENTS, suffix.rpartition(".")[2], path.read_bytes()))
    kinds = [("x", "<i2"), ("y", "<i2"), ("t", "<i8"), ("p", "u1")]
    table = np.zeros(sum(map(len, blocks)), kinds)
    for name in table.dtype.names or ():
        table[name] = np.concatenate([getattr(events, name) for events in blocks])
    file = io.BytesIO()
    np.save(file, table)
    return [*made, File(Medium.EVENTS, "npy", file.getvalue())]


def _samples(directory: Path | None) -> list[File]:
    found = []
    for path in sorted(directory.iterdir()) if directory and directory.is_dir() else ():
        suffix = path.suffix.lstrip(".")
        medium = Medium.VIDEO if suffix == "mp4" else Medium.EVENTS
        # No .npy: samples of others are pickled, which the server refuses.
        if suffix in ("mp4", "raw", "aedat4", "dat"):
            content = path.read_bytes()[:MAX_SAMPLE_BYTES]
            found.append(File(medium, suffix, content, width=640, height=480))
    return found


def hostile() -> list[File]:
    """Files made by hand, each for the part in which it does most harm."""
    scripts = [
        attacks.ffconcat("README.md"),
        attacks.ffconcat("/etc/passwd"),
        attacks.playlist("file:///etc/passwd"),
        attacks.playlist("http://127.0.0.1:9/x.ts"),
        attacks.session(45_678),
    ]
    events = [attacks.shared_tuples(dtype, 40) for dtype in ("'O'", '"|O"', "'|O8'")]
    events += [attacks.wide_recording(), attacks.empty_packets(4)]
    return [
        *(File(Medium.VIDEO, "mp4", script, "made by hand") for script in scripts),
        *(File(Medium.EVENTS, "npy", content, "made by hand") for content in events),
    ]
