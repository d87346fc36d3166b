"""The newcomer's hour: what is typed, where, and what is written down of it. README's commands
themselves run in tests/test_readme.py."""

import subprocess

import pytest

from tests.soak.first_hour import CHECKOUT, DEMO, Shell, commands, copy


@pytest.fixture
def shell(tmp_path):
    running = Shell(None, str(tmp_path), {"KEPT": "kept"})
    yield running
    running.close()


def test_readmes_commands_are_typed_in_order_and_a_live_answer_is_last():
    typed = list(commands(CHECKOUT))
    install = ["make setup", "source .venv/bin/activate", "headstart doctor"]
    assert typed[:4] == [*install, DEMO]
    names = [command.split()[1] for command in typed[4:]]
    assert names == ["lab", "ask", "bench", "watch"]
    assert typed[-1].endswith("--max-windows 1")


def test_a_shell_is_one_shell_and_its_home_and_variables_are_its_own(shell, tmp_path, monkeypatch):
    monkeypatch.setenv("MINE", "mine")
    assert shell.type("mkdir inside && cd inside; thing=there").code == 0
    step = shell.type('echo "$PWD|$thing|$HOME|$KEPT|$MINE|"')
    place = step.last_lines[0].split("|")
    assert place[0].endswith("/inside")
    assert place[1:] == ["there", str(tmp_path), "kept", "", ""]


def test_what_failed_is_written_down_and_the_next_command_is_typed(shell):
    step = shell.type("printf 'one\\ntwo'; echo wrong >&2; (exit 3)")
    assert (step.code, step.last_lines) == (3, ("one", "twowrong"))
    assert shell.type("cat").code == 0  # nothing waits for the keyboard
    asleep = shell.type("sleep 0.5")
    assert asleep.seconds >= 0.5 > asleep.busy_s
    counting = shell.type("for number in {1..200000}; do :; done")
    assert 0 < counting.busy_s <= counting.seconds + 0.1
    ended = shell.type("exit 5")
    assert ended.code == -1


def test_only_what_git_knows_is_copied(tmp_path):
    source = tmp_path / "source"
    (source / "src").mkdir(parents=True)
    (source / "src" / "known.py").write_text("known")
    (source / "built").write_text("built")
    for command in (["init", "-q"], ["add", "src"]):
        subprocess.run(["git", "-C", str(source), *command], check=True)
    copy(source, tmp_path / "copy" / "headstart")
    found = [path for path in (tmp_path / "copy").rglob("*") if path.is_file()]
    assert [path.name for path in found] == ["known.py"]
