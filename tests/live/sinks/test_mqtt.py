"""Answers published to a real broker that is away, killed, frozen, or refuses the password."""

import gc
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import quote

import pytest

from headstart.errors import LiveError
from headstart.live.sinks import mqtt_connection
from headstart.live.sinks.mqtt import MqttPublisher
from headstart.live.sinks.mqtt_connection import MqttAddress, topic_name
from rig.mosquitto import (
    HAS_PAHO,
    PASSWORD,
    USER,
    Broker,
    Subscriber,
    free_port,
)
from rig.waiting import wait_until as until

STREAM = "front door"
needs_paho = pytest.mark.skipif(not HAS_PAHO, reason="no paho-mqtt: pip install 'headstart[mqtt]'")


def post(publisher, *numbers):
    for number in numbers:
        publisher.post({"stream": STREAM, "number": number, "target_text": f"Answer {number}."})


WATCHING = (Path(__file__).parents[3] / "docs" / "guides" / "camera.md").read_text()


def once(numbers):
    """Without what came again: at least once is what the broker promises."""
    return list(dict.fromkeys(numbers))


def threads():
    return [thread.name for thread in threading.enumerate() if thread.name == "mqtt"]


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    until(lambda: not threads())


@pytest.fixture
def broker(tmp_path):
    with Broker(tmp_path) as running:
        yield running


@pytest.fixture
def subscriber(broker):
    with Subscriber(broker) as running:
        yield running


def test_answers_arrive_in_order_and_are_counted(broker, subscriber):
    with MqttPublisher(broker.url) as publisher:
        post(publisher, *range(20))
    assert not threads()
    assert (publisher.counts.delivered, publisher.counts.dropped) == (20, 0)
    assert (publisher.counts.waiting, publisher.counts.last_error) == (0, None)
    until(lambda: len(subscriber.numbers) == 20)
    assert subscriber.numbers == list(range(20))
    assert not any(
        is_retained for topic, _, is_retained in subscriber.received if "answer" in topic
    )


def test_an_answer_is_published_at_once(broker, subscriber, monkeypatch):
    monkeypatch.setattr(mqtt_connection, "LOOK_S", 600)
    with MqttPublisher(broker.url) as publisher:
        for number in range(3):
            post(publisher, number)
            until(lambda number=number: publisher.counts.delivered == number + 1)
    # Nor was it the broker that woke it, as it ends a connection that says nothing.
    assert publisher.counts.last_error is None


def test_a_process_with_many_open_files_can_publish(broker, subscriber):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 1200:
        pytest.skip("this machine lets a process open too few files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1200), hard))
    with ExitStack() as files:
        files.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        while files.enter_context(Path(os.devnull).open()).fileno() < 1050:
            pass
        with MqttPublisher(broker.url) as publisher:
            post(publisher, 1)
            until(lambda: publisher.counts.delivered == 1)


def test_the_status_is_kept_for_those_who_come_later(broker, subscriber):
    with MqttPublisher(broker.url):
        until(lambda: subscriber.statuses() == ["online"])
        with Subscriber(broker) as late:
            until(lambda: ("home/cameras/status", b"online", True) in late.received)
    until(lambda: subscriber.statuses() == ["online", "offline"])
    with Subscriber(broker) as later:
        until(lambda: ("home/cameras/status", b"offline", True) in later.received)


def test_what_mosquitto_does_not_allow_counts_as_delivered(tmp_path):
    """As docs/guides/camera.md warns."""
    rules = tmp_path / "rules"
    rules.write_text("topic read #\ntopic write home/cameras/status\n")
    with Broker(tmp_path, access_rules=rules) as broker, Subscriber(broker) as subscriber:
        with MqttPublisher(broker.url) as publisher:
            post(publisher, 1)
            until(lambda: publisher.counts.delivered == 1)
        until(lambda: subscriber.statuses() == ["online", "offline"])
        assert subscriber.numbers == []


PUBLISH_AND_WAIT = """
import sys, time
from headstart.live.sinks import mqtt_connection
from headstart.live.sinks.mqtt import MqttPublisher
publisher = MqttPublisher(sys.argv[1])
time.sleep(600)
"""


def test_a_publisher_that_is_killed_is_offline(broker, subscriber):
    process = subprocess.Popen([sys.executable, "-c", PUBLISH_AND_WAIT, broker.url])
    try:
        until(lambda: subscriber.statuses() == ["online"])
    finally:
        process.kill()
        process.wait()
    until(lambda: subscriber.statuses() == ["online", "offline"])


def test_a_broker_that_is_away_at_the_start_gets_what_waited(tmp_path, caplog):
    broker = Broker(tmp_path)
    with MqttPublisher(broker.url, first_pause_s=0.01) as publisher:
        post(publisher, 1, 2)
        until(lambda: publisher.counts.last_error)
        time.sleep(0.5)  # plays: a broker that is away for some attempts
        assert publisher.counts.delivered == 0
        with broker:
            until(lambda: publisher.counts.delivered == 2)
            post(publisher, 3)
            until(lambda: publisher.counts.delivered == 3)
            publisher.close()
    assert publisher.counts.dropped == 0
    assert caplog.text.count(f"mqtt://127.0.0.1:{broker.port} does not take answers") == 1


def test_a_broker_that_is_killed_and_comes_back_loses_nothing(broker, subscriber):
    with MqttPublisher(broker.url, first_pause_s=0.01) as publisher:
        post(publisher, *range(5))
        until(lambda: subscriber.numbers == list(range(5)))
        broker.until_saved()
        broker.freeze()
        post(publisher, 5)
        until(lambda: publisher.counts.waiting == 0)  # under way
        broker.kill()
        post(publisher, *range(6, 12))
        until(lambda: publisher.counts.last_error)
        broker.start()
        until(lambda: publisher.counts.delivered == 12)
        post(publisher, 12)
        until(lambda: len(once(subscriber.numbers)) == 13)
    assert once(subscriber.numbers) == list(range(13))
    assert publisher.counts.dropped == 0
    until(lambda: subscriber.statuses()[-2:] == ["online", "offline"])
    # One name: else a broker that learns late of a connection's end would say offline after online.
    assert len(set(re.findall(r" as (headstart\w+)", broker.log.read_text()))) == 1


def test_a_frozen_broker_costs_the_oldest_answers_and_no_time(broker, subscriber):
    with MqttPublisher(broker.url, max_waiting=3) as publisher:
        until(lambda: subscriber.statuses() == ["online"])
        broker.freeze()
        post(publisher, 0)
        until(lambda: publisher.counts.waiting == 0)  # under way
        post(publisher, *range(1, 11))  # returns, though the broker is frozen until below
        assert (publisher.counts.dropped, publisher.counts.waiting) == (7, 3)
        broker.go_on()
        until(lambda: publisher.counts.delivered == 4)
    until(lambda: len(subscriber.numbers) == 4)
    assert subscriber.numbers == [0, 8, 9, 10]


def test_a_broker_that_stays_frozen_counts_as_lost(broker, subscriber, monkeypatch):
    monkeypatch.setattr(mqtt_connection, "KEEPALIVE_S", 1)
    with MqttPublisher(broker.url, first_pause_s=0.01) as publisher:
        until(lambda: subscriber.statuses() == ["online"])
        broker.freeze()
        post(publisher, 1)
        until(lambda: publisher.counts.last_error)
        assert "Keep alive timeout" in publisher.counts.last_error
        broker.go_on()
        until(lambda: publisher.counts.delivered == 1)
        # It may come twice: the broker had the first one, and its acknowledgement came too late.
        until(lambda: once(subscriber.numbers) == [1])
    until(lambda: subscriber.statuses()[-2:] == ["online", "offline"])


def test_the_end_waits_for_a_frozen_broker_no_longer_than_its_grace(broker, subscriber):
    gc.disable()  # nothing else closes what `close` leaves open
    num_open = len(list(Path("/proc/self/fd").iterdir()))
    publisher = MqttPublisher(broker.url)
    until(lambda: subscriber.statuses() == ["online"])
    broker.freeze()
    post(publisher, *range(3))
    ending = threading.Thread(target=publisher.close, kwargs={"grace_s": 0.3}, name="ending")
    ending.start()
    until(lambda: not ending.is_alive(), "the end", 30)
    assert not threads()
    assert len(list(Path("/proc/self/fd").iterdir())) == num_open
    gc.enable()
    assert (publisher.counts.delivered, publisher.counts.dropped) == (0, 3)
    post(publisher, 4)
    assert (publisher.counts.dropped, publisher.counts.waiting) == (4, 0)
    broker.go_on()
    until(lambda: subscriber.statuses() == ["online", "offline"])  # its last will


@needs_paho
def test_the_end_does_not_wait_for_a_broker_that_was_never_there():
    publisher = MqttPublisher(f"mqtt://127.0.0.1:{free_port()}", first_pause_s=300)
    until(lambda: publisher.counts.last_error)
    publisher.close(grace_s=300)  # nothing waits
    assert (publisher.counts.dropped, threads()) == (0, [])


def test_a_password_is_checked_and_never_told(tmp_path, caplog):
    caplog.set_level(0)
    with Broker(tmp_path, has_password=True) as broker:
        at = f"127.0.0.1:{broker.port}/home/cameras"
        with Subscriber(broker, login=(USER, PASSWORD)) as subscriber:
            with MqttPublisher(f"mqtt://{USER}:wr0ng@{at}", first_pause_s=0.01) as refused:
                post(refused, 1)
                until(lambda: refused.counts.last_error)
                refused.close(grace_s=0.1)
            assert (refused.counts.delivered, refused.counts.dropped) == (0, 1)
            assert "check the user and the password" in caplog.text
            with MqttPublisher(f"mqtt://{USER}:{quote(PASSWORD, safe='')}@{at}") as publisher:
                post(publisher, 2)
                until(lambda: publisher.counts.delivered == 1)
            until(lambda: subscriber.numbers == [2])
    told = f"{caplog.text} {refused.counts} {refused.__dict__} {publisher.__dict__}"
    assert "wr0ng" not in told
    assert PASSWORD not in told


@needs_paho
@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x20\xff\xff\xff\xff", b"\x20\x00"]
)
def test_what_is_no_broker_is_tried_again_and_ends(answer):
    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(1 << 16)
                connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve, daemon=True)
        server.start()
        port = listener.getsockname()[1]
        publisher = MqttPublisher(f"mqtt://127.0.0.1:{port}", first_pause_s=0.01)
        post(publisher, 1)
        until(lambda: publisher.counts.last_error)
        assert threads()  # it has not ended it
        publisher.close(grace_s=0.1)
        assert (publisher.counts.delivered, publisher.counts.dropped) == (0, 1)
        listener.shutdown(socket.SHUT_RDWR)
        server.join()


@needs_paho
def test_a_host_that_cannot_be_is_an_error_that_is_told():
    publisher = MqttPublisher("mqtt://a..b", first_pause_s=300)
    until(lambda: publisher.counts.last_error)
    assert threads()  # it is no OSError, and has not ended it
    publisher.close(grace_s=0.1)


def test_tls_is_spoken_with_whom_it_trusts(tmp_path, monkeypatch):
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl to make a certificate with")
    certificate = tmp_path / "broker.pem"
    make = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    make += ["-subj", "/CN=broker", "-addext", "subjectAltName=IP:127.0.0.1"]
    make += ["-keyout", certificate, "-out", tmp_path / "only.pem"]
    subprocess.run(make, check=True, capture_output=True)
    certificate.write_text(certificate.read_text() + (tmp_path / "only.pem").read_text())
    with Broker(tmp_path, certificate=certificate) as broker:
        url = broker.url.replace("mqtt:", "mqtts:")
        with MqttPublisher(url, first_pause_s=0.01) as stranger:
            until(lambda: stranger.counts.last_error)
            stranger.close(grace_s=0.1)
        assert "certificate verify failed" in stranger.counts.last_error
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "only.pem"))
        with MqttPublisher(url) as publisher:
            post(publisher, *range(5))
            until(lambda: publisher.counts.delivered == 5)
    assert publisher.counts.last_error is None


def test_home_assistant_is_told_of_each_camera_before_its_first_answer(broker, subscriber):
    jinja2 = pytest.importorskip("jinja2", reason="no Jinja to read Home Assistant's templates")
    said = "  " + "A long street. " * 40
    with MqttPublisher(broker.url, has_discovery=True) as publisher:
        for stream in (STREAM, STREAM, "前门"):
            publisher.post({"stream": stream, "number": 1, "target_text": said})
    until(lambda: len(subscriber.received) == 7)
    topics = [topic for topic, _, _ in subscriber.received]
    configs = [topic for topic in topics if topic.startswith("homeassistant/sensor/")]
    front, back = "home/cameras/front_door/answer", "home/cameras/前门/answer"
    assert topics[1:-1] == [configs[0], front, front, configs[1], back]
    assert len(set(configs)) == 2
    with Subscriber(broker) as late:
        until(lambda: len(late.received) == 3)  # the status too
        config = json.loads({topic: payload for topic, payload, _ in late.received}[configs[0]])
    assert config["state_topic"] == config["json_attributes_topic"] == front
    assert config["availability_topic"] == "home/cameras/status"
    assert config["name"] == STREAM
    row = subscriber.rows()[0]
    state = jinja2.Environment().from_string(config["value_template"]).render(value_json=row)
    assert state == said.strip()[:255]


@pytest.mark.parametrize(
    ("stream", "name"),
    [
        ("front", "front"),
        ("rtsp://camera:554/street", "rtsp_camera_554_street"),
        ("/dev/video0", "dev_video0"),
        ("a+b#c\x00\n/d", "a_b_c_d"),
        ("Haustür Süd.mp4", "Haustür_Süd.mp4"),
        ("$SYS", "SYS"),
        ("\udc80#", "camera"),
        ("x" * 1000, "x" * 128),
    ],
)
def test_a_cameras_name_is_one_level_of_a_topic(stream, name):
    assert topic_name(stream) == name


@pytest.mark.parametrize(
    ("url", "parsed"),
    [
        ("mqtt://broker", MqttAddress("broker", 1883, False, "headstart")),
        ("mqtts://broker/", MqttAddress("broker", 8883, True, "headstart")),
        ("mqtt://u@[::1]:99/a/b/", MqttAddress("::1", 99, False, "a/b", "u")),
        ("mqtt://u:p%2Fq@h/%C3%BC", MqttAddress("h", 1883, False, "ü", "u", "p/q")),
    ],
)
def test_addresses_are_read(url, parsed):
    assert MqttAddress.parse(url) == parsed


@pytest.mark.parametrize(
    "url",
    [
        "broker",
        "http://broker/x",
        "mqtt://",
        "mqtt://user:s3cret/x@broker",
        "mqtt://user:12/s3cret@broker/x",
        "mqtt://user:12#s3cret@broker/x",
        "mqtt://user:12?s3cret@broker/x",
        "mqtt://user:s3cret word@broker",
        "mqtt://broker/a/+/s3cret",
        "mqtt://broker/a%23s3cret",
        "mqtt://broker/$SYS",
        "mqtt://broker/a%00b",
        "mqtt://broker/" + "x" * 300,
        "mqtt://broker:70000",
        "mqtt://[s3cret",
    ],
)
def test_what_is_no_brokers_address_is_refused_and_not_repeated(url):
    with pytest.raises(LiveError, match="mqtt://HOST") as told:
        MqttPublisher(url)
    assert "s3cret" not in str(told.value)
    assert told.value.__cause__ is None


def test_the_automation_of_the_documents_hears_the_camera_of_the_documents():
    yaml = pytest.importorskip("yaml", reason="no PyYAML to read the automation with")
    jinja2 = pytest.importorskip("jinja2", reason="no Jinja to read its templates with")
    (block,) = re.findall(r"```yaml\n(.*?)```", WATCHING, flags=re.DOTALL)
    ((url, camera),) = (
        (re.search(r"--mqtt (\S+)", command)[1], re.search(r"watch (\S+)", command)[1])
        for command in re.findall(r"```text\n(.*?)```", WATCHING, flags=re.DOTALL)
        if "--mqtt " in command
    )
    (automation,) = yaml.safe_load(block)["automation"]
    (trigger,) = automation["triggers"]
    assert trigger["topic"] == MqttAddress.parse(url).answer_topic(camera)
    (condition,) = automation["conditions"]
    fires = jinja2.Environment().from_string(condition)
    for text, is_fired in ((" Yes, a parcel.", "True"), ("No.", "False")):
        assert fires.render(trigger={"payload_json": {"target_text": text}}) == is_fired


class HostileBroker:
    """Accepts connections as a broker does, and then sends one thing, again and again."""

    def __init__(self, first, again):
        self._first, self._again, self.num_bytes = first, again, 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"mqtt://127.0.0.1:{self._listener.getsockname()[1]}/home"
        self.is_left = threading.Event()
        """Its client has gone away."""
        self._thread = threading.Thread(target=self._serve)

    def _serve(self):
        connection, _ = self._listener.accept()
        with connection, suppress(OSError):
            connection.recv(1 << 16)
            connection.sendall(self._first)
            while self.num_bytes < 64 << 20:
                connection.sendall(self._again)
                self.num_bytes += len(self._again)
            while connection.recv(1 << 16):
                pass
        self.is_left.set()

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exc):
        self._listener.close()
        self._thread.join()


ACCEPTED = b"\x20\x02\x00\x00"
ENDLESS = b"\xff\xff\xff\x7f"
"""The longest length that there is: 256 MB."""
PUBLISHED = b"\x00\x01t" + bytes(100)


@needs_paho
@pytest.mark.parametrize(
    ("first", "again", "said"),
    [
        (ACCEPTED + b"\x30" + ENDLESS, bytes(1 << 16), "too long"),
        (b"\x20" + ENDLESS, bytes(1 << 16), "too long"),
        (ACCEPTED, b"\x30\x67" + PUBLISHED, "nobody asked"),
        (ACCEPTED, b"\x34\x69" + b"\x00\x01t\x00\x07" + bytes(100), "nobody asked"),
        (ACCEPTED, b"\xd0\x00" * 1000, "more answers"),
        (ACCEPTED, b"\x40\x02\x00\x09" * 1000, "more answers"),
    ],
    ids=[
        "a long message",
        "a long answer",
        "messages",
        "messages in two steps",
        "pings",
        "receipts",
    ],
)
def test_a_broker_that_sends_what_nobody_asked_for_is_left(first, again, said):
    with (
        HostileBroker(first, again) as broker,
        MqttPublisher(broker.url, first_pause_s=600) as made,
    ):
        post(made, 1)
        until(broker.is_left.is_set, "the end of its connection")
        until(lambda: made.counts.last_error)
        made.close(grace_s=0)
    assert said in made.counts.last_error
    assert broker.num_bytes < 32 << 20  # what connections hold on their way
