"""Cameras that a real server reads itself: registered, answered about, lost, ended."""

import io
import re
from pathlib import Path

import PIL.Image
import psutil
import pytest

from rig.gstreamer import HAS_SERVER, pipeline, rtsp_server
from rig.live_camera import MAX_TOKENS, NUM_SLOTS, QUESTION, SLOT_US, LiveCamera
from rig.mosquitto import Broker, Subscriber
from rig.servers import CHAT, MAX_TENANT_LIVE, asking, metric
from tests.live.sinks.test_hook import receiving
from tests.serve.registered_camera import (
    CAMERAS,
    NUM_WINDOWS,
    WANTED,
    AnswerReader,
    film_camera,
    registered,
    write_film,
)

pytestmark = pytest.mark.engine
SECRETS = ("s3cret", "t0ken")


@pytest.fixture(scope="session")
def film(tmp_path_factory):
    return write_film(tmp_path_factory.mktemp("film") / "film.mkv")


def state(client, camera) -> str:
    return client.get(f"{CAMERAS}/{camera['id']}").json()["state"]


def delivered(client, camera) -> int:
    return client.get(f"{CAMERAS}/{camera['id']}").json()["hook"]["delivered"]


def decoders(server) -> list[psutil.Process]:
    """The processes that decode what cameras send."""
    found = []
    for child in server.children():
        try:
            if any("stream_worker" in word for word in child.cmdline()):
                found.append(child)
        except psutil.NoSuchProcess:
            pass  # it has just ended
    return found


def test_a_camera_is_answered_about_as_the_same_frames_are_over_http(
    server, north, south, film, camera_port, hook_port, tmp_path
):
    source = f"http://me:s3cret@127.0.0.1:{camera_port}/film.mkv?key=t0ken"
    with (
        film_camera(film, camera_port) as served,
        receiving(port=hook_port) as receiver,
        registered(north, source, stream="equal", hook=receiver.url) as camera,
    ):
        with AnswerReader(north, camera["id"]) as reader:
            first = reader.wait_for("answer")
            picture = north.get(f"{CAMERAS}/{camera['id']}/picture")
            told = list(reader)
        answers = [first, *(message for message in told if message["type"] == "answer")]
        numbers = [answer["number"] for answer in answers]
        server.wait_until(lambda: receiver.numbers == numbers, "all of them posted")
        server.wait_until(lambda: delivered(north, camera) == len(numbers), "and counted")
        described = north.get(f"{CAMERAS}/{camera['id']}").json()
        listed = north.get(CAMERAS).json()["data"]
        assert [each["id"] for each in south.get(CAMERAS).json()["data"]] == []
        for path in ("", "/picture", "/answers"):
            assert south.get(f"{CAMERAS}/{camera['id']}{path}").status_code == 404
        assert south.delete(f"{CAMERAS}/{camera['id']}").status_code == 404
        assert north.delete(f"{CAMERAS}/{camera['id']}").json()["deleted"]
        assert north.get(f"{CAMERAS}/{camera['id']}").status_code == 404
    assert "Authorization: Basic" in served.requests[0]

    # Every answer came once and in order.
    assert numbers == list(range(1, len(answers) + 1))
    assert told[-1] == {"type": "ended"}
    assert (described["state"], described["reason"]) == ("ended", None)
    assert described["answers"] == {"given": len(answers), "kept": len(answers)}
    assert described["windows"]["ended"] == NUM_WINDOWS
    assert listed == [described]
    for text in (camera, described, listed):
        assert not any(secret in str(text) for secret in SECRETS)
    assert camera["source"] == f"http://127.0.0.1:{camera_port}/film.mkv"
    assert not any(secret in server.tail() for secret in SECRETS)

    # It is the picture of the camera, and the words are the model's own.
    assert picture.headers["content-type"] == "image/jpeg"
    assert PIL.Image.open(io.BytesIO(picture.content)).size == (96, 64)
    whole = [answer for answer in answers if answer["num_frames"] == NUM_SLOTS]
    for number, answer in enumerate((whole[0], whole[-1])):
        start = answer["start_us"] // SLOT_US
        assert answer["start_us"] == start * SLOT_US
        clip = write_film(tmp_path / f"{number}.mp4", start, start + NUM_SLOTS)
        body = asking(clip, QUESTION, max_tokens=MAX_TOKENS)
        said = north.post(CHAT, json=body).json()["choices"][0]["message"]["content"]
        assert answer["text"] == said
    assert whole[0]["text"] != whole[-1]["text"]


def test_a_reader_goes_on_after_its_last_answer_and_the_newest_reader_has_the_camera(
    server, north, film, camera_port
):
    with (
        film_camera(film, camera_port),
        registered(north, f"http://127.0.0.1:{camera_port}/", stream="readers") as camera,
    ):
        with AnswerReader(north, camera["id"]) as first:
            known = first.wait_for("answer")
            with AnswerReader(server.client(), camera["id"], known["number"]) as second:
                (taken,) = [message for message in first if message["type"] == "error"]
                assert (taken["is_last"], "another connection" in taken["message"]) == (True, True)
                assert second.wait_for("answer")["number"] == known["number"] + 1
        # Who comes late gets what is kept, and the end.
        server.wait_until(lambda: state(north, camera) == "ended", "it ended")
        with AnswerReader(north, camera["id"]) as late:
            told = list(late)
        numbers = [message["number"] for message in told if message["type"] == "answer"]
        assert numbers == list(range(1, len(numbers) + 1))
        assert told[-1] == {"type": "ended"}
        for wrong in ("-1", "x", "1e3", "9" * 30):
            reply = north.get(f"{CAMERAS}/{camera['id']}/answers", headers={"Last-Event-ID": wrong})
            assert reply.status_code == 400, wrong
        assert north.head(f"{CAMERAS}/{camera['id']}/answers").status_code == 405


def test_a_stream_of_answers_is_no_request_in_flight(server, north, film, camera_port):
    with (
        film_camera(film, camera_port, ends=False),
        registered(north, f"http://127.0.0.1:{camera_port}/", stream="idle") as camera,
        AnswerReader(server.client(), camera["id"]) as reader,
    ):
        reader.wait_for("counts")
        assert north.get("/ready").json()["in_flight"] == 0


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"source": "rtsp://192.0.2.1/"}, 403, r'hosts = \["192.0.2.1"\]'),
        ({"hook": "http://192.0.2.1/"}, 403, r"hooks = "),
        ({"question": None}, 400, "question must be a text"),
        ({"compare": True}, 400, "compare=true"),
        ({"schema": {"type": "nonsense"}}, 400, ""),
    ],
)
def test_what_cannot_be_registered_is_refused(server, north, camera_port, fields, status, said):
    source = f"http://127.0.0.1:{camera_port}/"
    reply = north.post(CAMERAS, json={**WANTED, "source": source, **fields})
    assert reply.status_code == status, reply.text
    assert re.search(said, reply.json()["error"]["message"]), reply.text
    assert north.get(CAMERAS).json()["data"] == []


def test_the_schema_has_the_routes_and_the_fields(server, north):
    schema = north.get("/openapi.json").json()
    paths = {path for path in schema["paths"] if path.startswith(CAMERAS)}
    assert paths == {CAMERAS, *(f"{CAMERAS}/{{id}}{part}" for part in ("", "/picture", "/answers"))}
    body = schema["paths"][CAMERAS]["post"]["requestBody"]["content"]["application/json"]["schema"]
    fields = schema["components"]["schemas"][body["$ref"].rpartition("/")[2]]["properties"]
    assert {*WANTED, "source", "hook", "schema", "when"} <= set(fields)
    assert not {"type", "sensor"} & set(fields)


def test_a_camera_that_cannot_be_read_says_why_and_is_listed_as_ended(server, north, camera_port):
    source = f"rtsp://me:s3cret@127.0.0.1:{camera_port}/street"
    with registered(north, source, stream="nobody") as camera:
        with AnswerReader(north, camera["id"]) as reader:
            *_, last = list(reader)
        assert (last["type"], last["is_last"]) == ("error", True)
        assert "nothing answers" in last["message"]
        server.wait_until(lambda: state(north, camera) == "ended", "it ended")
        (described,) = north.get(CAMERAS).json()["data"]
        assert described["reason"] == last["message"]
        assert "s3cret" not in str(described)
        assert north.get(f"{CAMERAS}/{camera['id']}/picture").status_code == 404
    assert metric(north, "headstart_tenant_live_cameras") == 0


def test_registered_cameras_count_as_the_others_do(server, north, south, film, camera_port):
    source = f"http://127.0.0.1:{camera_port}/"
    with film_camera(film, camera_port, ends=False), LiveCamera(server) as socket:
        socket.start(stream="socket")
        made = [
            north.post(CAMERAS, json={**WANTED, "source": source}) for _ in range(MAX_TENANT_LIVE)
        ]
        assert [reply.status_code for reply in made] == [201] * (MAX_TENANT_LIVE - 1) + [429]
        assert metric(north, "headstart_tenant_live_cameras") == MAX_TENANT_LIVE
        with registered(south, source):
            assert len(south.get(CAMERAS).json()["data"]) == 1
        for reply in made[:-1]:
            assert north.delete(f"{CAMERAS}/{reply.json()['id']}").status_code == 200
    server.wait_until(
        lambda: metric(north, "headstart_tenant_live_cameras") == 0, "all places given back"
    )


def test_nothing_is_left_of_cameras_that_are_removed(server, north, film, camera_port):
    source, num_cameras = f"http://127.0.0.1:{camera_port}/", 5
    process = psutil.Process(server.process.pid)
    with film_camera(film, camera_port, ends=False):
        threads = process.num_threads()
        for number in range(num_cameras):
            with registered(north, source, stream=f"removed {number}") as camera:
                server.wait_until(lambda c=camera: state(north, c) == "live", "it live")
                assert decoders(server)
        server.wait_until(lambda: not decoders(server), "no decoder left")
        # Each camera has several threads; the event loop's own pool may have grown to six.
        server.wait_until(
            lambda: process.num_threads() <= threads + 6, "its threads ended", timeout_s=60
        )


@pytest.mark.skipif(not HAS_SERVER, reason="no RTSP server: make rtsp (as root)")
def test_a_camera_that_is_lost_is_connected_to_again(server, north, film, camera_port):
    mounts = ["/street", pipeline(film, "rtph264pay config-interval=-1")]
    source = f"rtsp://me:s3cret@127.0.0.1:{camera_port}/street"
    with (
        rtsp_server(mounts, "me", "s3cret", port=str(camera_port)) as (_, process),
        registered(north, source, stream="lost", simulate_events=True) as camera,
        AnswerReader(server.client(), camera["id"]) as reader,
    ):
        assert reader.wait_for("answer")["number"] == 1
        assert state(north, camera) == "live"
        process.kill()
        process.wait()
        server.wait_until(lambda: state(north, camera) == "lost", "it lost")
        assert north.get(f"{CAMERAS}/{camera['id']}").json()["reason"]
        with rtsp_server(mounts, "me", "s3cret", port=str(camera_port)):
            server.wait_until(lambda: state(north, camera) == "live", "it back")
            described = north.get(f"{CAMERAS}/{camera['id']}").json()
            assert described["reconnects"] >= 1
            # One may be about a window from before.
            while reader.wait_for("answer")["number"] < described["answers"]["given"] + 2:
                pass
    assert "s3cret" not in server.tail()


def test_the_cameras_of_a_tenant_without_a_key_end(server, film, camera_port):
    config = Path(server.environment["HEADSTART_CONFIG"])
    before = config.read_text()
    changed = before.replace("[tenants]\n", '[tenants]\nbrief = ["key-1", "key-2"]\n')
    try:
        config.write_text(changed)
        first, second = server.client("key-1"), server.client("key-2")
        server.wait_until(lambda: second.get(CAMERAS).status_code == 200, "the keys known")
        with (
            film_camera(film, camera_port, ends=False),
            registered(first, f"http://127.0.0.1:{camera_port}/") as camera,
            AnswerReader(server.client("key-1"), camera["id"]) as reader,
        ):
            # The camera is the tenant's, whichever of its keys is left; the stream is its key's.
            config.write_text(changed.replace('"key-1", ', ""))
            *_, last = list(reader)
            assert (last["type"], last["code"]) == ("error", "unauthorized")
            assert state(second, camera) in ("connecting", "live")
            config.write_text(before)
            server.wait_until(lambda: second.get(CAMERAS).status_code == 401, "the key revoked")
            server.wait_until(lambda: not decoders(server), "the camera ended")
            config.write_text(changed)
            server.wait_until(lambda: second.get(CAMERAS).status_code == 200, "the key back")
            described = second.get(f"{CAMERAS}/{camera['id']}").json()
            assert described["state"] == "ended"
            assert "no key" in described["reason"]
    finally:
        config.write_text(before)


def test_the_documents_commands_run(server, film, camera_port, tmp_path):
    """docs/operation.md word for word, against this server and a camera of the test's."""
    from tests.serve.documented import run_camera_commands

    named = "rtsp://viewer:password@nvr.example.org:8554/street"
    with film_camera(film, camera_port, ends=False):
        run_camera_commands(server, tmp_path, {named: f"http://127.0.0.1:{camera_port}/film"})
    assert (tmp_path / "picture.jpg").read_bytes().startswith(b"\xff\xd8")


def test_answers_are_published_to_an_open_broker_and_to_no_other(
    server, north, film, camera_port, broker_port, tmp_path
):
    source = f"http://127.0.0.1:{camera_port}/film.mkv"
    with Broker(tmp_path, port=broker_port) as broker, Subscriber(broker) as subscriber:
        with (
            film_camera(film, camera_port),
            registered(north, source, stream="door", hook=broker.url) as camera,
        ):
            with AnswerReader(north, camera["id"]) as reader:
                texts = [message["text"] for message in reader if message["type"] == "answer"]
            server.wait_until(lambda: delivered(north, camera) == len(texts), "all are published")
        rows = subscriber.rows("home/cameras/door/answer")
        assert [row["target_text"] for row in rows] == texts
        assert [row["camera"] for row in rows] == [camera["id"]] * len(texts)
        server.wait_until(lambda: subscriber.statuses()[-1:] == ["offline"], "its end is told")
    elsewhere = {**WANTED, "source": source, "hook": f"mqtt://127.0.0.1:{camera_port}/home"}
    refused = north.post(CAMERAS, json=elsewhere)
    assert refused.status_code == 403
    assert f'hooks = ["mqtt://127.0.0.1:{camera_port}"]' in refused.json()["error"]["message"]
