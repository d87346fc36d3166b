"""Recordings of events that clients uploaded: each tenant's apart, bounded, gone at the end.

A file here has no name on the disk, only a descriptor of this process: however the process ends,
nothing is left.
"""

import secrets
import tempfile
from collections import OrderedDict
from dataclasses import dataclass
from http import HTTPStatus
from typing import BinaryIO

from headstart.serve.refusal import RefusedError
from headstart.serve.settings import Limits

ID_PREFIX = "events-"


@dataclass(frozen=True)
class Upload:
    """One kept file. Whoever holds it can read it, also after it has been removed here.

    Its descriptor is shared and has one position: read with `os.pread`, or open it anew.
    """

    file: BinaryIO
    suffix: str
    """Of the format the client named; empty where the first bytes tell."""
    num_bytes: int


class Library:
    """Used from one event loop only, except `find`."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._uploads: dict[str, OrderedDict[str, Upload]] = {}

    def add(self, tenant: str, content: bytes, suffix: str) -> str:
        """Keep a recording; the tenant's oldest make room for it, nobody else's."""
        limits = self._limits
        if len(content) > limits.max_upload_bytes:
            raise RefusedError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"a tenant's uploads hold {limits.max_upload_bytes} bytes together;"
                " cut the recording",
            )
        kept = self._uploads.setdefault(tenant, OrderedDict())
        others = self.num_uploads - len(kept)
        others_bytes = self.num_bytes - _num_bytes(kept)
        if (
            others + 1 > limits.max_all_uploads
            or others_bytes + len(content) > limits.max_all_upload_bytes
        ):
            raise _no_room()
        most = min(limits.max_uploads, limits.max_all_uploads - others)
        most_bytes = min(limits.max_upload_bytes, limits.max_all_upload_bytes - others_bytes)
        while len(kept) + 1 > most or _num_bytes(kept) + len(content) > most_bytes:
            # Not closed: it may just be read. The last who holds it lets it go.
            kept.popitem(last=False)
        name = ID_PREFIX + secrets.token_hex(16)
        kept[name] = Upload(_unnamed_file(content), suffix, len(content))
        return name

    def find(self, tenant: str, name: str) -> Upload:
        """A tenant's upload. Another tenant's is not found, like one that never was."""
        upload = self._uploads.get(tenant, OrderedDict()).get(name)
        if upload is None:
            raise RefusedError(
                HTTPStatus.NOT_FOUND, f"there is no upload {name[:64]!r}; upload it (again)"
            )
        return upload

    @property
    def num_uploads(self) -> int:
        """Of all tenants."""
        return sum(map(len, self._uploads.values()))

    @property
    def num_bytes(self) -> int:
        """Of all tenants."""
        return sum(map(_num_bytes, self._uploads.values()))

    def remove(self, tenant: str, name: str) -> None:
        """Forget an upload."""
        self.find(tenant, name)
        del self._uploads[tenant][name]

    def close(self) -> None:
        """Forget every upload."""
        self._uploads.clear()


def _num_bytes(kept: OrderedDict[str, Upload]) -> int:
    return sum(upload.num_bytes for upload in kept.values())


def _unnamed_file(content: bytes) -> BinaryIO:
    try:
        file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - kept until nobody holds it
        written = 0
        while written < len(content):
            written += file.write(content[written:])
    except OSError as error:
        raise _no_room() from error
    return file


def _no_room() -> RefusedError:
    return RefusedError(
        HTTPStatus.INSUFFICIENT_STORAGE,
        "there is no room for uploads now; send the events as a data URL",
    )
