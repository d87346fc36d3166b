"""`name=value` on the command line, and what `--help-all` shows of it."""

from dataclasses import dataclass
from pathlib import Path

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from headstart.cli import app
from headstart.cli.options import clip_times
from headstart.cli.settings import (
    CommandSettings,
    engine_arguments,
    named_values,
    setting,
    settings_of,
)
from tests.cli.test_main import commands

NUM_SHOWN = 10
"""Options that the help of a command shows at most."""


@dataclass(frozen=True)
class Settings(CommandSettings):
    rounds: int = setting(2, "How often.", at_least=1)
    rate: float | None = setting(None, "How fast.", at_least=0.5)
    has_more: bool = setting(False, "Whether.")
    words: str = setting("a b", "What.")
    file: Path | None = setting(None, "Where.", exists=True)


def test_settings_have_the_types_of_their_fields(tmp_path):
    assert Settings.read(None) == Settings()
    pairs = ["rounds=3", "rate=1.5", "has-more=true", "words=x=y", f"file={tmp_path}"]
    assert Settings.read(pairs) == Settings(3, 1.5, True, "x=y", tmp_path)


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ("rounds", "not name=value"),
        ("=3", "not name=value"),
        ("round=3", "no such setting; there are rounds, rate, has_more, words, file"),
        ("rounds=1.5", "a whole number of at least 1"),
        ("rounds=0", "at least 1"),
        ("rate=nan", "a number of at least 0.5"),
        ("has_more=maybe", "true or false"),
        ("file=no/such/file", "no such path"),
    ],
)
def test_what_no_setting_can_be_is_refused_with_what_it_can_be(pair, said):
    with pytest.raises(typer.BadParameter, match=said):
        Settings.read([pair])


def test_each_setting_is_listed_with_its_type_and_what_it_is_else():
    assert list(Settings.rows()) == [
        ("rounds=<int>", "How often. [default: 2]"),
        ("rate=<float>", "How fast."),
        ("has_more=<bool>", "Whether. [default: false]"),
        ("words=<str>", "What. [default: a b]"),
        ("file=<path>", "Where."),
    ]


def test_engine_arguments_are_json_where_they_parse():
    pairs = ["dtype=float32", "enforce-eager=true", "max_model_len=512", 'limit={"video": 2}']
    arguments = {
        "dtype": "float32",
        "enforce_eager": True,
        "max_model_len": 512,
        "limit": {"video": 2},
    }
    assert engine_arguments(pairs, None) == (arguments, {})
    beside = [f"draft_model.{pair}" for pair in pairs]
    assert engine_arguments(beside, "eventgpt") == ({}, arguments)
    with pytest.raises(typer.BadParameter, match=r"draft_model\.dtype: there is no draft model"):
        engine_arguments(beside, None)
    with pytest.raises(typer.BadParameter, match=r"--sampling temperature: .*name=value"):
        named_values(["temperature"], "--sampling")


def test_a_clip_is_named_by_its_two_times():
    assert clip_times(None) == clip_times(":") == (None, None)
    assert clip_times("5:70") == (5, 70)
    assert clip_times("5:") == (5, None)
    assert clip_times(":70") == (None, 70)
    for wrong in ("5", "a:b", "0.5:1"):
        with pytest.raises(typer.BadParameter, match="START:STOP in microseconds"):
            clip_times(wrong)


COMMANDS = dict(commands(get_command(app)))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_shows_what_most_people_set_and_help_all_the_rest(path):
    params = COMMANDS[path].params
    options = [each for each in params if each.param_type_name == "option"]
    shown = [each for each in options if not each.hidden and "--help-all" not in each.opts]
    assert len(shown) <= NUM_SHOWN
    whole = " ".join(CliRunner().invoke(app, [*path, "--help-all"]).stdout.split())
    for each in options:
        assert each.opts[0] in whole or each.name == "help_all"
    settings = settings_of(COMMANDS[path].callback)
    for row, _ in () if settings is None else settings.rows():
        assert row in whole
    assert (settings is not None) == any("--set" in each.opts for each in options)
    help_says_there_is_more = "--help-all" in CliRunner().invoke(app, [*path, "--help"]).stdout
    assert help_says_there_is_more == any(
        each.hidden for each in options if each.name != "help_all"
    )


def test_vllms_messages_are_asked_for_once_for_all_commands(monkeypatch):
    from headstart.cli.terminal import is_verbose

    CliRunner().invoke(app, ["--verbose", "doctor", "--help"])
    assert is_verbose()
    CliRunner().invoke(app, ["doctor", "--help"])
    assert not is_verbose()
    CliRunner().invoke(app, ["doctor", "--help"], env={"HEADSTART_VERBOSE": "1"})
    assert is_verbose()
    CliRunner().invoke(app, ["doctor", "--help"])
