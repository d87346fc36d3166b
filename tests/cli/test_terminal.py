"""What a person sees at a terminal, and what goes to the log: real commands on a real one."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from headstart.cli.terminal import cause

NOISE = "import os; os.write(2, b'nanobind: leaked 514 functions!\\n')"
PROGRAM = f"""
import atexit, logging, subprocess, sys, warnings
import typer
from headstart.cli.terminal import divert, report_errors, terminal
from headstart.errors import EngineStartError

def noise():
    exec({NOISE!r})

@report_errors
def command(how: str):
    atexit.register(noise)
    shown = divert()
    warnings.warn("Triton is installed, but")
    print("INFO 11-19 11:00:00 [core.py:7] chatter")
    subprocess.run([sys.executable, "-c", {NOISE!r}])
    logging.getLogger("headstart.live").warning("the camera is lost")
    print("the answer", file=terminal().out)
    if how == "fails":
        print("(EngineCore pid=7) ERROR 11-19 11:00:00 [core.py:9] ValueError: no room", flush=True)
        raise EngineStartError("vLLM did not start")
    if how == "breaks":
        raise RuntimeError("a fault of ours")

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(command)
app()
"""


def on_a_terminal(how: str) -> tuple[str, int, Path]:
    """What the program shows on one, its exit code, and its log."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", PROGRAM, how]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while part := read(ours):
            shown += part
    os.close(ours)
    text = shown.decode().replace("\r\n", "\n")
    log = re.search(r"messages go to (\S+)", text)
    assert log is not None, text
    return text, process.returncode, Path(log[1])


def read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # a terminal's way to say that everybody has left
        return b""


@pytest.fixture
def shown(request, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("PYTHONWARNINGS", raising=False)  # commands set it, in tests' process too
    return on_a_terminal(request.param)


@pytest.mark.parametrize("shown", ["works"], indirect=True)
def test_a_terminal_shows_the_commands_own_words_only(shown):
    text, code, log = shown
    assert text == f"vLLM's messages go to {log}\nthe camera is lost\nthe answer\n"
    assert code == 0
    kept = log.read_text()
    assert "Triton is installed" in kept
    assert "chatter" in kept
    assert kept.count("nanobind: leaked") == 2  # a child's, and its own at the very end


@pytest.mark.parametrize("shown", ["fails"], indirect=True)
def test_a_failed_start_names_the_log_and_shows_its_last_words(shown):
    text, code, log = shown
    assert code == 1
    assert text.endswith(
        f"error: vLLM did not start\nWhat vLLM said last, of {log}:\n  ValueError: no room\n"
    )


@pytest.mark.parametrize("shown", ["breaks"], indirect=True)
def test_a_fault_of_ours_still_shows_its_traceback(shown):
    text, code, _ = shown
    assert code == 1
    assert "RuntimeError: a fault of ours" in text
    assert "nanobind" not in text


def test_elsewhere_nothing_is_diverted():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "works"], capture_output=True, text=True, check=True
    )
    assert "chatter" in done.stdout
    assert done.stdout.endswith("the answer\n")
    assert "messages go to" not in done.stderr
    assert done.stderr.count("nanobind: leaked") == 2


def test_the_cause_is_what_failed_and_not_where(tmp_path):
    log = tmp_path / "log"
    place = "(EngineCore pid=7) ERROR 11-19 11:00:00 [core.py:1180]"
    log.write_text(
        "INFO 11-19 11:00:00 [a.py:1] all is well\n"
        f"{place} EngineCore failed to start.\n{place} Traceback (most recent call last):\n"
        f'{place}   File "x.py", line 3, in f\n{place}     raise ValueError()\n'
        f"{place} ValueError: no room\nINFO 11-19 11:00:01 [a.py:1] shutting down\n"
    )
    assert cause(log) == ["EngineCore failed to start.", "ValueError: no room"]
    log.write_text("one\n\ntwo\n")
    assert cause(log) == ["one", "two"]
