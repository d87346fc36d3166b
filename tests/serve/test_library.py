"""Uploads: bounded, each tenant's apart, and nothing of them on the disk afterwards."""

import os
import signal
import subprocess
import sys
import tempfile
from http import HTTPStatus
from pathlib import Path

import pytest

from headstart.serve.library import Library
from headstart.serve.refusal import RefusedError
from headstart.serve.settings import Limits


def content(library: Library, tenant: str, name: str) -> bytes:
    return os.pread(library.find(tenant, name).file.fileno(), 1 << 20, 0)


def refused(work, *arguments) -> HTTPStatus:
    with pytest.raises(RefusedError) as caught:
        work(*arguments)
    return caught.value.status


def test_a_tenants_oldest_make_room_for_its_newest():
    library = Library(Limits(max_uploads=3, max_upload_bytes=100))
    names = [library.add("north", b"x" * 30, ".raw") for _ in range(4)]
    assert refused(library.find, "north", names[0]) == HTTPStatus.NOT_FOUND
    assert content(library, "north", names[3]) == b"x" * 30
    assert library.find("north", names[3]).suffix == ".raw"
    assert refused(library.find, "south", names[3]) == HTTPStatus.NOT_FOUND
    assert (library.num_uploads, library.num_bytes) == (3, 90)
    library.add("north", b"y" * 60, "")
    assert (library.num_uploads, library.num_bytes) == (2, 90)
    assert refused(library.add, "north", b"x" * 101, "") == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    library.remove("north", names[3])
    assert refused(library.remove, "north", names[3]) == HTTPStatus.NOT_FOUND


@pytest.mark.parametrize("limit", [{"max_all_upload_bytes": 100}, {"max_all_uploads": 2}], ids=str)
def test_nobodys_upload_goes_for_another_tenants(limit):
    library = Library(Limits(**limit))
    of_south = library.add("south", b"s" * 50, "")
    first = library.add("north", b"n" * 50, "")
    second = library.add("north", b"m" * 50, "")  # its own goes
    assert refused(library.find, "north", first) == HTTPStatus.NOT_FOUND
    assert content(library, "north", second) == b"m" * 50
    library.add("south", b"s", "")  # so does south's own
    assert refused(library.find, "south", of_south) == HTTPStatus.NOT_FOUND
    library = Library(Limits(**limit))
    kept = [library.add("south", b"s" * 50, "") for _ in range(2)]
    assert refused(library.add, "north", b"n" * 50, "") == HTTPStatus.INSUFFICIENT_STORAGE
    assert [content(library, "south", name) for name in kept] == [b"s" * 50] * 2


def test_who_holds_an_upload_can_read_it_after_it_is_gone():
    library = Library(Limits(max_uploads=1))
    upload = library.find("north", library.add("north", b"first", ""))
    for _ in range(5):
        library.add("north", b"other", "")
    assert os.pread(upload.file.fileno(), 100, 0) == b"first"


def test_a_full_disk_is_told_and_keeps_nothing(monkeypatch):
    # A file may not grow over a kilobyte here, as on a disk that is full.
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
    try:
        library = Library(Limits())
        assert refused(library.add, "north", b"x" * 4096, "") == HTTPStatus.INSUFFICIENT_STORAGE
        assert library.num_uploads == 0
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


UPLOADING = """
from headstart.serve.library import Library
from headstart.serve.settings import Limits
library = Library(Limits())
library.add("north", b"x" * 100_000, ".npz")
print(library.num_bytes, flush=True)
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
