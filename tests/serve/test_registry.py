"""The registry of cameras, where one cannot be made: nothing of it stays."""

import asyncio

import pytest

from headstart.serve.access_log import AccessLog
from headstart.serve.camera_access import CameraAccess
from headstart.serve.live import registry as registry_module
from headstart.serve.live.messages import Registration
from headstart.serve.live.registry import CameraRegistry
from headstart.serve.settings import Limits

ACCESS = CameraAccess.of({"hosts": ["camera"], "hooks": ["http://home"]})
WANTED = Registration(
    source="rtsp://camera/street",
    stream="front",
    window_s=2.0,
    question="What is happening?",
    hook="http://home/answers",
)


class Places:
    """Counts the places that are taken."""

    num_taken = 0

    async def take(self, tenant: str, wanted: Registration) -> None:
        self.num_taken += 1

    def give_back(self, tenant: str) -> None:
        self.num_taken -= 1


def test_a_camera_that_cannot_be_made_gives_its_place_back(monkeypatch):
    def exhausted(url: str) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(registry_module, "open_sink", exhausted)
    places = Places()
    registry = CameraRegistry(places, ACCESS, Limits(), access_log=AccessLog(None))
    with pytest.raises(RuntimeError):
        asyncio.run(registry.register("north", WANTED))
    assert places.num_taken == 0
    assert registry.of("north") == []
