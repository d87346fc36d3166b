"""What people meet around the code: workflows, templates, citation, licences."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = [
    form
    for form in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    if form.stem != "config"
]
LICENCES = ROOT / ".ci" / "licences.py"


def name(path):
    return path.stem


def commands(workflow):
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    return [step["run"] for step in steps if "run" in step]


@pytest.mark.parametrize("path", WORKFLOWS, ids=name)
def test_a_workflow_has_no_secret_and_no_right_it_does_not_need(path):
    text = path.read_text()
    assert "secrets." not in text
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    rights = [job["permissions"] for job in workflow["jobs"].values() if "permissions" in job]
    assert rights == ([{"id-token": "write"}] if path.stem == "release" else [])
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())


@pytest.mark.parametrize("path", WORKFLOWS, ids=name)
def test_a_workflow_runs_programs_that_exist(path):
    for command in commands(yaml.safe_load(path.read_text())):
        for program in re.findall(r"\.ci/\S+|tests/\S+", command):
            assert (ROOT / program).exists(), command


def test_a_release_builds_before_it_publishes_and_checks_its_tag():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
    assert workflow["jobs"]["publish"]["needs"] == "build"
    assert any("--tag" in command for command in commands(workflow))
    # YAML reads the key "on" as a truth value.
    assert workflow[True]["push"] == {"tags": ["v*"]}


@pytest.mark.parametrize("path", FORMS, ids=name)
def test_an_issue_form_is_one_that_github_shows(path):
    form = yaml.safe_load(path.read_text())
    assert form["name"]
    assert form["description"]
    ids = [field["id"] for field in form["body"]]
    assert len(ids) == len(set(ids))
    assert all(field["attributes"]["label"] for field in form["body"])


def test_the_citation_has_what_citing_takes_and_no_version_of_its_own():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0"
    for field in ("message", "title", "authors", "license"):
        assert citation[field]
    assert "version" not in citation


def test_hooks_before_a_commit_use_the_tools_of_the_checkout():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    for repository in config["repos"]:
        assert repository["repo"] == "local"
        for hook in repository["hooks"]:
            program, *arguments = hook["entry"].split()
            assert program in {f".venv/bin/{tool}" for tool in ("ruff", "mypy", "pytest")}
            for argument in arguments:
                assert not argument.startswith("tests/") or (ROOT / argument).exists()


def check_licences(program, *arguments):
    return subprocess.run(
        [sys.executable, str(program), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_somebody_has_looked_at_every_licence(tmp_path):
    done = check_licences(LICENCES, tmp_path / "licences.md")
    assert done.returncode == 0, done.stdout + done.stderr
    # What an engine requires changes without us; what everybody gets is ours to say.
    rows = (tmp_path / "licences.md").read_text().splitlines()
    ours = [row for row in rows if "| headstart |" in row]
    assert len(ours) > len(("av", "numpy", "pillow", "rich", "typer"))
    for row in ours:
        assert row in (ROOT / "docs" / "licences.md").read_text(), f"run `make licences`: {row}"


def test_a_licence_that_nobody_has_looked_at_is_named(tmp_path):
    text = (ROOT / ".ci" / "licences.toml").read_text()
    for file, content in (
        ("licences.py", LICENCES.read_text()),
        ("licences.toml", text.replace('  "MIT-CMU",\n', "").replace("faery = ", "other = ")),
    ):
        (tmp_path / file).write_text(content)
    done = check_licences(tmp_path / "licences.py")
    assert done.returncode == 1
    assert re.search(r"^pillow: MIT-CMU \(headstart\)$", done.stdout, flags=re.MULTILINE)
    assert re.search(r"^faery: says nothing", done.stdout, flags=re.MULTILINE)
