"""What the encoded video of one live camera costs the server: processor time and memory.

    python -m benchmarks.encoded_cost --pictures 64

Encodes a drawn street in several sizes and has a confined process decode it picture by picture, as
for a live camera. Memory is what this process alone holds: its own, and what it shares with the
server for one picture. Prints a table, then one line of JSON, also kept in benchmarks/results.
"""

import argparse
import asyncio
import sys
from fractions import Fraction
from pathlib import Path

import av
import psutil
from benchmarks.measurement import Measurement
from headstart_lab.street import street_video
from rich.console import Console
from rich.table import Table

from headstart.media.annex_b import Codec
from headstart.sandbox.confinement import ResourceLimits
from headstart.sandbox.pool import Pool, PoolSize
from headstart.sandbox.worker import BufferSizes
from headstart.serve.media.decoder import MediaDecoder, max_output_bytes
from headstart.serve.media.decoder_pool import environment
from headstart.serve.settings import Limits

SIZES = ((640, 480), (1280, 720), (1920, 1080), (4096, 2304))
ENCODERS = {
    Codec.H264: ("libx264", {"preset": "ultrafast", "bf": "0"}),
    Codec.H265: ("libx265", {"preset": "ultrafast", "x265-params": "bframes=0:log-level=none"}),
}
NUM_DRAWN = 16


def encoded(codec: Codec, width: int, height: int, num_pictures: int) -> list[bytes]:
    """A key picture, and others that build on it."""
    name, options = ENCODERS[codec]
    context = av.CodecContext.create(name, "w")
    assert isinstance(context, av.VideoCodecContext)
    context.width, context.height, context.pix_fmt = width, height, "yuv420p"
    context.time_base, context.gop_size, context.options = Fraction(1, 25), 1000, options
    drawn = street_video(num_frames=NUM_DRAWN, width=width, height=height).frames
    packets: list[av.Packet] = []
    for number in range(num_pictures):
        picture = av.VideoFrame.from_ndarray(drawn[number % NUM_DRAWN], format="rgb24")
        picture.pts = number
        packets += context.encode(picture)
    return [bytes(packet) for packet in (*packets, *context.encode(None))]


async def cost(decoder: MediaDecoder, codec: Codec, packets: list[bytes]) -> dict[str, float]:
    """Of one camera."""
    lease = decoder.lease("bench")
    try:
        picture = await decoder.encoded_picture(lease, codec, packets[0], begins=True)
        process = psutil.Process(lease.pid)
        before = process.cpu_times()
        for packet in packets[1:]:
            await decoder.encoded_picture(lease, codec, packet, begins=False)
        after, own_bytes = process.cpu_times(), process.memory_full_info().uss
    finally:
        lease.close()
    used_s = after.user + after.system - before.user - before.system
    return {
        "cpu_ms": round(used_s * 1e3 / (len(packets) - 1), 1),
        "own_mib": round(own_bytes / 2**20, 1),
        "shared_mib": round(picture.num_bytes / 2**20, 1),
    }


async def measure(num_pictures: int) -> dict[str, dict[str, float]]:
    """For each codec and size."""
    limits = Limits()
    pool = Pool(
        {"media_io_kwargs": {}, "vocabulary": None},
        environment(limits),
        PoolSize(1, 1),
        BufferSizes(limits.max_body_bytes, max_output_bytes(limits)),
        ResourceLimits(cpu_s=3600, memory_bytes=limits.decoder_bytes, has_threads=True),
    )
    pool.start()
    decoder, rows = MediaDecoder(pool, limits), {}
    try:
        for codec in Codec:
            for width, height in SIZES:
                packets = encoded(codec, width, height, num_pictures)
                rows[f"{codec} {width}x{height}"] = await cost(decoder, codec, packets)
    finally:
        pool.close()
        await asyncio.sleep(0.1)
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=int, default=64, help="of each size")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    rows = asyncio.run(measure(arguments.pictures))
    table = Table("video", "processor time a picture", "own memory", "shared memory")
    for name, row in rows.items():
        table.add_row(
            name, f"{row['cpu_ms']} ms", f"{row['own_mib']} MiB", f"{row['shared_mib']} MiB"
        )
    Console().print(table)
    command = ["python", "-m", "benchmarks.encoded_cost", *sys.argv[1:]]
    measurement = Measurement("encoded_cost", command, {"pictures": arguments.pictures, **rows})
    measurement.write(arguments.output)
    print(measurement.line())


if __name__ == "__main__":
    main()
