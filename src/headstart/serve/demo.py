"""Clips the operator lays out for the page: a directory of videos, and events of the same name."""

from http import HTTPStatus
from pathlib import Path

from headstart.media.readers.opening import READABLE
from headstart.serve.guard import DEMO
from headstart.serve.refusal import RefusedError

_VIDEOS = {".mp4": b"video/mp4", ".webm": b"video/webm"}
_EVENTS = tuple(ending.strip(" ,") for ending in READABLE.replace(" or ", ", ").split(","))


class Demo:
    """Files are found by looking, so no name a client sends is ever a path."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory

    def listing(self) -> dict[str, object]:
        """The clips there are."""
        files = self._files()
        clips = []
        for name, path in sorted(files.items()):
            if path.suffix.lower() in _VIDEOS:
                events = [other for other in files if _goes_with(files[other], path)]
                clips.append(
                    {
                        "name": path.stem,
                        "video": f"{DEMO}/{name}",
                        "events": f"{DEMO}/{events[0]}" if events else None,
                    }
                )
        return {"clips": clips}

    def file(self, name: str) -> tuple[bytes, bytes]:
        """One file's content type and content."""
        path = self._files().get(name)
        if path is None:
            raise RefusedError(HTTPStatus.NOT_FOUND, "there is no such clip; see /demo")
        kind = _VIDEOS.get(path.suffix.lower(), b"application/octet-stream")
        return kind, path.read_bytes()

    def _files(self) -> dict[str, Path]:
        if self._directory is None:
            return {}
        endings = {*_VIDEOS, *_EVENTS}
        return {
            path.name: path
            for path in self._directory.iterdir()
            if path.suffix.lower() in endings and path.is_file() and not path.is_symlink()
        }


def _goes_with(events: Path, video: Path) -> bool:
    return events.stem == video.stem and events.suffix.lower() in _EVENTS
