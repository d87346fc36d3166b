"""Starts GStreamer's RTSP server, a process of the system's Python (`make rtsp` installs it)."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

PYTHON = "/usr/bin/python3"
SERVER = Path(__file__).parent / "rtsp_server.py"
HAS_SERVER = (
    Path(PYTHON).exists()
    and not subprocess.run(
        [PYTHON, "-c", "import gi; gi.require_version('GstRtspServer', '1.0')"],
        capture_output=True,
        check=False,
    ).returncode
)


def pipeline(film: Path, payloader: str) -> str:
    """Sends a Matroska file."""
    return f"filesrc location={film} ! matroskademux ! {payloader} name=pay0"


@contextmanager
def rtsp_server(
    mounts: Sequence[str], *login: str, port: str = "0"
) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """Run a server of paths and pipelines in turn; gives its port and its process."""
    process = subprocess.Popen(
        [PYTHON, SERVER, port, *login, "--", *mounts], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip(), process
    finally:
        process.kill()
        process.wait()
