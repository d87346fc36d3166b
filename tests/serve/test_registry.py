"""The registry of cameras, where one cannot be made: nothing of it stays."""

import asyncio

import pytest

from headstart_server.access_log import AccessLog
from headstart_server.camera_access import CameraAccess
from headstart_server.limits import Limits
from headstart_server.live import cameras as cameras_module
from headstart_server.live.cameras import CameraRegistry
from headstart_server.live.messages import Registration

ACCESS = CameraAccess.of({"hosts": ["camera"], "hooks": ["http://home"]})
WANTED = Registration(
    source="rtsp://camera/street",
    stream="front",
    window_s=2.0,
    question="What is happening?",
    hook="http://home/answers",
)


class Slots:
    """Counts the slots that are taken."""

    num_taken = 0

    async def take(self, tenant: str, wanted: Registration) -> None:
        self.num_taken += 1

    def give_back(self, tenant: str) -> None:
        self.num_taken -= 1


def test_a_camera_that_cannot_be_made_gives_its_slot_back(monkeypatch):
    def exhausted(url: str) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(cameras_module, "open_sink", exhausted)
    slots = Slots()
    registry = CameraRegistry(slots, ACCESS, Limits(), access_log=AccessLog(None))
    with pytest.raises(RuntimeError):
        asyncio.run(registry.register("north", WANTED))
    assert slots.num_taken == 0
    assert registry.of("north") == []


def test_cameras_share_the_processors_by_their_tenants(monkeypatch):
    opened = []
    monkeypatch.setattr(cameras_module, "open_camera", lambda *_, **more: opened.append(more))
    registry = CameraRegistry(Slots(), ACCESS, Limits(), access_log=AccessLog(None))
    for tenant in ("north", "south"):
        with pytest.raises(AttributeError):  # there is no camera
            asyncio.run(registry.register(tenant, WANTED))
    for name in ("reading", "decoding"):
        north, south = (more[name] for more in opened)
        assert (north.tenant, south.tenant) == ("north", "south")
        assert north._shares is south._shares
    assert opened[0]["reading"]._shares is not opened[0]["decoding"]._shares
