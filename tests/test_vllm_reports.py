"""The reports on vLLM's own faults: programs that need vLLM alone, and lines that there are.

The programs start engines, so `make nightly` runs them: one ends with status 1 where its fault is
gone. Then what we do about it can go, too.
"""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

from headstart.doctor.findings import VLLM_VERSION

REPORTS = Path(__file__).parents[1] / "tools" / "vllm_reports"
PROGRAMS = sorted(REPORTS.glob("*.py"))
# A place in vLLM, and what stands there.
PLACE = re.compile(r"`(vllm/[\w/]+\.py):(\d+)`: `([^`]+)`")


def imported(program: Path) -> set[str]:
    """The packages that a program imports, wherever in it."""
    names = set()
    for node in ast.walk(ast.parse(program.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "a relative import"
            names.add(node.module or "")
    return {name.partition(".")[0] for name in names}


def test_there_is_a_program_for_each_report():
    assert {one.stem for one in PROGRAMS} == {one.stem for one in REPORTS.glob("*.md")}
    assert PROGRAMS


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_a_program_needs_vllm_and_what_comes_with_it_alone(program):
    text = program.read_text()
    compile(text, program.name, "exec")
    theirs = {"vllm", "torch", "transformers", "tokenizers"}
    standard = {"os", "sys", "tempfile", "collections", "typing"}
    assert "vllm" in imported(program) <= theirs | standard
    assert "headstart" not in text


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_a_report_is_of_the_version_we_pin_and_names_its_program(program):
    said = program.with_suffix(".md").read_text()
    assert f"vLLM {VLLM_VERSION}" in said
    assert program.name in said
    for heading in ("What happens", "Expected", "Cause", "Proposed mend"):
        assert f"## {heading}\n" in said
    assert PLACE.findall(said)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_the_lines_that_a_report_names_say_what_it_says(program):
    found = importlib.util.find_spec("vllm")
    if found is None or found.origin is None:
        pytest.skip("vLLM is not installed")
    package = Path(found.origin).parents[1]
    for path, line, code in PLACE.findall(program.with_suffix(".md").read_text()):
        lines = (package / path).read_text().splitlines()
        assert code in lines[int(line) - 1], f"{path}:{line}"
