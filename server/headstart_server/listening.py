"""Where a server listens: tried before anything is loaded, and said when it answers."""

import asyncio
import errno
import socket
import sys
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any

from headstart_server.settings import Settings
from headstart_server.settings_table import SettingsError

LOOK_S = 0.05
# No machine has it (RFC 5737), and nothing is sent: it tells which of our addresses faces others.
_ELSEWHERE = ("192.0.2.1", 9)


def check_address(settings: Settings) -> None:
    """Raise where the server could not listen. vLLM tries it too, after a minute of imports."""
    if settings.vllm.get("uds"):
        return
    host = settings.vllm.get("host", settings.host) or ""
    port = settings.vllm.get("port", settings.port)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError, TypeError) as error:
            number = getattr(error, "errno", None)
            if number == errno.EADDRINUSE:
                raise SettingsError(
                    f"port {port} of {host} is taken: end what listens there, or choose another"
                    " with --port"
                ) from error
            if number == errno.EACCES:
                raise SettingsError(
                    f"only root may listen on port {port}: choose one above 1023 with --port"
                ) from error
            raise SettingsError(
                f"nobody can listen on {host}, port {port} ({error}): choose an address of this"
                " machine with --host, and a port up to 65535 with --port"
            ) from error


async def until_up(server: Any) -> None:
    """Return once uvicorn's server takes connections; it knows no event for that."""
    while not server.started:
        await asyncio.sleep(LOOK_S)


def lines(server: Any, settings: Settings, model: str, *, has_cameras: bool) -> list[str]:
    """What a person opens, and what a program asks, in order of use."""
    scheme = "https" if server.config.is_ssl else "http"
    names = [each.getsockname() for one in server.servers for each in one.sockets]
    if not names or isinstance(names[0], str):
        return [f"listening on {''.join(names[:1])}"]  # a Unix socket has no pages to open
    host, port = names[0][:2]
    is_anywhere = ip_address(host).is_unspecified
    here = f"{scheme}://{_written('127.0.0.1' if is_anywhere else host)}:{port}"
    shown = [f"page  {here}/"]
    if has_cameras:
        shown.append(f"live  {here}/live")
    shown.append(f"API   {here}/v1   (model {model!r})")
    if is_anywhere:
        shown.append(f"From other machines: {scheme}://{_written(_own_address())}:{port}")
    if not settings.open:
        shown.append("Each wants a key of [tenants], as Authorization: Bearer KEY.")
    return shown


def say(shown: Sequence[str]) -> None:
    print("\n".join(shown), file=sys.stderr, flush=True)


def _written(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _own_address() -> str:
    """The address by which other machines know this one, as far as it can tell."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ELSEWHERE)
        except OSError:
            return socket.gethostname()
        return str(probe.getsockname()[0])
