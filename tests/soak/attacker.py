"""Makes the requests of a hostile tenant: bodies from schemas, and files wherever one may be."""

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rig.servers import CHAT, MODEL, UPLOADS, asking
from tests.soak.file_maker import FileMaker
from tests.soak.file_seeds import File, Medium
from tests.soak.request_maker import RequestMaker

PATHS = (CHAT, CHAT, CHAT, "/v1/completions", "/tokenize", "/detokenize")
EVENT_FORMATS = ("raw", "dat", "csv")  # not recognisable by their first bytes


@dataclass(frozen=True)
class Attack:
    """One request to send, with the files in it."""

    path: str
    body: dict[str, Any] | None = None
    content: bytes = b""
    query: dict[str, str] = field(default_factory=dict)
    files: tuple[File, ...] = ()

    def told(self) -> str:
        """Enough of it to reproduce it."""
        names = [f"{file.format} ({file.damage})" for file in self.files]
        return f"{self.path} {names} {str(self.body)[:8000]}"


class Attacker:
    """Makes one request after another from a seed. Used from one thread only."""

    def __init__(self, seed: int, samples: Path | None, damaged: bool) -> None:
        """``damaged``: whether to damage the files; otherwise the load is an ordinary one."""
        self._chance = random.Random(seed)
        self._files = FileMaker(seed, samples)
        self._damaged = damaged
        self._sent: list[File] = []
        self._bodies = RequestMaker(seed, MODEL, self._url)

    def request(self) -> Attack:
        """Make a body from a schema."""
        self._sent = []
        path, kind = self._chance.choice(PATHS), self._chance.random()
        if not self._damaged or kind < 0.4:
            body = self._bodies.ours(path)
        elif kind < 0.7:
            body = self._bodies.vllms(path)
        else:
            # One field of vLLM's among ours, to see whether that one is refused.
            theirs = self._bodies.vllms(path)
            name = self._chance.choice(list(theirs))
            body = {**self._bodies.ours(path), name: theirs[name]}
        return Attack(path, body, files=tuple(self._sent))

    def file(self) -> Attack:
        """Make a file, in a request or as an upload."""
        medium = self._chance.choice((Medium.VIDEO, Medium.PICTURE, Medium.EVENTS))
        file = self._file(medium)
        if medium is Medium.EVENTS and self._chance.random() < 0.5:
            query = {"format": file.format} if file.format in EVENT_FORMATS else {}
            return Attack(UPLOADS, content=file.content, query=query, files=(file,))
        return Attack(CHAT, self._asking(file), files=(file,))

    def _asking(self, file: File) -> dict[str, Any]:
        body = asking("", "What?", max_tokens=1)
        name = file.medium.value
        address: dict[str, Any] = {"url": file.url(self._media_type())}
        if file.medium is Medium.EVENTS:
            if file.format in EVENT_FORMATS:
                address["format"] = file.format
                if self._chance.random() < 0.8:
                    address["sensor"] = f"{file.width}x{file.height}"
            if self._chance.random() < 0.5:
                address |= {"start_us": 0, "stop_us": 500_000}
        body["messages"][0]["content"][0] = {"type": name, name: address}
        return body

    def _media_type(self) -> str | None:
        """Sometimes a media type that is not the file's."""
        if not self._damaged or self._chance.random() < 0.8:
            return None
        return self._chance.choice(("video/mp4", "image/png", "video/jpeg", "text/plain"))

    def _file(self, medium: Medium) -> File:
        return self._files.damaged(medium) if self._damaged else self._files.ordinary(medium)

    def _url(self, kind: str) -> str:
        file = self._file(next((m for m in Medium if m.value == kind), Medium.VIDEO))
        self._sent.append(file)
        return file.url(self._media_type())
