"""Settings: read once, checked whole, keys never kept."""

import pytest

from headstart.serve.settings import Keys, Limits, Settings, SettingsError


def test_a_file_is_read_whole(tmp_path):
    path = tmp_path / "headstart.toml"
    path.write_text(
        f"""
[server]
target = "t"
drafter = "d"
port = 81
log = "log.jsonl"
[tenants]
north = ["one", "two"]
[limits]
max_requests = 3
drain_s = 5
[media]
root = "{tmp_path}"
domains = ["example.org"]
[vllm]
max_model_len = 99
"""
    )
    settings = Settings.read(path)
    assert (settings.target, settings.drafter, settings.port) == ("t", "d", 81)
    assert settings.limits == Limits(max_requests=3, drain_s=5)
    assert settings.media_root == tmp_path
    assert settings.media_domains == ("example.org",)
    assert settings.vllm == {"max_model_len": 99}
    assert settings.keys.tenant("Bearer two") == "north"


@pytest.mark.parametrize(
    "text",
    [
        "[serve]\nport = 1",
        "[server]\nprot = 1",
        '[server]\nport = "1"',
        "[limits]\nmax_requests = 0",
        "[limits]\nmax_requests = true",
        "[limits]\nrequests = 5",
        "[tenants]\nnorth = [1]",
        '[tenants]\nnorth = [""]',
        '[tenants]\na = ["k"]\nb = ["k"]',
        '[media]\nroot = "/nowhere/at/all"',
        "not toml",
    ],
)
def test_a_mistake_is_named(tmp_path, text):
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(SettingsError):
        Settings.read(tmp_path / "x.toml")


def test_without_a_file_everything_is_closed(monkeypatch):
    monkeypatch.delenv("HEADSTART_CONFIG", raising=False)
    settings = Settings.from_environment()
    assert not settings.keys.needed
    assert settings.media_root is None
    assert settings.media_domains == ()
    assert settings.host == "127.0.0.1"


def test_keys_are_kept_as_digests():
    keys = Keys.of({"north": "secret"})
    assert "secret" not in repr(keys)
    assert keys.tenant("Bearer secret") == "north"
    assert keys.tenant("bearer secret") == "north"
    for wrong in (
        "",
        "Bearer",
        "Bearer ",
        "Basic secret",
        "secret",
        "Bearer secre",
        "Bearer SECRET",
    ):
        assert keys.tenant(wrong) is None


def test_several_engines_have_no_line_and_no_drafter(tiny_target):
    from headstart.serve.server import arguments

    def line(**vllm):
        found = arguments(Settings(target=str(tiny_target), vllm=vllm), "/run/line")
        return found["additional_config"]["headstart"]["line"]

    assert line() == line(data_parallel_size=1) == "/run/line"
    assert line(data_parallel_size=2) is None
    with pytest.raises(SettingsError, match="leave the drafter out"):
        Settings(target="t", drafter="d", vllm={"data_parallel_size": 2})
