"""Bridges published to a hub and fetched from it, with the hub's own client."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("huggingface_hub", reason="comes with the engine")

from headstart.errors import TrainingError
from headstart_research.bridge.hub import bridge_directory, is_hub_name, push_to_hub
from tests.bridge import hub_server

BRIDGE = Path(__file__).parents[2] / "lab" / "headstart_lab" / "pair" / "bridge"
NAME = "someone/street-bridge"
FILES = ("config.json", "model.safetensors", "README.md")
PUSH = "print(push_to_hub(Path(sys.argv[1]), sys.argv[2]))"
FETCH = "print(bridge_directory(sys.argv[1]))"
LOAD = """
from headstart_research.bridge.bridge import Bridge
print(Bridge.from_pretrained(sys.argv[1]).verifier.digest)
"""


@pytest.fixture(scope="module")
def hub():
    with hub_server.running() as running:
        yield running


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Where the client keeps what it has fetched."""
    return tmp_path_factory.mktemp("home")


def run(code, hub, home, *arguments, **variables):
    """In a process of its own: the client reads its settings once, as it is imported."""
    header = """
import sys
from pathlib import Path
from headstart_research.bridge.hub import bridge_directory, push_to_hub
from headstart.errors import HeadstartError
try:
    exec(sys.argv.pop(1))
except HeadstartError as error:
    sys.exit(f"refused: {error}")
"""
    settings = {
        "HF_ENDPOINT": hub.address,
        "HF_HOME": str(home),
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_DISABLE_XET": "1",  # its storage is a service of its own
        "HF_TOKEN": hub_server.TOKEN,
        "NO_PROXY": "127.0.0.1",
    }
    return subprocess.run(
        [sys.executable, "-c", header, code, *map(str, arguments)],
        env={**os.environ, **settings, **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def published(hub, home, tmp_path_factory):
    """The lab's bridge, from a directory with other files in it."""
    directory = tmp_path_factory.mktemp("bridge") / "my-bridge"
    shutil.copytree(BRIDGE, directory)
    (directory / "training").mkdir()
    (directory / "training" / "state.pt").write_text("state")
    done = run(PUSH, hub, home, directory, NAME)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[-1]


def test_a_bridge_is_published_in_one_commit_without_what_lies_beside_it(hub, published):
    assert published == f"{hub.address}/{NAME}/commit/{hub.commits[NAME][0]}"
    assert len(hub.commits[NAME]) == 1
    assert hub.models[NAME] == {name: (BRIDGE / name).read_bytes() for name in FILES}
    assert len(hub.large) == 1  # the weights, as large files go


def test_it_is_fetched_by_name_and_then_found_without_the_hub(hub, home, published):
    done = run(FETCH, hub, home, NAME)
    assert done.returncode == 0, done.stderr
    fetched = Path(done.stdout.split()[-1])
    for name in FILES:
        assert (fetched / name).read_bytes() == (BRIDGE / name).read_bytes()
    num_requests = len(hub.requests)
    again = run(FETCH, hub, home, NAME, HF_HUB_OFFLINE="1")
    assert again.returncode == 0, again.stderr
    assert Path(again.stdout.split()[-1]) == fetched
    assert len(hub.requests) == num_requests


@pytest.mark.slow
def test_it_drafts_for_the_same_target(hub, home, published):
    done = run(LOAD, hub, home, NAME)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] in (BRIDGE / "config.json").read_text()


def test_an_unknown_name_says_what_to_check(hub, home):
    done = run(FETCH, hub, home, "someone/nothing")
    assert done.returncode == 1
    assert "refused: someone/nothing" in done.stderr
    assert "check the name" in done.stderr


def test_who_may_not_write_is_told_so(hub, home):
    done = run(PUSH, hub, home, BRIDGE, "someone/else", HF_TOKEN="hf_other")
    assert done.returncode == 1
    assert "HF_TOKEN" in done.stderr
    assert "someone/else" not in hub.models


def test_what_is_no_bridge_is_not_published(tmp_path):
    with pytest.raises(TrainingError, match="no config of a bridge"):
        push_to_hub(tmp_path, NAME)
    shutil.copy(BRIDGE / "config.json", tmp_path)
    with pytest.raises(TrainingError, match=r"lacks model\.safetensors, README\.md"):
        push_to_hub(tmp_path, NAME)
    with pytest.raises(TrainingError, match="owner/model"):
        push_to_hub(BRIDGE, "../elsewhere")


def test_a_directory_needs_no_hub(tmp_path):
    assert bridge_directory(tmp_path) == tmp_path
    with pytest.raises(TrainingError, match="check the path"):
        bridge_directory(tmp_path / "missing" / "bridge")


def test_names_of_a_hub_are_told_from_paths():
    assert is_hub_name("someone/a.bridge-1")
    for path in ("bridge", "a/b/c", "../bridge", "/srv/bridge", "a b/c"):
        assert not is_hub_name(path)
