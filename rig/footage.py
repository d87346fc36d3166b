"""Video whose frames tell their number, and what a source must leave behind: nothing."""

import itertools
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import av
import numpy as np

HEIGHT, WIDTH = 48, 64
LEVELS = 50
"""Frames after so many look the same again."""


def numbered(num_frames: int) -> np.ndarray:
    """Frame i has a grey of its own, far enough from its neighbours' to survive an encoder.

    The right half is noise, the same in every frame, which makes key frames large.
    """
    levels = (20 + 4 * (np.arange(num_frames) % LEVELS)).astype(np.uint8)
    shape = (num_frames, HEIGHT, WIDTH, 3)
    frames = np.broadcast_to(levels[:, None, None, None], shape).copy()
    noise = np.random.default_rng(5).integers(0, 255, (HEIGHT, WIDTH // 2, 3), dtype=np.uint8)
    frames[:, :, WIDTH // 2 :] = noise
    return frames


def number_of(frame: np.ndarray) -> int:
    """Which of the `numbered` frames this is."""
    return round((float(frame[:, : WIDTH // 4].mean()) - 20) / 4)


def write_camera_video(
    path: Path, num_frames: int, codec: str = "libx264", fps: int = 25, gop: int = 10
) -> bytes:
    """Encode `numbered` frames as cameras do."""
    encode(path, numbered(num_frames), codec, fps, gop)
    return path.read_bytes()


def encode(
    path: Path,
    frames: Iterable[np.ndarray],
    codec: str = "libx264",
    fps: int = 25,
    gop: int = 10,
    **more: str,
) -> None:
    """Write a film as cameras do: a key frame often, none held back."""
    options = {"g": str(gop), "bf": "0", "preset": "ultrafast", "tune": "zerolatency", **more}
    if codec == "libx265":
        options = {"x265-params": f"keyint={gop}:bframes=0:log-level=none", "preset": "ultrafast"}
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=fps, options=options)
        for number, frame in enumerate(frames):
            if not number:
                stream.height, stream.width = frame.shape[:2]
                stream.pix_fmt = "yuv420p"
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode(None))


def children() -> set[int]:
    """Processes that this one has started and that still run."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            found |= {int(pid) for pid in (task / "children").read_text().split()}
    return found


@contextmanager
def nothing_left() -> Iterator[None]:
    """Fails where a thread or a process is there afterwards that was not before."""
    threads, processes = set(threading.enumerate()), children()
    yield
    left = {thread.name for thread in threading.enumerate() if thread not in threads}
    assert not {name for name in left if not name.startswith("test server")}
    assert children() <= processes


def is_increasing(times: list[int]) -> bool:
    """Whether each time is later than the one before."""
    return all(before < after for before, after in itertools.pairwise(times))
