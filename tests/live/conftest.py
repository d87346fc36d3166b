"""Cameras on the shared engine, and the reference for what is said about their frames."""

import pytest

from headstart.live.session import LiveSession
from rig.camera import MAX_TOKENS, QUESTION, TUMBLING, Camera


@pytest.fixture
def open_camera(headstart, request):
    """Opens a live session of a tenant of its own: nothing of it is cached before."""
    opened = []

    def open_camera(windows=TUMBLING, stream="camera", **options):
        tenant = f"{request.node.name} {len(opened)}"
        camera = Camera(LiveSession(headstart.session(stream, tenant), windows, **options))
        opened.append(camera)
        return camera

    yield open_camera
    for camera in opened:
        camera.live.close()


@pytest.fixture
def expected(oracle):
    """transformers' answer about frames that it is shown as a whole."""
    from tests.models.oracle import Asked  # needs what the engine brings

    def answer(frames, question=QUESTION):
        return tuple(oracle.answer(Asked(frames, question), MAX_TOKENS)[0])

    return answer
