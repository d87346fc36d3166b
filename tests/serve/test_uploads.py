"""Uploads are bounded, private to their tenant, and leave nothing on the disk."""

import os
import signal
import subprocess
import sys
import tempfile
from http import HTTPStatus
from pathlib import Path

import pytest

from headstart_server.limits import Limits
from headstart_server.refusal import RefusedError
from headstart_server.uploads import Uploads


def content(uploads: Uploads, tenant: str, name: str) -> bytes:
    return os.pread(uploads.find(tenant, name).file.fileno(), 1 << 20, 0)


def refused(work, *arguments) -> HTTPStatus:
    with pytest.raises(RefusedError) as caught:
        work(*arguments)
    return caught.value.status


def test_a_tenants_oldest_uploads_make_room_for_its_newest():
    uploads = Uploads(Limits(max_uploads=3, max_upload_bytes=100))
    names = [uploads.add("north", b"x" * 30, ".raw") for _ in range(4)]
    assert refused(uploads.find, "north", names[0]) == HTTPStatus.NOT_FOUND
    assert content(uploads, "north", names[3]) == b"x" * 30
    assert uploads.find("north", names[3]).suffix == ".raw"
    assert refused(uploads.find, "south", names[3]) == HTTPStatus.NOT_FOUND
    assert (uploads.num_uploads, uploads.num_bytes) == (3, 90)
    uploads.add("north", b"y" * 60, "")
    assert (uploads.num_uploads, uploads.num_bytes) == (2, 90)
    assert refused(uploads.add, "north", b"x" * 101, "") == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    uploads.remove("north", names[3])
    assert refused(uploads.remove, "north", names[3]) == HTTPStatus.NOT_FOUND


@pytest.mark.parametrize("limit", [{"max_all_upload_bytes": 100}, {"max_all_uploads": 2}], ids=str)
def test_no_upload_is_removed_for_another_tenants(limit):
    uploads = Uploads(Limits(**limit))
    of_south = uploads.add("south", b"s" * 50, "")
    first = uploads.add("north", b"n" * 50, "")
    second = uploads.add("north", b"m" * 50, "")  # replaces its own
    assert refused(uploads.find, "north", first) == HTTPStatus.NOT_FOUND
    assert content(uploads, "north", second) == b"m" * 50
    uploads.add("south", b"s", "")  # replaces south's own
    assert refused(uploads.find, "south", of_south) == HTTPStatus.NOT_FOUND
    uploads = Uploads(Limits(**limit))
    kept = [uploads.add("south", b"s" * 50, "") for _ in range(2)]
    assert refused(uploads.add, "north", b"n" * 50, "") == HTTPStatus.INSUFFICIENT_STORAGE
    assert [content(uploads, "south", name) for name in kept] == [b"s" * 50] * 2


def test_a_removed_upload_can_still_be_read_by_a_request_that_holds_it():
    uploads = Uploads(Limits(max_uploads=1))
    upload = uploads.find("north", uploads.add("north", b"first", ""))
    for _ in range(5):
        uploads.add("north", b"other", "")
    assert os.pread(upload.file.fileno(), 100, 0) == b"first"


def test_a_full_disk_is_reported_and_keeps_nothing(monkeypatch):
    # A file may not grow over a kilobyte here, as on a disk that is full.
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
    try:
        uploads = Uploads(Limits())
        assert refused(uploads.add, "north", b"x" * 4096, "") == HTTPStatus.INSUFFICIENT_STORAGE
        assert uploads.num_uploads == 0
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


UPLOADING = """
from headstart_server.uploads import Uploads
from headstart_server.limits import Limits
uploads = Uploads(Limits())
uploads.add("north", b"x" * 100_000, ".npz")
print(uploads.num_bytes, flush=True)
import time; time.sleep(600)
"""


def test_a_killed_server_leaves_no_file(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", UPLOADING], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "100000\n"
        assert tempfile.gettempdir() != str(tmp_path)
        links = [Path(link) for link in Path(f"/proc/{process.pid}/fd").iterdir()]
        held = [str(link.readlink()) for link in links]
        process.send_signal(signal.SIGKILL)
    assert any(name.startswith(str(tmp_path)) for name in held), "it was kept somewhere else"
    assert list(tmp_path.rglob("*")) == []
