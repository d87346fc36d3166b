"""SIGTERM to a command whose engine still starts, as systemd, `timeout` or a person sends it."""

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from headstart.engine.interrupts import ENDED
from rig.forked_command import ForkedCommand
from rig.servers import free_port, wait_until

pytestmark = pytest.mark.engine

# A session of its own, so that its group is not that of the tests.
PROGRAM = "import os; os.setsid(); from headstart.cli import main; main()"
QUESTION = "What is happening?"
END_S = 60.0
"""It takes 6 s on a quiet machine; vLLM alone would wait for the lost engine for 600."""


@pytest.fixture(scope="module")
def street(tmp_path_factory) -> Path:
    from headstart_lab.street import street_video

    video = tmp_path_factory.mktemp("clips") / "street.mp4"
    street_video(num_frames=8, width=96, height=64).write(video)
    return video


def words(command: str, target: Path, video: Path) -> list[str]:
    match command:
        case "ask":
            clip = ["--video", str(video), "--question", QUESTION]
        case "watch":
            clip = [str(video), QUESTION]
        case _:
            clip = ["--open", "--port", str(free_port())]
    return [command, "--target", str(target), *clip, "--vllm", "enforce_eager=true"]


def alone(process: ForkedCommand) -> None:
    os.kill(process.pid, signal.SIGTERM)


def group(process: ForkedCommand) -> None:
    os.killpg(process.pid, signal.SIGTERM)


def like_timeout(process: ForkedCommand) -> None:
    """As coreutils' `timeout` does, which tells the command, and then its group."""
    alone(process)
    group(process)


def ctrl_c(process: ForkedCommand) -> None:
    os.killpg(process.pid, signal.SIGINT)


@pytest.mark.parametrize(
    ("command", "tell"),
    [
        ("ask", alone),
        ("ask", group),
        ("watch", like_timeout),
        ("serve", group),
        ("serve", ctrl_c),
    ],
)
def test_a_starting_engine_is_ended_with_its_command(
    tmp_path, tiny_target, street, command: str, tell: Callable[[ForkedCommand], None]
):
    log = tmp_path / "log"
    told = ["-c", PROGRAM, *words(command, tiny_target, street)]
    process = ForkedCommand(told, os.environ, log)
    started = psutil.Process(process.pid)

    def engine_starts() -> bool:
        assert process.poll() is None, log.read_text()
        return any("EngineCore" in " ".join(each.cmdline()) for each in started.children())

    try:
        wait_until(engine_starts, "an engine's process", 120, log)
        family = [started, *started.children(recursive=True)]
        tell(process)
        assert process.wait(END_S) == ENDED, log.read_text()
        _, left = psutil.wait_procs(family[1:], 10)
        assert not left
        assert "Traceback" not in log.read_text()
    finally:
        left = started.children(recursive=True) if started.is_running() else []
        for each in (*left, started):
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
