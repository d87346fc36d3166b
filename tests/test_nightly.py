"""The nightly programs: each is there; a part that fails is named, and the others run."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def nightly(monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    spec = importlib.util.spec_from_file_location("nightly", ROOT / ".ci" / "nightly.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "KEPT", tmp_path / "kept")
    return module


def test_every_program_is_there(nightly):
    assert nightly.REPORTS
    for commands in nightly.PARTS.values():
        for program, *arguments in commands:
            assert Path(program).exists()
            if arguments[0] == "-m":
                assert importlib.util.find_spec(arguments[1]) is not None, arguments[1]
            elif program == sys.executable:
                assert Path(arguments[0]).exists()


def test_a_part_that_fails_is_named_and_the_others_run(nightly, monkeypatch, capsys):
    def says(words):
        return (sys.executable, "-c", words)

    parts = {"broken": (says("raise SystemExit(3)"),), "steady": (says("print('here')"),)}
    monkeypatch.setattr(nightly, "PARTS", parts)
    assert nightly.main(["broken", "steady"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "failed: broken"
    assert (nightly.KEPT / "steady.log").read_text() == "here\n"
