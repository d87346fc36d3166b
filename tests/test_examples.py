"""Each example runs as its docstring says. The server's is in tests/serve/test_openai_client.py."""

import ast
import contextlib
import io
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from headstart.answers.answer import Answer
from headstart.answers.timeline import Span, Stage, Timeline
from headstart.live.answer_log import AnswerLog, row_of
from headstart.live.window_question import WindowAnswer

STEP = Span(Stage.PREFILL, 0.0, 1.0)
EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(scope="module")
def clips(tmp_path_factory) -> list[str]:
    """Two seconds of a street, the same."""
    from headstart_lab.street import street_video

    paths = [tmp_path_factory.mktemp("street") / f"second-{number}.mp4" for number in range(2)]
    for path in paths:
        street_video(num_frames=16, width=96, height=64).write(path)
    return [str(path) for path in paths]


@pytest.fixture
def run(monkeypatch) -> Callable[..., str]:
    """Runs an example and returns what it prints. In this process, which has imported vLLM."""
    monkeypatch.syspath_prepend(str(EXAMPLES))

    def run_here(name: str, *arguments: object) -> str:
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return said.getvalue()

    return run_here


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_the_docstring_says_how_to_run_it(example):
    said = ast.get_docstring(ast.parse(example.read_text()))
    assert f"\n    python examples/{example.name} " in said
    assert f"(examples/{example.name})" in (EXAMPLES.parent / "README.md").read_text()


@pytest.mark.engine
def test_a_second_question_on_a_clip_finds_its_frames_cached(run, tiny_target, clips):
    said = run("ask.py", tiny_target, clips[0])
    for stage in ("load", "preprocess", "vision", "prefill", "decode"):
        assert re.search(rf"^{stage} +\d+\.\d ms$", said, flags=re.MULTILINE)
    assert re.search(r"^(\d+) of \d+ prompt tokens were cached", said, flags=re.MULTILINE)[1] != "0"


@pytest.mark.engine
def test_a_session_drafts_from_its_first_answer_and_shows_it_early(run, tiny_target, clips):
    said = run("session.py", tiny_target, *clips)
    counts = re.findall(r"^(\d+) passes for (\d+) tokens", said, flags=re.MULTILINE)
    (alone, num_tokens), (remembered, num_later) = [tuple(map(int, pair)) for pair in counts]
    assert alone > 0.95 * num_tokens  # of its own words it may foresee a few
    assert remembered < num_later
    assert said.index("drafted by memory") < said.index("the target's words")
    accepted = re.search(r"^(\d+) of \d+ were drafted$", said, flags=re.MULTILINE)
    assert int(accepted[1]) > 0


@pytest.mark.engine
def test_two_cameras_are_watched_at_once(run, tiny_target, clips):
    said = run("watch.py", tiny_target, *clips, "--window", "0.32")
    for clip in clips:  # 16 frames at 25 Hz
        waits = re.findall(rf"^{clip}: ([\d.]+) s after its last frame: ", said, re.MULTILINE)
        dropped = re.search(rf"^{clip}: (\d) windows asked, (\d) dropped$", said, re.MULTILINE)
        assert len(waits) == int(dropped[1]) == 2 - int(dropped[2])
    assert "drafted by memory" in said


@pytest.mark.engine
def test_a_drafter_of_ones_own_drafts_for_another_camera(run, tiny_target, clips):
    left, right = run("own_drafter.py", tiny_target, clips[0]).split("right camera: ")
    assert "accepted" not in left
    assert re.search(r"same-question: [1-9]\d* of \d+ accepted", right)


OWN_PARTS = """
import runpy, sys

from headstart import Headstart, Sources

if __name__ == "__main__":
    sys.argv.pop(0)
    runpy.run_path(sys.argv[0], run_name="__main__")
    _, target, clip = sys.argv
    sources = Sources(drafters=("same-question",), abstain=False)
    with Headstart(target, sources=sources, vllm={"enforce_eager": True}) as headstart:
        print("shown by", type(headstart.target.view).__name__)
        for camera in ("left", "right"):
            answer = headstart.session(camera).ask(clip, "What is there?", max_tokens=12)
            accepted = [verdict.num_accepted for verdict in answer.verdicts]
            print(camera, sum(accepted), {verdict.draft.source for verdict in answer.verdicts})
"""
"""First an example, then an engine, in one process: to import both took as long as all the rest."""


@pytest.fixture(scope="module")
def own_parts(tmp_path_factory) -> dict[str, str]:
    """The environment of somebody who has installed the examples' package."""
    copy, site = tmp_path_factory.mktemp("own-parts") / "examples", tmp_path_factory.mktemp("site")
    shutil.copytree(EXAMPLES, copy)  # a build writes into it
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--no-index", "--target", str(site), str(copy)], check=True)
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "VLLM_LOGGING_LEVEL": "ERROR"}


def test_an_installed_drafter_and_an_installed_view_are_found_by_their_names(own_parts, tmp_path):
    code = """
from types import SimpleNamespace
from headstart.models.view import view_of
from headstart.drafters.registry import Ingredients, registration
print(registration("same-question").built(Ingredients()).name)
text = SimpleNamespace(vocab_size=9)
config = SimpleNamespace(
    architectures=["Qwen2_5_VLForConditionalGeneration"], get_text_config=lambda: text
)
print(type(view_of(config)).__name__)
"""
    found = subprocess.run(
        [sys.executable, "-c", code],
        env=own_parts,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout.split() == ["same-question", "LastSecond"], found.stderr


@pytest.mark.engine
def test_an_installed_drafter_drafts_for_a_model_with_an_installed_view(
    own_parts, clips, tmp_path_factory
):
    from tests.models.tiny_targets import SAVING

    directory = tmp_path_factory.mktemp("targets") / "qwen2_5_vl"
    SAVING["qwen2_5_vl"](directory)
    program = directory.parent / "ask.py"
    program.write_text(OWN_PARTS)
    done = subprocess.run(
        [sys.executable, str(program), str(EXAMPLES / "own_model.py"), str(directory), clips[0]],
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
        env=own_parts,
    )
    for expected in (
        r"LastSecond shows 4 of 16 frames",
        r"shown by LastSecond\nleft 0 .*\nright [1-9]\d* {'same-question'}",
    ):
        assert re.search(expected, done.stdout), done.stdout + done.stderr


def replayed(said: str) -> dict[str, float]:
    return {
        method: float(number)
        for number, method in re.findall(r"^ *([\d.]+) a pass  ([^(\n]+)", said, re.MULTILINE)
    }


def test_a_log_is_replayed_in_the_order_of_time(run, tmp_path):
    words = "We see a red car on the left and a {} straight ahead of us, waiting.".format
    log = tmp_path / "answers.jsonl"
    rows = [
        {"time": time, "stream": "front", "question": "What is there?", "target_text": words(thing)}
        for time, thing in ((3, "tram"), (1, "bus"), (2, "tram"))
    ]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    per_pass = replayed(run("replay_logs.py", log))
    # 18 words and marks in each answer. In the order of time the first takes a pass for each, the
    # second two because of its new word, and the third, which repeats it, one.
    assert per_pass["previous answer"] == pytest.approx(3 * 18 / (18 + 2 + 1), abs=0.01)
    assert per_pass["ngram"] == 1.0
    assert per_pass["memory"] > 2


def test_the_log_that_watching_writes_is_replayed_as_it_is(run, tmp_path):
    """``headstart watch --record`` writes it by these."""
    said = Answer("A tram.", tuple(range(20)), "stop", 9, 0, Timeline(0.0, 1.0, (STEP,)), (0,) * 20)
    with AnswerLog(tmp_path / "answers.jsonl") as log:
        for second in range(2):
            start_us, stop_us = 1_000_000 * second, 1_000_000 * (second + 1)
            log.write(row_of(WindowAnswer("front", "What?", start_us, stop_us, 8, 0.0, 0.0, said)))
    per_pass = replayed(run("replay_logs.py", tmp_path / "answers.jsonl"))
    assert per_pass["previous answer"] == pytest.approx(2 * 20 / (20 + 1), abs=0.01)
