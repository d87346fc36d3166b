"""Without an engine: what needs none works, and the rest says what to install."""

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"


def requirements(distribution: str, found: set[str]) -> set[str]:
    """A distribution's hard requirements, and theirs."""
    for line in importlib.metadata.requires(distribution) or ():
        if "extra ==" in line:
            continue
        name = re.match(r"[A-Za-z0-9._-]+", line)[0]
        try:
            importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # for another platform
        if name not in found:
            found.add(name)
            requirements(name, found)
    return found


def requirements_directory(site: Path, *more: str) -> Path:
    """Fill a directory with headstart's own requirements and nothing more.

    Of distributions that are named too it holds what they register; their modules lie beside it.
    """
    for name in {*requirements("headstart", set()), *more}:
        for file in importlib.metadata.files(name) or ():
            top = file.parts[0]
            link = site / top
            if top not in ("..", "__pycache__") and not link.exists():
                link.symlink_to(Path(file.locate()).parents[len(file.parts) - 1] / top)
    return site


@pytest.fixture(scope="module")
def base_install(tmp_path_factory):
    return requirements_directory(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def research_install(tmp_path_factory):
    """The same, where the commands of research are registered."""
    return requirements_directory(tmp_path_factory.mktemp("research"), "headstart-research")


def run(base_install, code, *arguments, beside=()):
    """Run code with headstart, and with what lies in the folders ``beside`` it."""
    found = [str(base_install), str(SOURCE), *(str(ROOT / folder) for folder in beside)]
    header = f"import sys; sys.path[:0] = {found!r}\n"
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", header + code, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_no_engine_is_there(base_install):
    for name in ("vllm", "torch", "transformers"):
        assert "No module" in run(base_install, f"import {name}").stderr


WRITE_VIDEO = """
import numpy as np
from headstart import Video
frames = np.zeros((30, 48, 64, 3), dtype=np.uint8)
for number, frame in enumerate(frames):
    frame[16:32, 2 * number : 2 * number + 8] = 255
Video.from_frames(frames, fps=25.0).write(sys.argv[1])
"""


@pytest.fixture(scope="module")
def video(base_install, tmp_path_factory):
    """A white box that moves to the right, written without an engine."""
    path = tmp_path_factory.mktemp("videos") / "box.mp4"
    done = run(base_install, WRITE_VIDEO, str(path))
    assert done.returncode == 0, done.stderr
    return path


def test_media_works(base_install, video):
    code = """
from headstart import Video
frames = Video.read(sys.argv[1], num_frames=8).frames
print([round(float((frame[24, :, 0] > 128).nonzero()[0].mean())) for frame in frames])
"""
    done = run(base_install, code, str(video))
    columns = [int(column) for column in done.stdout.strip("[]\n").split(",")]
    assert len(columns) == 8, done.stderr
    assert columns == sorted(columns)
    assert columns[-1] > columns[0] + 40


def test_asking_says_what_to_install(base_install):
    code = """
from headstart import Headstart, HeadstartError
try:
    Headstart("model")
except HeadstartError as error:
    print(error)
"""
    done = run(base_install, code)
    assert "pip install 'headstart[gpu]'" in done.stdout, done.stderr


def test_doctor_exits_with_the_command_that_mends(base_install):
    done = run(base_install, "from headstart.cli import main; main()", "doctor")
    assert done.returncode == 1
    assert "vLLM is not installed" in done.stdout, done.stderr
    assert "pip install 'headstart[gpu]'" in done.stdout


def test_an_error_is_a_message_without_a_traceback(base_install):
    arguments = ("ask", "--target", "m", "--video", __file__, "--question", "q")
    done = run(base_install, "from headstart.cli import main; main()", *arguments)
    assert done.returncode == 1
    assert "vLLM is not installed" in done.stderr
    assert "Traceback" not in done.stderr


def test_planning_needs_no_engine(research_install):
    code = "from headstart.cli import app; app(sys.argv[1:])"
    words = ("plan", "--prefill-ms", "326", "--step-ms", "13.8")
    done = run(research_install, code, *words, beside=("research", "events"))
    assert done.returncode == 0, done.stderr
    assert '"break_even"' in done.stdout


def test_measuring_says_what_to_install(research_install, video, tmp_path):
    code = "from headstart.cli import app; app(sys.argv[1:])"
    words = ["bench", "--target=nowhere", f"--out={tmp_path}"]
    words += [f"--folder={video.parent}", "--method=none", "--answers=2", "--warmup=0"]
    done = run(research_install, code, *words, beside=("research", "events"))
    assert done.returncode == 1
    assert "vLLM is not installed" in done.stderr


def test_the_live_client_needs_no_engine_and_says_what_it_needs(base_install):
    code = """
from headstart import HeadstartError
from headstart_client import LiveClient
for address in ("ws://127.0.0.1:1", "nowhere"):
    try:
        LiveClient(address, stream="front", window_s=1.0)
    except HeadstartError as error:
        print(error)
"""
    done = run(base_install, code, beside=("client",))
    assert "pip install 'headstart[client]'" in done.stdout, done.stderr
    assert "ws://HOST:PORT" in done.stdout


def test_publishing_to_a_broker_says_what_to_install(base_install):
    code = """
from headstart import HeadstartError
from headstart.live.sinks.mqtt import MqttPublisher
try:
    MqttPublisher("mqtt://127.0.0.1:1")
except HeadstartError as error:
    print(error)
"""
    done = run(base_install, code)
    assert "pip install 'headstart[mqtt]'" in done.stdout, done.stderr


def test_collecting_says_what_to_install(research_install, tmp_path):
    code = "from headstart.cli import app; app(sys.argv[1:])"
    words = ("collect", "--target=nowhere", f"--out={tmp_path / 'out'}")
    done = run(research_install, code, *words, beside=("research", "events"))
    assert done.returncode == 1
    assert "pip install 'headstart[train]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_evaluating_says_what_to_install(research_install, tmp_path):
    code = "from headstart.cli import app; app(sys.argv[1:])"
    done = run(research_install, code, "eval", str(tmp_path), beside=("research", "events"))
    assert done.returncode == 1
    assert "pip install 'headstart[train]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_bench_without_recordings_says_what_to_install(research_install, tmp_path):
    code = "from headstart.cli import app; app(sys.argv[1:])"
    words = ("bench", "--target=nowhere", f"--out={tmp_path}")
    done = run(research_install, code, *words, beside=("research", "events"))
    assert done.returncode == 1
    assert "pip install ./lab" in done.stderr
    assert "--folder" in done.stderr
    assert "Traceback" not in done.stderr
