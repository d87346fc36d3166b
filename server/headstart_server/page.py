"""The pages at ``/`` and ``/live``, each one file, and the clips that they offer.

No page is built or loads anything from elsewhere. Clips are a directory of videos, with events of
the same names.
"""

import json
from http import HTTPStatus
from importlib.resources import files
from pathlib import Path

from headstart.answers.timeline import STAGE_COLOURS
from headstart_events.readers.opening import SUFFIXES
from headstart_server.refusal import RefusedError
from headstart_server.routes import DEMO

_FOLDER = files("headstart_server")
_LIVE_CAMERA = "/* live_camera.js */"
"""Where the script of the live camera, a file of its own, stands in the page."""

_STAGE_COLOURS = "/* stage colours */"
"""Where the colours of the stages stand, which charts and pictures share."""

PAGE = (
    _FOLDER.joinpath("page.html")
    .read_text()
    .replace(_STAGE_COLOURS, " ".join(f"--{s}: {colour};" for s, colour in STAGE_COLOURS.items()))
    .encode()
)
LIVE_PAGE = (
    _FOLDER.joinpath("live.html")
    .read_text()
    .replace(_LIVE_CAMERA, _FOLDER.joinpath("live_camera.js").read_text())
    .encode()
)

# Only the pages' own scripts and styles run, and they connect to this server only.
PAGE_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline';"
        b" connect-src 'self'; img-src data: blob:; media-src data: blob:; base-uri 'none';"
        b" form-action 'none'; frame-ancestors 'none'",
    ),
    (b"referrer-policy", b"no-referrer"),
]

WISHES = "demo.json"
_VIDEOS = {".mp4": b"video/mp4", ".webm": b"video/webm"}


class Demo:
    """Looks names up in a listing of the directory: a name from a client never becomes a path."""

    def __init__(self, directory: Path | None, *, compares: bool = False) -> None:
        """``compares`` is whether live cameras can be compared with vLLM alone."""
        self._directory, self._compares = directory, compares

    def listing(self) -> dict[str, object]:
        """The clips, as the page reads them."""
        files = sorted(self._files().values())
        events = {path.stem: path.name for path in files if path.suffix.lower() in SUFFIXES}
        clips = [
            {
                "name": path.stem,
                "video": f"{DEMO}/{path.name}",
                "events": f"{DEMO}/{events[path.stem]}" if path.stem in events else None,
            }
            for path in files
            if path.suffix.lower() in _VIDEOS
        ]
        return {"clips": clips, "compares": self._compares, **self._wishes()}

    def file(self, name: str) -> tuple[bytes, bytes]:
        path = self._files().get(name)
        if path is None:
            raise RefusedError(HTTPStatus.NOT_FOUND, "there is no such clip; see /demo")
        kind = _VIDEOS.get(path.suffix.lower(), b"application/octet-stream")
        return kind, path.read_bytes()

    def _wishes(self) -> dict[str, object]:
        """What the live page begins with, where the directory says so: a question, and whether the
        first clip plays at once."""
        file = None if self._directory is None else self._directory / WISHES
        if file is None or not file.is_file():
            return {}
        given = json.loads(file.read_text())
        return {name: given[name] for name in ("question", "plays") if name in given}

    def _files(self) -> dict[str, Path]:
        if self._directory is None:
            return {}
        endings = {*_VIDEOS, *SUFFIXES}
        return {
            path.name: path
            for path in self._directory.iterdir()
            if path.suffix.lower() in endings and path.is_file() and not path.is_symlink()
        }
