"""`headstart gpu-report` on real engines and a small model, to its end, on whatever is here."""

import json
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from headstart.cli import app
from headstart_lab.language.questions import Question
from headstart_lab.street import street_video
from headstart_research.bench import gpu_parts
from headstart_research.bench.gpu_report import FILE, LOG, PAGE, read
from headstart_research.bench.result import BARE, BenchResult

SETTINGS = {"clips": 5, "answers": 4, "warmup": 1, "rounds": 1, "max_tokens": 12}
OPTIONS = tuple(f"--set={name}={value}" for name, value in SETTINGS.items())
ENGINE = (
    "--vllm=enforce_eager=true",
    "--vllm=dtype=float32",
    f"--vllm=kv_cache_memory_bytes={2**28}",
)
PARTS = ("doctor", "equality, eager", "speed, live")
"""In tests/bench whole clips are timed, too: that part, and by engines started for each method."""


def gpu_report(*arguments: str) -> Result:
    """Run the command in this process, which has imported vLLM. No time is looked at: no rests.

    What is installed it looks for in a process of its own; here that one has imported vLLM, too.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headstart_research.bench.run.REST_S", 0.0)
        patch.setattr(gpu_parts, "get_context", lambda _: get_context("forkserver"))
        return CliRunner().invoke(app, ["gpu-report", *arguments], env={"COLUMNS": "140"})


@pytest.fixture(scope="module")
def run(tiny_target, tmp_path_factory):
    """One report: the command's arguments, its result, and where it wrote."""
    out = tmp_path_factory.mktemp("report")
    arguments = playing(PARTS, tiny_target, out)
    return arguments, gpu_report(*arguments), out


def playing(parts: Sequence[str], target: Path, out: Path) -> list[str]:
    named = [f"--part={name}" for name in parts]
    return [f"--target={target}", f"--out={out}", *OPTIONS, *ENGINE, *named]


@pytest.mark.engine
def test_every_part_is_played_to_its_end(run):
    _, done, out = run
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout.splitlines()[-1]) == {"report": str(out / FILE), "failed": []}
    parts = read(out / FILE)["parts"]
    assert list(parts) == list(PARTS)
    assert {finding["part"] for finding in parts["doctor"]["result"]["findings"]} > {"engine"}
    assert "0 of 20 answers are not token for token bare vLLM's" in done.stdout
    assert "attach gpu-report.json" in done.stdout


@pytest.mark.engine
def test_words_are_compared_with_drafts_and_bare_vllm_is_left_as_it_is(run):
    equality = read(run[2] / FILE)["parts"]["equality, eager"]["result"]
    assert sum(row["accepted_tokens"] for row in equality["comparisons"]) > 0
    assert not [row for row in equality["comparisons"] if row["differences"]]
    bare, drafted = equality["settings"][BARE], equality["settings"]["headstart"]
    assert bare["speculative_method"] is None
    assert bare["scheduler"] is None or "headstart" not in bare["scheduler"]
    assert drafted["speculative_method"] == "custom_class"
    # All that was given was given to both.
    for name in ("dtype", "block_size", "max_num_seqs", "prefix_caching", "graphs"):
        assert bare[name] == drafted[name]


@pytest.mark.engine
def test_live_windows_are_timed_in_turn_with_bare_vllm(run):
    parts = read(run[2] / FILE)["parts"]
    live = BenchResult.parse(parts["speed, live"]["result"]["bench"])
    assert set(live.measured()) == {("live", "live")}
    assert len(live.pairs("live", "live")) == 3
    assert live.live == ("live",)
    assert all_words_are_the_same(live)
    assert "<h2>speed, live</h2>" in (run[2] / PAGE).read_text()


@pytest.mark.engine
@pytest.mark.nightly
def test_whole_clips_are_timed_in_turn_with_bare_vllm(tiny_target, tmp_path):
    done = gpu_report(*playing(("speed, files",), tiny_target, tmp_path))
    assert done.exit_code == 0, done.output
    parts = read(tmp_path / FILE)["parts"]
    files = BenchResult.parse(parts["speed, files"]["result"]["bench"])
    assert set(files.measured()) == {
        (workload, method) for workload in ("fixed", "streams-4") for method in ("none", "cascade")
    }
    assert all_words_are_the_same(files)


def all_words_are_the_same(result: BenchResult) -> bool:
    rows = result.summary().values()
    return all(found["other_words"] == 0 for row in rows for found in row.values())


@pytest.mark.engine
def test_neither_questions_nor_answers_are_in_the_file(run):
    text = (run[2] / FILE).read_text()
    assert Question.DESCRIBE.usual not in text
    assert '"answer":' not in text
    assert str(run[2].parent) not in text  # nor where the model lies


@pytest.mark.engine
def test_the_same_command_goes_on_and_another_is_refused(run):
    arguments, _, out = run
    before = (out / LOG).stat().st_size
    assert gpu_report(*arguments).exit_code == 0
    assert (out / LOG).stat().st_size == before  # nothing was played
    done = gpu_report(*arguments, "--set=float32=true")
    assert done.exit_code == 1
    assert "is a report with other options" in done.stderr


@pytest.mark.engine
def test_without_the_model_every_other_part_is_done_and_the_reasons_are_kept(tmp_path):
    street_video(num_frames=80, width=96, height=64).write(tmp_path / "street.mp4")  # 3.2 s
    done = gpu_report(
        "--target=nowhere/at-all",
        f"--out={tmp_path / 'out'}",
        f"--video={tmp_path / 'street.mp4'}",
        "--question=Who is at the door?",
        *OPTIONS,
    )
    assert done.exit_code == 1
    parts = read(tmp_path / "out" / FILE)["parts"]
    failed = ["equality, eager", "equality, graphs", "speed, files", "speed, live"]
    assert json.loads(done.stdout.splitlines()[-1])["failed"] == failed
    assert parts["doctor"]["state"] == "done"
    for name in failed:
        assert (
            "neither a directory with a config.json nor a model the hub knows"
            in (parts[name]["why"])
        )
    text = (tmp_path / "out" / FILE).read_text()
    assert "at the door" not in text
    assert str(tmp_path) not in text


def test_what_cannot_be_is_said_before_anything_starts(tmp_path):
    done = gpu_report("--target=x", f"--out={tmp_path}", "--part=everything")
    assert done.exit_code == 1
    assert (
        "no part is called 'everything' here; there are: doctor, 'equality, eager'," in done.stderr
    )
    done = gpu_report("--target=x", f"--out={tmp_path}", "--question=What?")
    assert done.exit_code == 1
    assert "give --video with those" in done.stderr
