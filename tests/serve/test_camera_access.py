"""Where the server may connect to for cameras: nowhere but where its operator said."""

import pytest

from headstart.errors import HeadstartError
from headstart_server.camera_access import CameraAccess
from headstart_server.refusal import RefusedError
from headstart_server.settings import Settings

OPEN = CameraAccess.of(
    {
        "hosts": ["192.168.1.20", "NVR.example.org:8554", "[fd00::5]", "door.example.org:554"],
        "hooks": ["https://Home.example.org", "http://127.0.0.1:9000", "mqtt://Broker.example.org"],
    }
)


@pytest.mark.parametrize(
    "source",
    [
        "rtsp://192.168.1.20/street",
        "rtsp://192.168.1.20:554/",
        "http://192.168.1.20/video",
        "https://me:secret@192.168.1.20/video?x=1",
        "rtsp://nvr.example.org:8554/1",
        "RTSP://NVR.EXAMPLE.ORG:8554/1",
        "rtsp://[fd00::5]/1",
        "rtsp://door.example.org/",
    ],
)
def test_what_is_named_is_open(source):
    assert OPEN.check_source(source).host in source.lower()


@pytest.mark.parametrize(
    "source",
    [
        "rtsp://192.168.1.21/",
        "http://192.168.1.20:8080/",  # another port than the usual one
        "rtsp://192.168.1.20:22/",
        "rtsp://nvr.example.org/1",
        "http://nvr.example.org:8555/1",
        "rtsp://nvr.example.org.evil.org:8554/",
        "rtsp://192.168.1.20@evil.org/",
        "rtsp://192.168.1.20:554@evil.org/",
        "rtsp://evil.org\\@192.168.1.20:22/",
        "rtsp://evil.org#@192.168.1.20/",
        "rtsp://evil.org?@192.168.1.20/",
        "http://127.0.0.1/",
        "http://0300.0250.1.20/",  # the same address, written otherwise: it is not named so
        "rtsp://3232235796/",
        "http://door.example.org/",  # its port is that of RTSP
    ],
)
def test_anything_else_is_refused_with_what_an_operator_can_do(source):
    with pytest.raises(RefusedError, match=r"operator can open it, under \[cameras\]") as refused:
        OPEN.check_source(source)
    assert refused.value.status == 403


def test_nothing_is_open_by_default():
    access = Settings().cameras
    with pytest.raises(RefusedError, match="operator") as refused:
        access.check_source("rtsp://me:secret@camera/path")
    assert "secret" not in refused.value.message
    assert 'hosts = ["camera"]' in refused.value.message
    with pytest.raises(RefusedError, match="operator"):
        access.check_hook("https://home.example.org/answers")


@pytest.mark.parametrize(
    "source",
    [
        "file:///etc/passwd",
        "gopher://192.168.1.20/",
        "/dev/video0",
        "rtsp:///x",
        "rtsp://192.168.1.20:99999/",
        "rtsp://me%0d%0aX: y@192.168.1.20/",
        "rtsp://me:a%0d%0ab@192.168.1.20/",
        "rtsp://[::1/",
    ],
)
def test_what_is_no_cameras_address_is_a_mistake(source):
    with pytest.raises(RefusedError) as refused:
        OPEN.check_source(source)
    assert refused.value.status == 400


@pytest.mark.parametrize(
    "url",
    ["https://home.example.org/answers", "HTTPS://HOME.example.org/", "http://127.0.0.1:9000/x"],
)
def test_a_hook_of_an_open_origin(url):
    assert OPEN.check_hook(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "http://home.example.org/answers",
        "https://home.example.org",
        "https://home.example.org:8443/",
        "https://home.example.org.evil.org/",
        "https://home.example.org@evil.org/",
        "https://home.example.org\\@evil.org/",
        "https://home.example.org#@evil.org/",
        "https://me@home.example.org/",
        "http://127.0.0.1:90001/",
        "http://127.0.0.1:9000@evil.org/",
        "file:///etc/passwd",
        "",
    ],
)
def test_any_other_hook_is_refused(url):
    with pytest.raises(RefusedError) as refused:
        OPEN.check_hook(url)
    assert refused.value.status == 403


@pytest.mark.parametrize(
    "table",
    [
        {"host": ["a"]},
        {"hosts": "a"},
        {"hosts": [1]},
        {"hosts": [""]},
        {"hosts": ["rtsp://a"]},
        {"hosts": ["a/b"]},
        {"hosts": ["me@a"]},
        {"hosts": ["a:port"]},
        {"hosts": ["a b"]},
        {"hosts": ["a:99999"]},
        {"hooks": "https://a"},
        {"hooks": ["a"]},
        {"hooks": ["https://a/path"]},
        {"hooks": ["ftp://a"]},
        {"hooks": ["*"]},
    ],
)
def test_a_mistake_in_the_settings_is_an_error(table):
    with pytest.raises(HeadstartError, match="cameras"):
        Settings.of({"cameras": table})


@pytest.mark.parametrize(
    "url",
    [
        "mqtt://broker.example.org",
        "mqtt://broker.example.org:1883/home/front",
        "mqtt://anna:s3cret@broker.example.org/home",
        "MQTT://BROKER.example.org/home",
    ],
)
def test_a_broker_that_is_named_is_open_whoever_logs_in(url):
    pytest.importorskip("paho")
    assert OPEN.check_hook(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "mqtts://broker.example.org/home",
        "mqtt://broker.example.org:1884/home",
        "mqtt://home.example.org/",
        "mqtt://broker.example.org@evil.org/",
        "mqtt://broker.example.org.evil.org/",
        "mqtt://127.0.0.1:9000/",
    ],
)
def test_any_other_broker_is_refused_without_the_password(url):
    pytest.importorskip("paho")
    with pytest.raises(RefusedError, match=r'published there; .*hooks = \["mqtts?://') as refused:
        OPEN.check_hook(url.replace("://", "://anna:s3cret@") if "@" not in url else url)
    assert refused.value.status == 403
    assert "s3cret" not in refused.value.message


def test_a_brokers_address_that_cannot_be_read_is_a_mistake():
    with pytest.raises(RefusedError, match="hook: ") as refused:
        OPEN.check_hook("mqtt://broker.example.org/a b")
    assert refused.value.status == 400
