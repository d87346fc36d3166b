"""Compares the time of decoding in a confined process and in the server's own.

    python -m benchmarks.sandbox_cost --clips 60

Decodes clips of several sizes both ways in turn, from bytes in memory to frames in memory. Both
ways use vLLM's own loader and take eight frames of a clip; the frames are compared.
Prints a table, then one line of JSON, which is also kept in benchmarks/results.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.measurement import Measurement
from headstart_lab.street import street_video
from rich.console import Console
from rich.table import Table
from vllm.multimodal.media import ImageMediaIO, VideoMediaIO

from headstart.sandbox.confinement import ResourceLimits
from headstart.sandbox.pool import Pool, PoolSize
from headstart.sandbox.worker import BufferSizes
from headstart.serve.media.decoder import MediaDecoder, max_output_bytes
from headstart.serve.media.decoder_pool import environment
from headstart.serve.media.fetcher import Fetched
from headstart.serve.settings import Limits

SIZES = ((224, 224), (336, 336), (640, 480), (1280, 720))
NUM_FRAMES = 8


async def timed(work: Callable[[], Awaitable[Any]]) -> tuple[float, Any]:
    """The time in milliseconds, and the result."""
    start_s = time.perf_counter()
    found = await work()
    return (time.perf_counter() - start_s) * 1e3, found


async def measure(contents: dict[str, bytes], num_clips: int) -> dict[str, dict[str, float]]:
    """Medians and quartiles for each size."""
    limits = Limits()
    pool = Pool(
        {"media_io_kwargs": {"video": {"num_frames": NUM_FRAMES}}, "vocabulary": None},
        environment(limits),
        PoolSize(1, 1),
        BufferSizes(limits.max_body_bytes, max_output_bytes(limits)),
        ResourceLimits(cpu_s=3600, memory_bytes=limits.decoder_bytes, has_threads=True),
    )
    pool.start()
    decoder, loader = (
        MediaDecoder(pool, limits),
        VideoMediaIO(ImageMediaIO(), num_frames=NUM_FRAMES),
    )
    rows = {}
    try:
        for name, content in contents.items():
            apart, within = [], []
            for number in range(num_clips + 3):
                one = await timed(lambda: decoder.video("bench", Fetched(content)))  # noqa: B023
                other = await timed(
                    lambda: asyncio.to_thread(lambda: loader.load_bytes(content).media[0])  # noqa: B023
                )
                if not np.array_equal(one[1].frames, other[1]):
                    raise SystemExit(f"{name}: the two ways give different frames")
                if number >= 3:  # both are warm
                    apart.append(one[0])
                    within.append(other[0])
            more = np.subtract(apart, within)
            rows[name] = {
                "in_process_ms": round(float(np.median(within)), 2),
                "sandbox_ms": round(float(np.median(apart)), 2),
                "more_ms": round(float(np.median(more)), 2),
                "more_ms_p25": round(float(np.quantile(more, 0.25)), 2),
                "more_ms_p75": round(float(np.quantile(more, 0.75)), 2),
            }
    finally:
        pool.close()
        await asyncio.sleep(0.1)
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clips", type=int, default=60, help="of each size")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    contents = {}
    with tempfile.TemporaryDirectory() as home:
        for width, height in SIZES:
            path = Path(home) / "clip.mp4"
            street_video(num_frames=16, width=width, height=height).write(path)
            contents[f"{width}x{height}"] = path.read_bytes()
    rows = asyncio.run(measure(contents, arguments.clips))
    table = Table("clip", "in process", "confined", "more", "middle half")
    for name, row in rows.items():
        spread = f"{row['more_ms_p25']} to {row['more_ms_p75']}"
        table.add_row(
            name,
            f"{row['in_process_ms']} ms",
            f"{row['sandbox_ms']} ms",
            f"{row['more_ms']} ms",
            spread,
        )
    Console().print(table)
    command = ["python", "-m", "benchmarks.sandbox_cost", *sys.argv[1:]]
    measurement = Measurement("sandbox_cost", command, {"clips": arguments.clips, **rows})
    measurement.write(arguments.output)
    print(measurement.line())


if __name__ == "__main__":
    main()
