"""`headstart collect`: what it refuses, what it shows, and whole runs, one of them killed."""

import json
import os
import signal
import time

import pytest
from rich.console import Console
from typer.testing import CliRunner

from headstart_lab.street import street_video

pytest.importorskip("pyarrow", reason="needs headstart[train]")

from headstart.cli import app
from headstart.media.events import SensorSize
from headstart_events.simulation import simulate
from headstart_events.writers.writing import write_recording
from headstart_research.collect.collection import Collection
from headstart_research.collect.manifest import FILE
from headstart_research.collect.shard_files import collected
from headstart_research.commands.collect_progress import CollectProgress
from rig.forked_command import ForkedCommand
from rig.waiting import wait_until
from tests.collect.records import by_place

ENGINE = ["--vllm", "dtype=float32", "--vllm", "enforce_eager=true", "--vllm", "block_size=32"]
QUESTIONS = ["--question", "What is ahead?", "--question", "Who is crossing?"]
NUM_SECONDS = {"a.mp4": 3, "b.mp4": 4, "c.mp4": 2, "d.mp4": 3}
NUM_RECORDS = 2 * sum(NUM_SECONDS.values())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Four videos with events beside them, each of another length and at another speed."""
    folder = tmp_path_factory.mktemp("recordings")
    for name, seconds in NUM_SECONDS.items():
        street = street_video(num_frames=12 * seconds + 1, width=96, height=64, fps=12.0)
        street.write(folder / name, fps=12)
        events = simulate(zip(street.times_us.tolist(), street.frames, strict=True))
        write_recording((folder / name).with_suffix(".npz"), events, SensorSize(96, 64))
    return folder


def arguments(target, folder, out, *more):
    places = ["--target", str(target), "--folder", str(folder), "--out", str(out)]
    return ["collect", *places, *QUESTIONS, "--set=max_tokens=8", *ENGINE, *more]


@pytest.fixture
def invoke(monkeypatch):
    """Runs the command in this process, where engines start sooner; gives its last line."""
    for name in ("VLLM_LOGGING_LEVEL", "TORCH_CPP_LOG_LEVEL"):
        monkeypatch.setenv(name, "ERROR")  # the command sets them; gone again afterwards
    monkeypatch.setenv("PYTHONWARNINGS", "ignore")

    def invoke(*words):
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, (done.output, done.exception)
        return json.loads(done.stdout.splitlines()[-1])

    return invoke


def start(log, *words):
    """In a session of its own, so that its group is not that of the tests."""
    code = "import os; os.setsid(); from headstart.cli import main; main()"
    return ForkedCommand(["-c", code, *words], os.environ, log)


@pytest.mark.engine
@pytest.mark.timeout(900)
def test_a_killed_run_that_goes_on_equals_an_unbroken_one(tiny_target, folder, tmp_path, invoke):
    """To the bit, with one clip at a time: then nothing depends on which clips meet in a batch."""
    in_turn = ["--set=at_once=1", "--set=clips_a_file=2"]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    said = invoke(*arguments(tiny_target, folder, whole, *in_turn))
    assert said["records"] == said["new"] == NUM_RECORDS

    log = tmp_path / "log"
    process = start(log, *arguments(tiny_target, folder, broken, *in_turn))
    second = broken / "shard-1-of-1" / "000001.parquet"

    def is_written():
        assert process.poll() is None, log.read_text()
        return second.exists()

    wait_until(is_written, "the second file", 600)
    os.killpg(process.pid, signal.SIGKILL)  # the engine's processes too
    process.wait()
    kept = by_place(collected(broken))
    assert 0 < len(kept) < NUM_RECORDS

    said = invoke(*arguments(tiny_target, folder, broken, *in_turn))
    assert said["records"] == NUM_RECORDS
    assert said["new"] == NUM_RECORDS - len(kept)
    assert by_place(collected(broken)) == by_place(collected(whole))
    manifest = json.loads((broken / FILE).read_text())
    assert manifest["questions"] == ["What is ahead?", "Who is crossing?"]
    assert invoke(*arguments(tiny_target, folder, broken, *in_turn))["new"] == 0


@pytest.mark.engine
@pytest.mark.timeout(600)
def test_two_shards_of_the_lab_with_both_models(tiny_target, tiny_drafter, tmp_path, invoke):
    out = tmp_path / "out"
    for number in (1, 2):
        words = ["collect", "--target", str(tiny_target), "--draft-model", str(tiny_drafter)]
        words += ["--out", str(out), "--set=drives=5", "--set=clips=2", "--set=max_tokens=8"]
        words += [*ENGINE, "--vllm=draft_model.dtype=float32", "--set=licence=cc0-1.0"]
        words += ["--vllm=draft_model.enforce_eager=true", f"--set=shard={number}/2"]
        said = invoke(*words)
        assert said["new"] > 0
    assert said["features"]["drafter"] == {"min_tokens": 22, "max_tokens": 22, "size": 128}
    records = by_place(collected(out))
    assert len(records) == 5 * 2 * 4
    for record in records.values():
        shapes = {name: shape for name, (shape, _) in record["features"].items()}
        assert shapes == {
            "target_last": (17, 128),
            "target_earlier": (14, 128),
            "drafter": (22, 128),
        }
    assert len({record["clip_digest"] for record in records.values()}) == 10
    manifest = json.loads((out / FILE).read_text())
    assert manifest["licence"] == "cc0-1.0"
    assert manifest["num_shards"] == 2
    assert manifest["drafter"]["digest"] != manifest["target"]["digest"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--set", "shard=3/2"], "such as 2/8"),
        (["--tenant", "north"], "give --log as well"),
        (["--held-out", "--folder", "{folder}"], "without --folder and --log"),
        (["--held-out", "--log", "{log}", "--tenant", ""], "without --folder and --log"),
        (["--log", "{log}"], "say with --tenant"),
        (["--log", "{log}", "--tenant", "north", "--draft-model", "d"], "without --folder"),
        (["--log", "{log}", "--tenant", "north", "--question", "What?"], "without --folder"),
    ],
)
def test_what_cannot_be_collected_is_said_before_anything_starts(tmp_path, more, said):
    log = tmp_path / "log.jsonl"
    log.write_text('{"question": "What?", "target_tokens": [1], "tenant": "north"}\n')
    words = [word.format(log=log, folder=tmp_path) for word in more]
    done = CliRunner().invoke(
        app, ["collect", "--target", "t", "--out", str(tmp_path / "o"), *words]
    )
    assert done.exit_code == 1
    assert said in " ".join(done.output.split())
    assert not (tmp_path / "o").exists()


def test_a_log_needs_no_engine(tmp_path, tiny_target):
    log = tmp_path / "log.jsonl"
    log.write_text('{"question": "What?", "target_tokens": [1], "tenant": "north"}\n')
    words = ["collect", "--target", str(tiny_target), "--out", str(tmp_path / "o")]
    done = CliRunner().invoke(app, [*words, "--log", str(log), "--tenant", "north"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout.splitlines()[-1])
    assert (said["records"], said["features"]) == (1, {})


def test_ctrl_c_says_how_to_go_on(tmp_path, monkeypatch):
    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(Collection, "collect_log", interrupted)
    (tmp_path / "log.jsonl").touch()
    words = ["collect", "--target", "t", "--out", str(tmp_path / "o")]
    done = CliRunner().invoke(app, [*words, "--log", str(tmp_path / "log.jsonl"), "--tenant", ""])
    assert done.exit_code == 130
    assert "run the same command again" in " ".join(done.output.split())


def test_where_there_is_no_terminal_lines_tell_the_rate_and_the_time_left(monkeypatch, capsys):
    now_s = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    with CollectProgress(Console(stderr=True, force_terminal=False), line_s=10.0) as progress:
        progress.expect(1000)
        now_s[0] += 60  # the models are loaded
        for _ in range(5):
            progress.advance(20)
            now_s[0] += 5
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1] == "100 of 1000 records, 4.00 a second, 4 min left"
    assert len(lines) == 3
