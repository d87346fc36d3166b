"""What a stranger with a key may try, one test a finding of the review that SECURITY.md names.

Each failed on the server before it was mended. Findings 18 (a lock file, a container, a unit file)
and 19 (a restart forgets memory and uploads) are about how the server is shipped and run, not
about what a request can do: they have no test here.
"""

import asyncio
import base64
import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from rig.servers import (
    CHAT,
    MAX_TENANT_REQUESTS,
    UPLOADS,
    asking,
    data_url,
    free_port,
    metric,
    toml,
    with_events,
)
from rig.watchers import Watcher, neighbour
from tests.serve import attacks

engine = pytest.mark.engine

PATIENCE_S = 120.0
AT_ONCE_S = 60.0
"""Half a second on a quiet machine with two cores. An attack that worked took minutes."""
"""After this a client of these tests gives up and the test fails."""
MIB = 1 << 20


def encoded(content: bytes, kind: str = "application/octet-stream") -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def post(client: httpx.Client, body: dict, **more) -> httpx.Response:
    return client.post(CHAT, json=body, timeout=PATIENCE_S, **more)


def refused(reply: httpx.Response, *words: str) -> None:
    """A 4xx that names what is wrong, and nothing of the server's."""
    assert 400 <= reply.status_code < 500, f"{reply.status_code}: {reply.text[:500]}"
    for word in words:
        assert word in reply.text, reply.text[:500]
    for secret in ("Traceback", "site-packages", 'File "'):
        assert secret not in reply.text, reply.text[:500]


@engine
def test_01_no_processor_setting_reaches_the_engine(server, north, south, clips):
    body = asking(clips / "street.mp4", "What is it?")
    held = server.engine().pid
    for setting in (
        {"crop_size": {"height": 28, "width": 28}},
        {"size": {"shortest_edge": 4000}},
        {"do_resize": False},
    ):
        reply = post(north, {**body, "mm_processor_kwargs": setting})
        refused(reply, "mm_processor_kwargs")
        assert "--trust-request" not in reply.text, "only a flag of vLLM's stands in its way"
    assert post(south, body).status_code == 200
    assert server.engine().pid == held


@contextlib.contextmanager
def trap(directory: Path) -> Iterator[tuple[Path, list[str]]]:
    """A file that notes when somebody opens it: a pipe, of which we try to hold the other end."""
    path, opened, stop = directory / f"secret-{os.getpid()}.mp4", [], threading.Event()
    os.mkfifo(path)

    def wait() -> None:
        while not stop.wait(0.02):
            with contextlib.suppress(OSError):  # nobody reads
                os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
                opened.append(path.name)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    try:
        yield path, opened
    finally:
        stop.set()
        thread.join()
        path.unlink()


@engine
def test_02_a_video_opens_no_other_file_and_no_port(server, north, clips, tmp_path):
    here = Path(f"/proc/{server.process.pid}/cwd").resolve()
    with trap(here) as (near, opened), trap(tmp_path) as (far, opened_far):
        port = free_port()
        scripts = [
            attacks.ffconcat(near.name),
            attacks.ffconcat(str(far)),
            attacks.playlist(far.as_uri()),
            attacks.playlist(f"concat:{far}"),
            attacks.playlist(f"subfile,,start,0,end,9,,:{far}"),
            attacks.session(port),
        ]
        kinds = ("video/mp4", "image/png", "video/webm")
        with Watcher(server) as watcher:
            for script in scripts:
                for kind in kinds[: 1 if b"m=video" in script else 3]:
                    body = asking(encoded(script, kind), "What is there?")
                    reply = north.post(CHAT, json=body, timeout=AT_ONCE_S)
                    assert opened == opened_far == [], f"opened by {script!r} as {kind}"
                    assert not watcher.seen.ports, f"{watcher.seen.ports}, by {script!r}"
                    refused(reply)


@engine
def test_03_no_small_file_stops_the_others(server, north, south, clips):
    body = asking(clips / "street.mp4", "Does it go on?")
    for dtype in ("'O'", '"|O"', "'|O8'"):
        hostile = with_events(body, url=encoded(attacks.shared_tuples(dtype, 40)))
        with neighbour(south, body) as waits:
            reply = post(north, hostile)
            server.wait_until(lambda: len(waits.seconds) > 2, "answers to the other tenant")
        assert waits.longest_s < AT_ONCE_S, f"the other tenant waited {waits.longest_s:.1f} s"
        assert not waits.failures
        refused(reply, "pickled, which is not read here")


@engine
def test_04_decoded_video_is_bounded(server, north, south, clips, tmp_path):
    long = attacks.still_video(tmp_path / "long.mp4", 1280, 720, 400)
    large = data_url(attacks.still_video(tmp_path / "large.mp4", 1920, 1080, 8))
    many = asking(large, "What is in all of them?")
    many["messages"][0]["content"][:1] *= 16
    every_frame = asking(long, "How long?", media_io_kwargs={"video": {"num_frames": -1}})
    with Watcher(server) as watcher:
        before = watcher.seen.tree_bytes
        reply = post(north, every_frame)
        refused(reply, "media_io_kwargs")
        assert "--trust-request" not in reply.text, "only a flag of vLLM's stands in its way"
        refused(post(north, many))
        grown = watcher.seen.tree_bytes - before
    assert grown < 400 * MIB, f"{grown // MIB} MiB more while two requests were refused"
    assert post(north, asking(long, "How long?")).status_code == 200


@engine
def test_05_slow_recordings_keep_nobody_waiting(server, north, south, operator, clips):
    body = asking(clips / "street.mp4", "Who waits?")
    kept = north.post(UPLOADS, content=attacks.wide_recording())
    assert kept.status_code == 201, kept.text
    packets = encoded(attacks.empty_packets(60))
    slow = with_events(body, url=packets, start_us=0, stop_us=1000)
    num_killed = metric(operator, "headstart_workers_killed")

    def picture() -> int:
        return north.get(kept.headers["location"], timeout=PATIENCE_S).status_code

    def unpack() -> int:
        return post(north, slow).status_code

    for attack, done in ((picture, 200), (unpack, 400)):
        with (
            neighbour(south, body) as waits,
            Watcher(server) as watcher,
            ThreadPoolExecutor(2 * MAX_TENANT_REQUESTS) as threads,
        ):
            before = watcher.seen.tree_bytes
            said = set(threads.map(lambda _: attack(), range(2 * MAX_TENANT_REQUESTS)))  # noqa: B023
        assert done in said, f"{attack.__name__}: {said}"
        assert said <= {done, 429}, f"{attack.__name__}: {said}"
        assert waits.seconds, "the other tenant was not answered at all"
        assert waits.longest_s < AT_ONCE_S, f"{attack.__name__}: {waits.longest_s:.1f} s"
        assert not waits.failures
        grown = watcher.seen.tree_bytes - before
        assert grown < 2048 * MIB, f"{attack.__name__}: {grown // MIB} MiB"
    killed = metric(operator, "headstart_workers_killed") - num_killed
    assert not killed, "none of them may take so long that its decoder has to be killed"


def test_06_no_key_is_not_an_open_door(tmp_path, monkeypatch):
    from headstart_server.settings import Settings
    from headstart_server.settings_table import SettingsError

    path = tmp_path / "headstart.toml"
    monkeypatch.setenv("HEADSTART_CONFIG", str(path))
    for tenants in ("", "[tenants]", "[tenants]\nnorth = []"):
        path.write_text(f'[server]\ntarget = "t"\n{tenants}\n')
        with pytest.raises(SettingsError, match="key"):
            Settings.from_environment()
    monkeypatch.delenv("HEADSTART_CONFIG")
    with pytest.raises(SettingsError, match="key"):
        Settings.from_environment()


@engine
def test_07_numbers_are_numbers(north, clips):
    body = asking(clips / "street.mp4", "How many?", max_tokens=1, temperature=1.0)
    for count in ("9", 9.0, "9.0", 9, True):
        refused(post(north, {**body, "n": count}), "n")
    assert post(north, {**body, "n": 2}).status_code == 200


@engine
def test_08_media_are_named_by_their_content(north, south, clips):
    def answer(client, video, **part) -> str:
        body = asking(video, "Which is it?", max_tokens=40)
        body["messages"][0]["content"][0] |= part
        reply = post(client, body)
        assert reply.status_code == 200, reply.text
        return reply.json()["choices"][0]["message"]["content"]

    street, dusk = answer(north, clips / "street.mp4"), answer(north, clips / "dusk.mp4")
    assert street != dusk
    latest = clips / "latest.mp4"
    try:
        for name, expected in (("street.mp4", street), ("dusk.mp4", dusk)):
            latest.write_bytes((clips / name).read_bytes())
            assert answer(north, latest.as_uri()) == expected, "the answer is of an older file"
    finally:
        latest.unlink(missing_ok=True)
    # A name that a client gives is refused, or it counts for nothing.
    claimed = asking(clips / "dusk.mp4", "Which is it?", max_tokens=40)
    claimed["messages"][0]["content"][0]["uuid"] = "mine"
    assert post(north, claimed).status_code in (200, 400)
    for part in (
        {"type": "video_url", "video_url": None, "uuid": "mine"},
        {"type": "image_url", "image_url": None, "uuid": "mine"},
        {"type": "image_pil", "image_pil": None, "uuid": "mine"},
        {"type": "audio_url", "audio_url": {"url": encoded(b"RIFF", "audio/wav")}, "uuid": "mine"},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
    ):
        body = asking(clips / "dusk.mp4", "Whose is it?")
        body["messages"][0]["content"][0] = part
        for client in (north, south):
            reply = post(client, body)
            refused(reply)
            assert "At most 0" not in reply.text, "only this model's lack of ears refuses it"


def test_09_memory_is_bounded_in_bytes_and_each_tenants_own():
    from headstart.drafters.memory import Memory
    from headstart.speculation.drafter import DraftRequest, StreamKey

    chance = random.Random(0)

    def learn(memory: Memory, tenant: str, stream: str, length: int) -> None:
        memory.begin(DraftRequest("asked", StreamKey(tenant, stream), "What?"))
        memory.finish("asked", [chance.randrange(32_000) for _ in range(length)])

    def knows(memory: Memory, tenant: str, stream: str) -> bool:
        memory.begin(DraftRequest("asked", StreamKey(tenant, stream), "What?"))
        found = memory.propose("asked", [], 8)
        memory.finish("asked", [])
        return len(found) > 0

    def held_mib(memory: Memory, num_answers: int) -> float:
        """What the answers of one tenant take, each on a stream of its own, as long as can be."""
        tracemalloc.start()
        try:
            for number in range(num_answers):
                learn(memory, "north", f"camera {number}", 1024)
            return tracemalloc.get_traced_memory()[0] / MIB
        finally:
            tracemalloc.stop()

    usual = Memory()
    for stream in range(20):
        learn(usual, "south", f"camera {stream}", 50)
    held = held_mib(usual, 400)
    assert held < 128, f"400 answers of one tenant hold {held:.0f} MiB"
    assert all(knows(usual, "south", f"camera {stream}") for stream in range(20))
    small = Memory(max_bytes=8 * MIB, max_tenant_bytes=2 * MIB)
    held = held_mib(small, 400)
    assert held < 2.2, f"{held:.1f} MiB are held of the 2 that a tenant has"
    assert knows(small, "north", "camera 399")


@engine
def test_10_a_hung_engine_is_not_ready(server, north, clips):
    stranger = server.client("")
    engine_process = server.engine()
    assert stranger.get("/ready").status_code == 200
    engine_process.suspend()
    try:
        server.wait_until(lambda: stranger.get("/ready").status_code == 503, "/ready at 503")
    finally:
        engine_process.resume()
    server.wait_until(lambda: stranger.get("/ready").status_code == 200, "it ready again")
    assert post(north, asking(clips / "street.mp4", "Back?")).status_code == 200


@engine
def test_11_headers_do_not_steer_vllm(north, clips):
    body = asking(clips / "street.mp4", "In what order?")
    for name, value in (
        ("endpoint-load-metrics-format", "JSON"),
        ("endpoint-load-metrics-format", "TEXT"),
        ("X-Vllm-Priority", "-1000"),
        ("X-data-parallel-rank", "7"),
        ("X-Request-Id", "mine"),
    ):
        reply = post(north, body, headers={name: value})
        assert reply.status_code == 200, reply.text
        load = {key: text for key, text in reply.headers.items() if "load-metrics" in key}
        assert not load, f"the load of everybody is told: {load}"
        assert "mine" not in reply.json()["id"]


class Stream:
    """Stands for what answers: begins a stream, and says nothing more for so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def answer(self, context, *rest, **more) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await context.send({"type": "http.response.start", "status": 200, "headers": headers})
        await asyncio.sleep(self._seconds)  # plays: one that says nothing more


def guarded_by(home: Path, answering: Stream, **tables):
    from headstart_server.access_log import AccessLog
    from headstart_server.settings import Settings
    from tests.serve.gateways import gateway_of

    (home / "headstart.toml").write_text(toml(tables))
    settings = Settings.read(home / "headstart.toml")
    return gateway_of(settings, AccessLog(home / "log"), answering)


async def request(gateway, key: str, read=lambda message: asyncio.sleep(0)) -> dict:
    """One request; the start of what came back."""
    said = []

    async def receive():
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message) -> None:
        said.append(message)
        await read(message)

    headers = [(b"authorization", f"Bearer {key}".encode())]
    scope = {"type": "http", "method": "POST", "path": CHAT, "headers": headers}
    await gateway({**scope, "query_string": b""}, receive, send)
    return said[0]


def test_12_a_tenant_has_a_share_a_minute(tmp_path):
    tenants = {"north": ["key-north"], "south": ["key-south"]}

    async def run() -> None:
        limits = {"tenant_requests_per_minute": 3}
        guarded = guarded_by(tmp_path, Stream(0), tenants=tenants, limits=limits)
        replies = [await request(guarded, "key-north") for _ in range(5)]
        assert [reply["status"] for reply in replies] == [200, 200, 200, 429, 429]
        assert int(dict(replies[-1]["headers"])[b"retry-after"]) > 0
        assert (await request(guarded, "key-south"))["status"] == 200

    asyncio.run(run())


@engine
def test_13_only_text_parts_hold_text(north, clips):
    body = asking(clips / "street.mp4", "What is asked?")
    body["messages"][0]["content"][0]["text"] = "x" * 100_000
    refused(post(north, body), "text")
    long = asking(clips / "street.mp4", "x" * 600_000)
    refused(post(north, long), "characters")


@engine
def test_14_grammars_are_bounded(north, south, clips):
    body = asking(clips / "street.mp4", "In what form?", max_tokens=2)
    beside = asking(clips / "street.mp4", "Beside it?")
    long, slow = (attacks.optional_properties(count) for count in (7000, 5000))
    for schema, words in (
        (long, "65536 bytes"),
        (slow, "the grammar of the answer cannot be read"),
    ):
        for bound in (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "s", "schema": schema},
                }
            },
            {"structured_outputs": {"json": schema}},
        ):
            with neighbour(south, beside) as waits:
                refused(post(north, {**body, **bound}), words)
            assert waits.longest_s < AT_ONCE_S, f"the other tenant waited {waits.longest_s:.1f} s"
            assert not waits.failures
    quick = {"structured_outputs": {"json": attacks.optional_properties(100)}}
    assert post(north, {**body, **quick}).status_code == 200


@engine
def test_15_tenants_see_nothing_of_each_other(server, north, south, operator, clips):
    stranger = server.client("")
    body = asking(clips / "street.mp4", "Who asks?", max_tokens=300, ignore_eos=True)
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(post, north, body)
        server.wait_until(
            lambda: operator.get("/ready").json().get("in_flight") or asked.done(), "it under way"
        )
        seen = {client: client.get("/ready").json() for client in (stranger, south)}
        assert not asked.done(), "it was answered before anybody could look"
        assert all(not ready.get("in_flight") for ready in seen.values()), seen.values()
        assert asked.result().status_code == 200
    for client in (stranger, south):
        figures = client.get("/metrics").text
        assert "vllm:" not in figures, "the whole server's figures are told"
        assert "north" not in figures
    assert "vllm:" in operator.get("/metrics").text


UPLOADER = """
import sys, time
from headstart_server.uploads import Uploads
from headstart_server.limits import Limits
uploads = Uploads(Limits())
uploads.add("north", b"a recording" * 1000, ".npz")
print("kept", flush=True)
time.sleep(float(sys.argv[1]))
uploads.close()
"""


def test_16_uploads_do_not_outlive_a_killed_server(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)}
    for seconds in (600, 0):  # one that is killed, and the next, which is not
        command = [sys.executable, "-c", UPLOADER, str(seconds)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as uploader:
            assert uploader.stdout is not None
            assert uploader.stdout.readline() == b"kept\n"
            if seconds:
                uploader.send_signal(signal.SIGKILL)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == []


def test_17_a_client_that_does_not_read_holds_nothing(tmp_path):
    async def unread(message) -> None:
        if message["type"] == "http.response.body":
            await asyncio.sleep(3600)  # plays: a client whose buffers are full

    async def run() -> None:
        limits = {"request_s": 0.5}
        guarded = guarded_by(
            tmp_path, Stream(3600), tenants={"north": ["key-north"]}, limits=limits
        )
        try:
            await asyncio.wait_for(request(guarded, "key-north", unread), 60)
        except TimeoutError:
            pytest.fail("the request was still held a minute after its half second was over")
        finally:
            assert guarded.admission.requests.num == 0

    asyncio.run(run())


@engine
def test_20_a_video_that_crashes_its_decoder_ends_nothing_else(server, north, south, clips):
    """Match by `tests.soak.serve_fuzz_valid`, not by the review."""
    body = asking(clips / "street.mp4", "Is anybody there?")
    held = server.engine().pid
    for kind in ("video/avi", "video/mp4"):
        crashing = asking(encoded(attacks.repeated_frame(), kind), "What is it?")
        try:
            refused(post(north, crashing))
        except httpx.TransportError as error:
            pytest.fail(f"the server is gone: {error!r}, {server.process.wait(30)}")
    assert post(south, body).status_code == 200
    assert server.engine().pid == held


@engine
def test_21_no_ordinary_field_ends_the_engine(server, north, south, clips):
    """Match by `tests.soak.serve_fuzz_valid`: vLLM 0.32 on a CPU ended over the first of these."""
    body = asking(clips / "street.mp4", "What may be said?", max_tokens=3)
    held = server.engine().pid
    for sampling in (
        {"temperature": 1.0, "top_k": 6},
        {"temperature": 1.0, "top_k": 1, "top_p": 0.5},
        {"temperature": 0.0, "top_k": 6},
    ):
        reply = post(north, {**body, **sampling})
        assert reply.status_code == 200, f"{sampling}: {reply.text[:300]}"
        assert post(south, body).status_code == 200, sampling
    assert server.engine().pid == held
