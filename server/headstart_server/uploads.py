"""Keeps the recordings that clients uploaded: bounded, and each tenant's apart.

The files have no name on the disk, only a descriptor in this process. So none is left when the
process ends, however it ends.
"""

import secrets
import tempfile
from collections import OrderedDict
from dataclasses import dataclass
from http import HTTPStatus
from typing import BinaryIO

from headstart_server.limits import Limits
from headstart_server.refusal import RefusedError

ID_PREFIX = "events-"


@dataclass(frozen=True)
class Upload:
    """One file. A caller that holds it can read it even after it was removed from `Uploads`.

    All readers share the descriptor's position: read with `os.pread`, or open it anew.
    """

    file: BinaryIO
    suffix: str
    """Of the format that the client named; empty where the first bytes tell the format."""
    num_bytes: int


class Uploads:
    """Used from one event loop only, except `find`."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._uploads: dict[str, OrderedDict[str, Upload]] = {}

    def add(self, tenant: str, content: bytes, suffix: str) -> str:
        """Keep a recording and return its id; the tenant's oldest uploads make room for it."""
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
            # Not closed, as a request may be reading it: Python closes it after its last use.
            kept.popitem(last=False)
        name = ID_PREFIX + secrets.token_hex(16)
        kept[name] = Upload(_unnamed_file(content), suffix, len(content))
        return name

    def find(self, tenant: str, name: str) -> Upload:
        """A tenant's upload; raises a refusal if this tenant has none of that id."""
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
        self.find(tenant, name)
        del self._uploads[tenant][name]

    def close(self) -> None:
        self._uploads.clear()


def _num_bytes(kept: OrderedDict[str, Upload]) -> int:
    return sum(upload.num_bytes for upload in kept.values())


def _unnamed_file(content: bytes) -> BinaryIO:
    try:
        file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - `Upload` holds it
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
