"""Hostile files and bodies, as small as they can be and still do their work on an open server.

Each is made here, byte by byte, so that a reader sees what it does; none holds a program.
"""

import io
import struct
from pathlib import Path
from typing import Any

import numpy as np

SEGMENT_S = 1.6
"""What the playlists say that a file lasts."""


def shared_tuples(dtype: str, depth: int) -> bytes:
    """A ``.npy`` whose pickle nests one tuple in itself: hashing it doubles with every level."""
    header = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': ()}}".encode()
    header += b" " * (-(len(header) + 11) % 16) + b"\n"
    start = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
    nested = b")" + b"q\x00h\x00\x86" * depth  # (), then BINPUT, BINGET, TUPLE2 a level
    return start + b"\x80\x02cnumpy\ndtype\n" + nested + b"\x85R."


def ffconcat(name: str) -> bytes:
    """A script that makes FFmpeg open another file."""
    return f"ffconcat version 1.0\nfile {name}\n".encode()


def playlist(address: str) -> bytes:
    """The same in the words of HLS."""
    lines = ("#EXTM3U", "#EXT-X-TARGETDURATION:2", f"#EXTINF:{SEGMENT_S},", address)
    return "\n".join((*lines, "#EXT-X-ENDLIST", "")).encode()


def session(port: int) -> bytes:
    """A description of a session, in answer to which FFmpeg listens on two UDP ports."""
    lines = (
        "v=0", "o=- 0 0 IN IP4 127.0.0.1", "s=x", "c=IN IP4 127.0.0.1", "t=0 0",
        f"m=video {port} RTP/AVP 96", "a=rtpmap:96 H264/90000", "",
    )  # fmt: skip
    return "\n".join(lines).encode()


def wide_recording(width: int = 4096, height: int = 2304) -> bytes:
    """An ``.npz`` of two events on a sensor so large that every picture of it costs."""
    file = io.BytesIO()
    ends = np.array([0, 1000])
    np.savez_compressed(
        file, x=ends, y=ends, t=ends, p=np.array([0, 1]), sensor=np.array([width, height])
    )
    return file.getvalue()


def empty_packets(num_packets: int, num_bytes: int = 1 << 26) -> bytes:
    """An AEDAT4 recording whose packets unpack to ``num_bytes`` each and hold no event."""
    import zstandard

    info = (
        b'<node name="0" path="/mainloop/Recorder/outInfo/0/">'
        b'<attr key="typeIdentifier" type="string">EVTS</attr>'
        b'<attr key="sizeX" type="int">640</attr><attr key="sizeY" type="int">480</attr></node>'
    )
    # FlatBuffers: where the table is, its kind, the offsets of its fields, its fields.
    offsets = struct.pack("<5H", 10, 20, 4, 8, 16) + b"\0\0"
    fields = struct.pack("<iiqI", 12, 3, -1, 4) + struct.pack("<I", len(info)) + info
    header = struct.pack("<I", 20) + b"IOHE" + offsets + fields
    event = struct.pack("<I", 12) + b"EVTS" + struct.pack("<HHi", 4, 4, 4)
    packet = zstandard.compress((b"\0" * 4 + event).ljust(num_bytes, b"\0"), 3)
    start = b"#!AER-DAT4.0\r\n" + struct.pack("<I", len(header)) + header
    return start + (struct.pack("<ii", 0, len(packet)) + packet) * num_packets


def still_video(path: Path, width: int, height: int, num_frames: int) -> Path:
    """A video of one grey picture: a few bytes a frame, and all its pixels once decoded."""
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=30, options={"preset": "ultrafast"})
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        grey = np.full((height, width, 3), 90, np.uint8)
        for _ in range(num_frames):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(grey)))
        container.mux(stream.encode())
    return path


def repeated_frame(num_frames: int = 10) -> bytes:
    """An AVI with one frame twice, which its index does not know: OpenCV's FFmpeg crashes over it.

    (Of opencv-python-headless as vLLM 0.32 requires it. A later one may only refuse it.)
    """
    import av

    file = io.BytesIO()
    with av.open(file, "w", format="avi") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 48, 32, "yuv420p"
        noise = np.random.default_rng(0)
        for _ in range(num_frames):
            frame = noise.integers(0, 255, (32, 48, 3), np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame)))
        container.mux(stream.encode())
    content = file.getvalue()
    start = content.index(b"00dc", content.index(b"movi"))
    stop = start + 8 + struct.unpack_from("<I", content, start + 4)[0]
    stop += stop % 2
    return content[:stop] + content[start:stop] + content[stop:]


def optional_properties(count: int) -> dict[str, Any]:
    """A JSON schema whose grammar has to allow every subset of so many properties."""
    properties: dict[str, Any] = {f"{number:x}": {} for number in range(count)}
    return {"type": "object", "properties": properties, "additionalProperties": False}
