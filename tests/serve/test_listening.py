"""Where a server listens: said before anything is loaded, and when it answers."""

import asyncio
import io
import socket
import threading
from types import SimpleNamespace

import pytest

from headstart_server import listening
from headstart_server.access_log import AccessLog
from headstart_server.settings import Settings
from headstart_server.settings_table import SettingsError


@pytest.fixture
def taken():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_taken_port_is_refused(taken, host):
    with pytest.raises(SettingsError, match=rf"port {taken} of {host} is taken.*--port"):
        listening.check_address(Settings(host=host, port=taken))
    with pytest.raises(SettingsError, match="is taken"):
        listening.check_address(Settings(vllm={"port": taken}))


@pytest.mark.parametrize("place", [{"host": "192.0.2.1"}, {"port": 65536}, {"host": "no.invalid"}])
def test_an_address_that_is_not_here_is_refused(place):
    with pytest.raises(SettingsError, match=r"nobody can listen.*--host"):
        listening.check_address(Settings(**{"port": 0, **place}))


def test_a_free_port_is_left_free():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    for _ in range(2):
        listening.check_address(Settings(port=port))


def test_the_command_refuses_a_taken_port_before_it_reads_the_model(taken, tmp_path):
    from typer.testing import CliRunner

    from headstart.cli import app

    (tmp_path / "config.json").write_text("{}")  # reading it would be another error
    done = CliRunner().invoke(
        app, ["serve", "--model", str(tmp_path), "--open", "--port", str(taken)]
    )
    assert done.exit_code == 1
    assert f"port {taken} of 127.0.0.1 is taken" in done.stderr


def shown(host: str, *, has_cameras: bool = True, **settings) -> tuple[list[str], int]:
    """What is said of a socket that listens."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listener:
        listener.bind((host, 0))
        server = SimpleNamespace(
            config=SimpleNamespace(is_ssl=False), servers=[SimpleNamespace(sockets=[listener])]
        )
        lines = listening.lines(server, Settings(**settings), "target", has_cameras=has_cameras)
        return lines, listener.getsockname()[1]


def test_the_page_the_cameras_and_the_api_are_named():
    lines, port = shown("127.0.0.1", open=True)
    here = f"http://127.0.0.1:{port}"
    assert [line.split()[1] for line in lines] == [f"{here}/", f"{here}/live", f"{here}/v1"]
    assert "'target'" in lines[-1]
    assert len(shown("127.0.0.1", open=True, has_cameras=False)[0]) == 2


def test_a_key_is_said_to_be_wanted():
    assert "a key of [tenants]" in shown("127.0.0.1")[0][-1]


def test_a_server_for_all_machines_names_an_address_that_they_can_use():
    lines, port = shown("0.0.0.0", open=True)
    assert f"http://127.0.0.1:{port}/" in lines[0]
    assert "From other machines: http://" in lines[-1]
    assert "0.0.0.0" not in "".join(lines)


def test_addresses_of_the_newer_protocol_are_written_in_brackets():
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    lines, port = shown("::1", open=True)
    assert f"http://[::1]:{port}/" in lines[0]


def test_nothing_is_said_before_the_server_takes_connections(monkeypatch):
    """By its own count of looks, not by the clock."""
    server, looks = SimpleNamespace(started=False), []

    async def look(seconds):
        looks.append(seconds)
        server.started = len(looks) == 3

    monkeypatch.setattr(listening.asyncio, "sleep", look)
    asyncio.run(listening.until_up(server))
    assert len(looks) == 3


def test_what_was_noted_before_is_written_before(monkeypatch):
    """On a terminal the access log and the addresses share the screen."""

    class Slow(io.StringIO):
        def write(self, text):
            may_write.wait()
            return super().write(text)

    may_write, words = threading.Event(), Slow()
    log = AccessLog(None, words)
    log.note(event="up")
    asked = threading.Thread(target=log.settle)
    asked.start()
    assert words.getvalue() == ""
    may_write.set()
    asked.join()
    assert '"event": "up"' in words.getvalue()
    log.close()
