"""A model's name is looked up at once: paths here, and other names at the hub, one time."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from headstart.engine.model_name import check_name
from headstart.errors import EngineStartError

CHECK = """
import sys
from headstart.engine.model_name import check_name
from headstart.errors import EngineStartError
try:
    check_name(sys.argv[1])
except EngineStartError as error:
    print(error)
"""


@contextmanager
def hub(status: int) -> Iterator[tuple[str, list[str]]]:
    """A hub that answers so, and what it was asked."""
    asked: list[str] = []

    class Hub(BaseHTTPRequestHandler):
        def do_HEAD(self):
            asked.append(self.path)
            self.send_response(status)
            if status == 200:
                self.send_header("ETag", '"1"')
                self.send_header("X-Repo-Commit", "0" * 40)
            self.send_header("Content-Length", "2")
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()


def said_of(name: str, address: str, home) -> str:
    """What is said of a name where the hub is at an address; the variables are read at import."""
    environment = {**os.environ, "HF_ENDPOINT": address, "HF_HOME": str(home), "NO_PROXY": "*"}
    environment.pop("HF_HUB_OFFLINE")
    command = [sys.executable, "-c", CHECK, name]
    return subprocess.run(
        command, env=environment, cwd=home, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize(
    "name", ["{home}/target", "./target", "../x/target", "demo/target", "a/b/target", "my model"]
)
def test_what_can_only_be_a_path_is_asked_of_no_hub(tmp_path, monkeypatch, name):
    (tmp_path / "demo" / "drafter").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("socket.getaddrinfo", lambda *_: pytest.fail("a hub was asked"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    with pytest.raises(EngineStartError, match="there is no directory") as error:
        check_name(name.format(home=tmp_path))
    if name == "demo/target":
        assert "has no target; it has drafter" in str(error.value)


def test_a_directory_without_a_model_is_said_to_have_none(tmp_path, tiny_target):
    check_name(str(tiny_target))
    with pytest.raises(EngineStartError, match=r"has no config\.json"):
        check_name(str(tmp_path))


@pytest.mark.parametrize(
    ("status", "says"), [(404, "no such model"), (401, "no such model"), (503, "it answers 503")]
)
def test_a_model_that_the_hub_has_not_is_asked_for_once(tmp_path, status, says):
    with hub(status) as (address, asked):
        assert says in said_of("nobody/nothing", address, tmp_path)
    assert asked == ["/nobody/nothing/resolve/main/config.json"]


def test_a_model_that_the_hub_has_is_none_of_these(tmp_path):
    with hub(200) as (address, asked):
        assert said_of("somebody/something", address, tmp_path) == ""
    assert len(asked) == 1


def test_a_hub_that_does_not_answer_is_an_error_and_not_a_wait(tmp_path):
    with hub(200) as (address, _):
        pass
    assert "does not answer" in said_of("nobody/nothing", address, tmp_path)
