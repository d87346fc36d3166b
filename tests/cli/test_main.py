"""The command as a process."""

import os
import re
import signal
import subprocess
import sys
from importlib.metadata import version

import typer
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from headstart.cli import app

COMMAND = """
import time
import headstart.cli

def app():
    try:
        print("engines are up", flush=True)
        time.sleep(60)
    finally:
        print("engines are closed", flush=True)

headstart.cli.app = app
headstart.cli.main()
"""


def test_a_command_that_is_told_to_end_closes_what_it_has_started():
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "engines are up\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == "engines are closed\n"


def test_the_versions_are_printed_without_an_engine():
    code = (
        "import sys\nfrom headstart.cli import app\n"
        "try:\n    app(['--version'])\nfinally:\n"
        "    print(sorted({'vllm', 'torch', 'transformers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, *_, imported = done.stdout.splitlines()
    assert first == f"headstart {version('headstart')}"
    assert imported == "[]"


def test_without_a_command_the_help_begins_with_what_to_try_first():
    done = CliRunner().invoke(app, [])
    assert done.exit_code == 0
    named = re.findall(r"^│ ([a-z][a-z-]+) ", done.stdout, flags=re.MULTILINE)
    assert named[:6] == ["doctor", "demo", "ask", "watch", "serve", "bench"]
    assert set(named) == set(get_command(app).list_commands(typer.Context(get_command(app))))


def test_a_shell_can_complete_commands():
    environment = {**os.environ, "_HEADSTART_COMPLETE": "complete_bash"}
    environment |= {"COMP_WORDS": "headstart wat", "COMP_CWORD": "1"}
    code = "from headstart.cli import app; app(prog_name='headstart')"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["watch"]


def commands(group, path=()):
    """Every command of the program with its path."""
    context = typer.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, TyperGroup):
            yield from commands(command, (*path, name))
        yield (*path, name), command


def test_the_model_has_one_pair_of_names_everywhere():
    options = [
        (path, option.opts)
        for path, command in commands(get_command(app))
        for option in command.params
        if {"--target", "--model"} & set(option.opts) and path != ("lab", "train")
    ]
    assert len(options) >= 6
    for path, names in options:  # lab train's --model is which one of the pair
        assert names == ["--target", "--model"], path


def test_the_help_of_serve_says_where_it_listens():
    shown = CliRunner().invoke(app, ["serve", "--help"]).stdout
    assert "(127.0.0.1)" in shown
    assert "(8000)" in shown


def test_a_question_about_no_clip_is_refused_before_an_engine_starts():
    done = CliRunner().invoke(app, ["ask", "--target", "nowhere", "--question", "What?"])
    assert done.exit_code == 1
    assert "there is no clip to ask about: give --video, --picture or --events" in done.stderr
