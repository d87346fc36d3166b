"""A gateway without an engine."""

from types import SimpleNamespace

from headstart_server.access_log import AccessLog
from headstart_server.admission import Admission
from headstart_server.gateway import Gateway
from headstart_server.live.camera_routes import CameraRoutes
from headstart_server.memory.routes import MemoryRoutes
from headstart_server.quota import Quota
from headstart_server.readiness import Heartbeat, Readiness
from headstart_server.settings import Settings


async def respond() -> None:
    return


def gateway_of(settings: Settings, log: AccessLog, answering, registry=None) -> Gateway:
    """Made in an event loop; ``answering`` is what requests to the target come to."""
    quota = Quota(settings.limits)
    admission = Admission(settings, quota, lambda said: None)
    engine = SimpleNamespace(errored=False, check_health=respond)
    front_end = SimpleNamespace(engine=engine, draft_model=None)
    decoder, heartbeat = SimpleNamespace(is_up=True), Heartbeat(respond, 30.0)
    readiness = Readiness(front_end, decoder, admission, heartbeat)
    cameras = CameraRoutes(settings, admission, registry)
    memory = MemoryRoutes(settings, quota, None)
    return Gateway(None, settings, answering, log, admission, readiness, None, cameras, memory)
