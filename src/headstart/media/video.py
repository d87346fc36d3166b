"""RGB video as arrays: decoding files, sampling, writing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

from headstart.errors import MediaError
from headstart.media.digests import digest_arrays

MAX_VIDEO_BYTES = 2 * 1024**3
"""The most that `Video.read` decodes by default: 48 s of 1280x720 at 15 Hz."""
FORMATS = ("mov", "mp4", "matroska", "webm", "avi", "mpegts", "mpeg", "ogg", "flv", "asf", "gif")
"""FFmpeg's names of the containers that are read. None of them can name other files or addresses,
as playlists, concat, SDP and numbered pictures do."""
OPEN_OPTIONS = {"format_whitelist": ",".join(FORMATS), "protocol_whitelist": "file"}
"""The options with which ``av.open`` opens any file."""


@dataclass(frozen=True, eq=False)
class Video:
    """Frames and their times.

    ``frames`` is uint8 [n, height, width, 3], RGB. ``times_us`` is int64 [n], increasing. Times of
    a file count from its first frame, also where only a window of it was read.
    """

    frames: NDArray[np.uint8]
    times_us: NDArray[np.int64]

    def __post_init__(self) -> None:
        shape = self.frames.shape
        if self.frames.dtype != np.uint8 or len(shape) != 4 or shape[3] != 3 or 0 in shape:
            raise MediaError(
                f"frames are {self.frames.dtype} {list(shape)}; "
                "give at least one, as uint8 [n, height, width, 3] in RGB"
            )
        if self.times_us.dtype != np.int64 or self.times_us.shape != shape[:1]:
            raise MediaError(
                f"times_us is {self.times_us.dtype} {list(self.times_us.shape)}; "
                f"give one int64 for each of the {shape[0]} frames"
            )
        if np.any(np.diff(self.times_us) <= 0):
            raise MediaError("frame times do not increase; sort the frames and drop duplicates")

    @classmethod
    def read(
        cls,
        path: str | Path,
        num_frames: int | None = None,
        start_us: int | None = None,
        stop_us: int | None = None,
        max_bytes: int = MAX_VIDEO_BYTES,
    ) -> Video:
        """Decode a file, or the window ``start_us <= time < stop_us`` of it.

        With ``num_frames``, that many frames spread uniformly are taken, or all if there are
        fewer. Only the frames taken are kept in memory, and at most ``max_bytes`` of them.
        """
        listed_us = frame_times(path)
        inside = np.ones(len(listed_us), dtype=bool)
        if start_us is not None:
            inside &= listed_us >= start_us
        if stop_us is not None:
            inside &= listed_us < stop_us
        candidates = np.flatnonzero(inside)
        if not len(candidates):
            raise MediaError(
                f"{path} has no frame in that window; it lasts {int(listed_us[-1])} us: "
                "choose start and stop inside it"
            )
        wanted = candidates[_spread(len(candidates), num_frames)]
        frames = _take(path, enumerate(_decode(path)), wanted, max_bytes)
        return cls(frames, listed_us[wanted])

    @classmethod
    def from_frames(cls, frames: NDArray[np.uint8], fps: float) -> Video:
        """A video of frames at a constant rate from time zero."""
        if not fps > 0:
            raise MediaError(f"fps is {fps}; give a positive number of frames per second")
        times_us = np.rint(np.arange(len(frames)) * (1e6 / fps)).astype(np.int64)
        return cls(frames, times_us)

    def __len__(self) -> int:
        return len(self.frames)

    def sample(self, num_frames: int) -> Video:
        """``num_frames`` frames spread uniformly, first and last included; all if fewer."""
        chosen = _spread(len(self), num_frames)
        return Video(self.frames[chosen], self.times_us[chosen])

    def digest(self) -> str:
        """A digest of the content: equal for equal pixels at equal times."""
        return digest_arrays("video", self.times_us, self.frames)

    def write(self, path: str | Path, fps: float = 25.0) -> None:
        """Encode the frames at a constant rate; the suffix of ``path`` names the container."""
        write_frames(path, self.frames, fps)


def write_frames(path: str | Path, frames: Iterable[NDArray[np.uint8]], fps: float) -> None:
    """Encode frames of one size, one at a time, at a constant rate."""
    try:
        with av.open(str(path), "w") as container:
            stream = None
            for frame in frames:
                # yuv420p, which every player shows, needs even sides.
                odd = [(0, side % 2) for side in frame.shape[:2]]
                even = np.pad(frame, [*odd, (0, 0)], mode="edge")
                if stream is None:
                    rate = Fraction(fps).limit_denominator(1000)
                    stream = container.add_stream(_encoder(), rate=rate)
                    stream.height, stream.width = even.shape[:2]
                    stream.pix_fmt = "yuv420p"
                picture = av.VideoFrame.from_ndarray(even, format="rgb24")
                container.mux(stream.encode(picture))
            if stream is None:
                raise MediaError(f"no frames to write to {path}; choose a longer window")
            container.mux(stream.encode(None))
    except (av.FFmpegError, OSError, ValueError) as error:
        raise MediaError(
            f"cannot write {path}: {error}; choose a writable path ending in .mp4 or .mkv"
        ) from error


def stream_frames(path: str | Path) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Yield each frame of a file with its time in us, one in memory at a time."""
    for time_us, frame in zip(frame_times(path), _decode(path), strict=False):
        yield int(time_us), frame.to_ndarray(format="rgb24")


def read_windows(
    path: str | Path, windows: Iterable[tuple[int, int]], num_frames: int
) -> Iterator[Video]:
    """As `Video.read` of each window in turn, with the file decoded once; empty ones are left out.

    Windows are ``(start_us, stop_us)``, in order, and do not overlap.
    """
    listed_us, decoded = frame_times(path), enumerate(_decode(path))
    for start_us, stop_us in windows:
        inside = np.flatnonzero((listed_us >= start_us) & (listed_us < stop_us))
        if len(inside):
            wanted = inside[_spread(len(inside), num_frames)]
            yield Video(_take(path, decoded, wanted, MAX_VIDEO_BYTES), listed_us[wanted])


def frame_times(path: str | Path) -> NDArray[np.int64]:
    """The time of each frame, from the packets: cheap, and right also where headers are wrong."""
    ticks: list[int] = []
    num_packets = 0
    with _open(path) as container:
        stream = container.streams.video[0]
        num_declared, time_base, rate = stream.frames, stream.time_base, stream.average_rate
        try:
            for packet in container.demux(stream):
                # The last packet is empty: a signal to flush the decoder.
                if packet.size and not packet.is_discard:
                    num_packets += 1
                    if packet.pts is not None:
                        ticks.append(packet.pts)
        except (av.FFmpegError, ValueError) as error:
            raise MediaError(f"{path} is damaged ({error}); copy it again") from error
    if not num_packets:
        raise MediaError(f"{path} has no frames; it may be truncated: copy it again")
    if num_packets < num_declared:
        raise MediaError(
            f"{path} is truncated: {num_packets} of {num_declared} frames are there; copy it again"
        )
    if len(ticks) == num_packets and time_base:
        # Packets are in decoding order, frames in presentation order.
        ordered = sorted(ticks)
        times = [round((tick - ordered[0]) * time_base * 1_000_000) for tick in ordered]
    else:
        us_per_frame = 1_000_000 / (rate or Fraction(25))
        times = [round(index * us_per_frame) for index in range(num_packets)]
    if times[-1] > np.iinfo(np.int64).max:
        raise MediaError(f"{path} states times beyond all years; re-encode it with ffmpeg")
    return np.array(times, dtype=np.int64)


def count_frames(path: str | Path) -> int:
    return len(frame_times(path))


def _spread(num_available: int, num_frames: int | None) -> NDArray[np.int64]:
    if num_frames is not None and num_frames < 1:
        raise MediaError(f"{num_frames} frames were asked for; ask for at least one")
    if num_frames is None or num_frames >= num_available:
        return np.arange(num_available, dtype=np.int64)
    return np.linspace(0, num_available - 1, num_frames).astype(np.int64)


def _take(
    path: str | Path,
    decoded: Iterable[tuple[int, av.VideoFrame]],
    wanted: NDArray[np.int64],
    max_bytes: int,
) -> NDArray[np.uint8]:
    """Decode up to the last of the frames numbered ``wanted`` (increasing) and keep those."""
    frames: NDArray[np.uint8] | None = None
    num_kept = 0
    for index, frame in decoded:
        if index != wanted[num_kept]:
            continue
        if frames is None:
            num_bytes = len(wanted) * frame.height * frame.width * 3
            if num_bytes > max_bytes:
                raise MediaError(
                    f"{len(wanted)} frames of {path} need {num_bytes} bytes, over the limit of "
                    f"{max_bytes}; ask for fewer frames or a shorter window"
                )
            frames = np.empty((len(wanted), frame.height, frame.width, 3), dtype=np.uint8)
        if (frame.height, frame.width) != frames.shape[1:3]:
            raise MediaError(f"{path} changes its picture size midway; re-encode it with ffmpeg")
        frames[num_kept] = frame.to_ndarray(format="rgb24")
        num_kept += 1
        if num_kept == len(wanted):
            return frames
    raise MediaError(
        f"{path} is truncated or damaged: {num_kept} of {len(wanted)} frames could be decoded; "
        "copy it again, or choose a window before the damage"
    )


def _open(path: str | Path) -> av.container.InputContainer:
    if not Path(path).is_file():
        raise MediaError(f"{path} is not a file; check the path")
    try:
        container = av.open(str(path), options=OPEN_OPTIONS)
    except (av.FFmpegError, OSError, ValueError) as error:
        raise MediaError(
            f"{path} is not a video that FFmpeg reads ({error}); convert it with ffmpeg"
        ) from error
    if not container.streams.video:
        container.close()
        raise MediaError(f"{path} has no video in it; choose a file with a video stream")
    return container


def _decode(path: str | Path) -> Iterator[av.VideoFrame]:
    with _open(path) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        try:
            yield from container.decode(stream)
        except (av.FFmpegError, ValueError) as error:
            raise MediaError(
                f"{path} is damaged ({error}); copy it again, or choose a window before the damage"
            ) from error


def _encoder() -> str:
    return "libx264" if "libx264" in av.codecs_available else "mpeg4"
