"""A whole bench on real engines and small models: every sample, the page, the table."""

import json
import re

import pytest
from click.testing import Result
from typer.testing import CliRunner

from headstart.cli import app
from headstart_lab.street import street_video
from headstart_research.bench.methods import Rig
from headstart_research.bench.result import BARE, BenchResult

WORKLOADS = {"fixed": 1, "json": 1, "streams-2": 2}
"""Name and number of streams."""
METHODS = ("ngram (vLLM)", "cascade")
ANSWERS, WARMUP, TOKENS = 4, 2, 16


def headstart(*arguments: str) -> Result:
    """Run the command in this process, which has imported vLLM. README's runs as people run it.

    No time is looked at, so the engines need no rests.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headstart_research.bench.run.REST_S", 0.0)
        return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "140"})


@pytest.fixture(scope="module")
def bench(tiny_target, tmp_path_factory):
    """One run of the command: its output, and where it wrote."""
    out = tmp_path_factory.mktemp("bench")
    options = [f"--workload={name}" for name in WORKLOADS]
    options += [f"--method={name}" for name in METHODS]
    options += [f"--answers={ANSWERS}", f"--set=warmup={WARMUP}", f"--set=max_tokens={TOKENS}"]
    options += ["--rounds=1", "--vllm=enforce_eager=true", "--vllm=dtype=float32"]
    options += [f"--vllm=kv_cache_memory_bytes={2**28}"]
    done = headstart("bench", f"--target={tiny_target}", f"--out={out}", *options)
    assert done.exit_code == 0, done.stderr
    return done.stdout, out


@pytest.mark.engine
def test_the_last_line_is_the_summary_and_the_table_stands_above_it(bench):
    output, out = bench
    summary = json.loads(output.splitlines()[-1])["summary"]
    assert set(summary) == set(WORKLOADS)
    for rows in summary.values():
        assert set(rows) == set(METHODS)
        for row in rows.values():
            assert {"end_to_end", "first_token", "tokens_per_pass"} <= set(row)
            assert row["end_to_end"] > 0
            assert row["other_words"] == 0  # float32: drafts change no token
    assert "tokens/pass" in output
    assert "suffix (vLLM) was not measured" in output or "suffix (vLLM)" in summary["fixed"]
    assert "two devices: the target alone on both was not measured" in output
    assert json.loads((out / "bench.json").read_text())["summary"] == summary


@pytest.mark.engine
def test_every_sample_is_kept_and_paired(bench):
    result = BenchResult.read(bench[1] / "bench.json")
    for workload, num_streams in WORKLOADS.items():
        for method in METHODS:
            assert len(result.pairs(workload, method)) == num_streams * (ANSWERS - WARMUP)
    # Two methods, each with bare vLLM beside it.
    assert len(result.samples) == 2 * 2 * ANSWERS * sum(WORKLOADS.values())
    for sample in result.samples:
        assert 0 < sample.first_token_s <= sample.end_to_end_s
        assert sum(sample.accepted) + sample.num_passes >= sample.num_tokens > 0
        assert sample.num_cached_tokens == 0  # every clip is new to its engine
        if sample.method == BARE:
            assert not sample.drafted
            assert sample.num_passes == sample.num_tokens
    assert {"date", "machine", "versions", "command"} <= set(result.environment)


@pytest.mark.engine
def test_the_page_is_there_and_the_result_can_be_compared_and_planned_with(bench):
    out = bench[1]
    assert (out / "bench.html").read_text().count("<figure>") == len(WORKLOADS) * 7
    same = headstart("bench", "compare", f"{out}/bench.json", f"{out}/bench.json")
    assert same.exit_code == 0, same.stderr
    assert json.loads(same.stdout.splitlines()[-1]) == {
        "regressions": [],
        "compared": 2 * len(WORKLOADS),
    }
    planned = headstart("plan", "--from", f"{out}/bench.json")
    assert planned.exit_code == 0, planned.stderr
    assert len(json.loads(planned.stdout.splitlines()[-1])["forecast"]) == len(WORKLOADS) * 3


def test_answers_that_only_warm_up_are_refused_before_a_model_is_loaded(tmp_path):
    street_video(num_frames=80).write(tmp_path / "drive.mp4")  # 3.2 s
    options = [f"--folder={tmp_path}", "--answers=3", f"--out={tmp_path / 'out'}"]
    done = headstart(
        "bench", "--target=nowhere", *options, "--set=warmup=3", "--set=one_engine=true"
    )
    assert done.exit_code == 1
    assert "folder has 3 clips, and 3 only warm up: raise --answers" in done.stderr


def test_help_says_that_open_loops_are_played_only_by_name():
    text = " ".join(headstart("bench", "--help").stdout.replace("│", " ").split())
    assert "open-8 and open-16, whose questions arrive by themselves, are played only if" in text


def test_what_does_not_exist_is_named(tmp_path):
    done = headstart("bench", "--target=nowhere", f"--out={tmp_path}", "--workload=unheard-of")
    assert done.exit_code == 1
    assert "no workload is called 'unheard-of' here; there are: fixed, rotating" in done.stderr
    done = headstart("bench", "--target=nowhere", f"--out={tmp_path}", "--method=nonsense")
    assert done.exit_code == 1
    there = done.stderr.partition("there are: ")[2].strip()
    names = [name.strip("'") for name in re.findall(r"'[^']+'|[^, ]+", there)]
    # Each can be typed as it stands there, those with blanks and commas too.
    assert names == [method.name for method in Rig("nowhere").methods()[0][1:]]
    done = headstart("bench", "--target=nowhere", f"--out={tmp_path}", "--set=frames=16")
    assert done.exit_code == 1
    assert "set frames with --folder only" in done.stderr
