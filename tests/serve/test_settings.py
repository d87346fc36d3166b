"""Settings: checked whole, and closed by default."""

import re
from pathlib import Path

import pytest

from headstart.errors import HeadstartError
from headstart_events.beside.event_model import EventDraftModel
from headstart_research.bridge.tower import EventTower
from headstart_server.auth import Caller
from headstart_server.limits import Limits
from headstart_server.settings import Settings
from headstart_server.settings_table import SettingsError
from tests.documents import DOCS


def test_every_table_of_a_file_is_read(tmp_path):
    path = tmp_path / "headstart.toml"
    path.write_text(
        f"""
[server]
target = "t"
drafter = "d"
port = 81
log = "log.jsonl"
answer_log = "answers"
warm_memory = false
memory_log = "site.jsonl"
bridge = "my-bridge"
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
    assert (settings.warm_memory, settings.memory_log) == (False, Path("site.jsonl"))
    assert settings.answer_log == Path("answers")
    assert settings.bridge == Path("my-bridge")
    assert settings.limits == Limits(max_requests=3, drain_s=5)
    assert settings.media_root == tmp_path
    assert settings.media_domains == ("example.org",)
    assert settings.vllm == {"max_model_len": 99}
    assert settings.keys.caller("Bearer two") == Caller("north")
    assert settings.path == path
    settings.check_auth()


def test_beside_a_bridge_a_drafter_is_its_tower_unless_the_whole_is_asked_for():
    server = {"drafter": "d", "bridge": "b"}
    assert Settings.of({"server": {"drafter": "d"}}).draft_model == EventDraftModel("d")
    tower = Settings.of({"server": server, "drafter_vllm": {"dtype": "float32"}}).draft_model
    assert tower == EventTower("d", {"dtype": "float32"})
    whole = Settings.of({"server": {**server, "whole_drafter": True}}).draft_model
    assert whole == EventDraftModel("d")
    assert Settings.of({"server": {"bridge": "b"}}).draft_model is None


@pytest.mark.parametrize(
    "text",
    [
        "[serve]\nport = 1",
        "[server]\nprot = 1",
        '[server]\nport = "1"',
        "[limits]\nmax_requests = 0",
        "[limits]\nmax_requests = true",
        "[limits]\nmax_requests = -1",
        "[limits]\nbody_s = inf",
        "[limits]\nbody_s = nan",
        "[limits]\nrequests = 5",
        "[server]\nopen = 1",
        "[server]\nwarm_memory = 1",
        "[server]\nmemory_log = 1",
        "[server]\nbridge = 1",
        "[server]\nanswer_log = 1",
        '[server]\nanswer_log = "/dev/null"',
        "[tenants]",
        "[tenants]\nnorth = []",
        "[operators]\nwatcher = [1]",
        "[tenants]\nnorth = [1]",
        '[tenants]\nnorth = [""]',
        '[tenants]\na = ["k"]\nb = ["k"]',
        '[media]\nroot = "/nowhere/at/all"',
        "not toml",
    ],
)
def test_a_mistake_is_an_error(tmp_path, text):
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(HeadstartError):
        Settings.read(tmp_path / "x.toml")


UNCLEAR = {
    "nothing": "",
    "only operators": '[operators]\nwatcher = ["k"]',
    "open and keys": '[server]\nopen = true\n[tenants]\nnorth = ["k"]',
    "open and operators": '[server]\nopen = true\n[operators]\nwatcher = ["k"]',
}


@pytest.mark.parametrize("name", UNCLEAR)
def test_there_must_be_keys_or_open_and_not_both(tmp_path, monkeypatch, name):
    (tmp_path / "x.toml").write_text(UNCLEAR[name])
    monkeypatch.setenv("HEADSTART_CONFIG", str(tmp_path / "x.toml"))
    with pytest.raises(SettingsError, match="--open"):
        Settings.from_environment()


def test_a_server_is_open_only_if_told_so(tmp_path, monkeypatch):
    (tmp_path / "x.toml").write_text("[server]\nopen = true")
    monkeypatch.setenv("HEADSTART_CONFIG", str(tmp_path / "x.toml"))
    assert Settings.from_environment().open


def test_a_tenant_without_a_key_is_refused_beside_one_with(tmp_path):
    (tmp_path / "x.toml").write_text('[tenants]\nnorth = []\nsouth = ["k"]')
    settings = Settings.read(tmp_path / "x.toml")
    settings.check_auth()
    assert settings.keys.caller("Bearer k") == Caller("south")
    assert settings.keys.caller("") is None


def test_without_a_file_vllm_does_not_start(monkeypatch):
    monkeypatch.delenv("HEADSTART_CONFIG", raising=False)
    with pytest.raises(SettingsError, match="HEADSTART_CONFIG"):
        Settings.from_environment()


def test_everything_is_closed_by_default():
    settings = Settings()
    assert not settings.open
    assert not settings.keys.keys
    assert settings.media_root is None
    assert settings.answer_log is None
    assert settings.media_domains == ()
    assert settings.host == "127.0.0.1"


def test_several_engines_have_no_channel_and_no_drafter(tiny_target):
    from headstart_server.server import arguments

    def channel(**vllm):
        found = arguments(Settings(target=str(tiny_target), vllm=vllm), "/run/channel")
        return found["additional_config"]["headstart"]["channel"]

    assert channel() == channel(data_parallel_size=1) == "/run/channel"
    assert channel(data_parallel_size=2) is None
    with pytest.raises(SettingsError, match="leave the drafter out"):
        Settings(target="t", drafter="d", vllm={"data_parallel_size": 2})
    with pytest.raises(SettingsError, match="leave one of them out"):
        Settings(target="t", drafter="d", max_draft_tokens=0)


def test_requests_name_a_target_by_its_directorys_last_name(tmp_path, tiny_target, monkeypatch):
    from headstart_server.server import arguments

    def name(target, **vllm):
        return arguments(Settings(target=target, vllm=vllm), None)["served_model_name"]

    assert name(str(tiny_target)) == name(f"{tiny_target}/") == "target"
    (tmp_path / "street-model").symlink_to(tiny_target)
    monkeypatch.chdir(tmp_path)
    assert name("street-model") == name("./street-model") == "street-model"
    monkeypatch.chdir(tiny_target)
    assert name(".") == "target"
    assert name(str(tiny_target), served_model_name="seen") == "seen"


def test_a_model_of_the_hub_keeps_its_name():
    from headstart_server.server import served_name

    assert served_name("someone/model") == "someone/model"


def test_what_others_read_of_the_additional_config_stays_beside_ours(tiny_target):
    from headstart_server.server import arguments

    vllm = {"additional_config": {"theirs": 1}}
    found = arguments(Settings(target=str(tiny_target), vllm=vllm), "/run/channel")
    assert found["additional_config"]["theirs"] == 1
    assert found["additional_config"]["headstart"]["channel"] == "/run/channel"


def test_an_adapter_leaves_room_for_drafts_unless_the_batch_is_given(tiny_target):
    from headstart_server.server import arguments

    def batch(**vllm):
        found = arguments(Settings(target=str(tiny_target), vllm=vllm), None)
        return found.get("max_num_seqs")

    assert batch() is None
    assert batch(enable_lora=True) == 2048 // 33
    assert batch(enable_lora=True, max_num_seqs=7) == 7


def test_what_memory_begins_with_reaches_the_engine_or_is_refused_before(tiny_target, tmp_path):
    from headstart_server.server import arguments

    def sources(**given):
        found = arguments(Settings(target=str(tiny_target), **given), None)
        return found["additional_config"]["headstart"]["sources"]

    assert sources()["warm"]
    assert not sources(warm_memory=False)["warm"]
    file = tmp_path / "site.jsonl"
    file.write_text('{"question": "what?", "target_tokens": [1]}')
    assert sources(memory_log=file)["memory_log"] == str(file)
    file.write_text('{"question": "what?"}')
    with pytest.raises(HeadstartError, match="line 1"):
        sources(memory_log=file)


def serve(*words: str) -> str:
    """The error of `headstart serve`, which must not start."""
    from typer.testing import CliRunner

    from headstart.cli import app

    done = CliRunner().invoke(app, ["serve", *words])
    assert done.exit_code != 0
    return " ".join(done.output.split())


def test_the_command_starts_no_open_server_by_accident(tmp_path):
    assert "or ask for no keys with --open" in serve("--target", "t")
    keys = tmp_path / "keys.toml"
    keys.write_text('[server]\ntarget = "t"\n[tenants]\nnorth = ["k"]')
    assert "has keys too" in serve("--config", str(keys), "--open")


def test_flags_for_vllms_own_command_need_a_file_with_keys_or_open(tmp_path):
    assert "--config" in serve("--target", "t", "--open", "--print-vllm-flags")
    unsaid = tmp_path / "unsaid.toml"
    unsaid.write_text('[server]\ntarget = "t"')
    assert "--config" in serve("--config", str(unsaid), "--open", "--print-vllm-flags")


def test_every_limit_is_documented_with_its_default():
    page = (DOCS / "reference" / "settings.md").read_text().partition("## [limits]")[2]
    rows = page.partition("\n## ")[0]
    told = dict(re.findall(r"^\| `(\w+)` \| \w+ \| `([\d.]+)` \|", rows, flags=re.MULTILINE))
    assert told == {name: str(value) for name, value in vars(Limits()).items()}
