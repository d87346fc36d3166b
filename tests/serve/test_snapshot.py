"""The newest picture of a camera, for people."""

import asyncio
import io

import numpy as np
import PIL.Image

from headstart_server.live import source_camera
from headstart_server.live.source_camera import Snapshot


def grey(level: int, height: int = 720, width: int = 1280) -> np.ndarray:
    return np.full((height, width, 3), level, np.uint8)


def seen(content: bytes) -> tuple[tuple[int, int], int]:
    image = PIL.Image.open(io.BytesIO(content))
    assert image.format == "JPEG"
    return image.size, round(float(np.asarray(image).mean()))


def test_it_is_small_and_keeps_its_shape():
    async def run() -> None:
        assert seen(await Snapshot().of(grey(200))) == ((640, 360), 200)
        assert seen(await Snapshot().of(grey(9, 64, 96))) == ((96, 64), 9)

    asyncio.run(run())


def test_however_many_ask_few_are_encoded(monkeypatch):
    monkeypatch.setattr(source_camera, "FRESH_S", 3600.0)

    async def run() -> None:
        made = Snapshot()
        pictures = await asyncio.gather(*(made.of(grey(level)) for level in range(100)))
        assert len(set(pictures)) == 1
        monkeypatch.setattr(source_camera, "FRESH_S", 0.0)
        assert seen(await made.of(grey(77)))[1] == 77

    asyncio.run(run())


def test_who_leaves_takes_the_picture_from_nobody():
    async def run() -> None:
        made = Snapshot()
        left, stays = (asyncio.ensure_future(made.of(grey(50))) for _ in range(2))
        await asyncio.sleep(0)
        left.cancel()
        assert seen(await stays)[1] == 50

    asyncio.run(run())
