"""Recordings of events that clients uploaded: each tenant's apart, bounded, gone at the end."""

import secrets
import shutil
import tempfile
from collections import OrderedDict
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from headstart.serve.refusal import RefusedError
from headstart.serve.settings import Limits

ID_PREFIX = "events-"


@dataclass(frozen=True)
class Upload:
    """One kept file. Its name is ours; nothing of it was chosen by a client."""

    path: Path
    num_bytes: int


class Library:
    """Used from one event loop only."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._directory = Path(tempfile.mkdtemp(prefix="headstart-uploads-"))
        self._uploads: dict[str, OrderedDict[str, Upload]] = {}

    def add(self, tenant: str, content: bytes, suffix: str) -> str:
        """Keep a recording; the tenant's oldest make room for it."""
        if len(content) > self._limits.max_upload_bytes:
            raise RefusedError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"a tenant's uploads hold {self._limits.max_upload_bytes} bytes together;"
                " cut the recording",
            )
        kept = self._uploads.setdefault(tenant, OrderedDict())
        while kept and (
            len(kept) >= self._limits.max_uploads
            or sum(upload.num_bytes for upload in kept.values()) + len(content)
            > self._limits.max_upload_bytes
        ):
            _, oldest = kept.popitem(last=False)
            oldest.path.unlink(missing_ok=True)
        name = ID_PREFIX + secrets.token_hex(16)
        path = self._directory / f"{name}{suffix}"
        try:
            path.write_bytes(content)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise RefusedError(
                HTTPStatus.INSUFFICIENT_STORAGE,
                "there is no room for uploads now; send the events as a data URL",
            ) from error
        kept[name] = Upload(path, len(content))
        return name

    def find(self, tenant: str, name: str) -> Path:
        """Where a tenant's upload is. Another tenant's is not found, like one that never was."""
        upload = self._uploads.get(tenant, OrderedDict()).get(name)
        if upload is None:
            raise RefusedError(
                HTTPStatus.NOT_FOUND, f"there is no upload {name[:64]!r}; upload it (again)"
            )
        return upload.path

    @property
    def num_bytes(self) -> int:
        """Of all tenants."""
        return sum(upload.num_bytes for kept in self._uploads.values() for upload in kept.values())

    def remove(self, tenant: str, name: str) -> None:
        """Forget an upload."""
        self.find(tenant, name).unlink(missing_ok=True)
        del self._uploads[tenant][name]

    def close(self) -> None:
        """Remove every file."""
        shutil.rmtree(self._directory, ignore_errors=True)
