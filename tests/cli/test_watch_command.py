"""`headstart watch`: what it refuses before an engine starts, what it prints, and a whole run."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from headstart.answers.answer import Answer
from headstart.answers.preview import Confirmed, Preview, Retracted
from headstart.answers.timeline import Span, Stage, Timeline
from headstart.cli import app
from headstart.cli.output import JsonLines, TextLines
from headstart.cli.watch import summary
from headstart.live.answer_log import AnswerLog, row_of
from headstart.live.session import LiveCounts
from headstart.live.sinks.mqtt_connection import topic_name
from headstart.live.sinks.outbox import DeliveryCounts
from headstart.live.sources.source import SourceCounts
from headstart.live.watching import WatchCounts
from headstart.live.window_question import WindowAnswer
from headstart.live.windows import FrameStatus
from headstart_lab.street import street_video
from headstart_research.bench.log import read_log
from rig.mosquitto import HAS_BROKER, Broker, Subscriber
from rig.waiting import wait_until as until


def answer_of(text, stream="front", wait_s=0.25):
    spans = [Span(Stage.PREFILL, 10.0, 10.1), Span(Stage.DECODE, 10.1, 10.0 + wait_s)]
    timeline = Timeline.of(10.0, 10.0 + wait_s, spans)
    answer = Answer(text, (5, 6, 7), "stop", 100, 90, timeline, (2, 0))
    return WindowAnswer(stream, "What?", 2_000_000, 4_000_000, 8, 10.0, 10.0, answer)


@pytest.fixture
def street(tmp_path):
    path = tmp_path / "street.mp4"
    street_video(num_frames=16, width=96, height=64).write(path, fps=8)
    return path


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["What is ahead?"], "then the question in quotes"),
        (["{street}", "{street}"], "is a file: give the question"),
        (["{street}", "What?", "--window", "0"], "a window of 0"),
        (["{street}", "What?", "--window", "2", "--step", "3"], "no longer than the window"),
        (["{street}", "What?", "--when", "changed"], "--events simulated"),
        (["{street}", "What?", "--set=at_least=3"], "--when changed"),
        (
            ["{street}", "What?", "--when", "changed", "--events", "simulated", "--set=at_least=0"],
            "a time above 0",
        ),
        (["{street}", "What?", "--json", "[]"], "holds no JSON"),
        (["{street}", "What?", "--json", "{street}"], "holds no JSON"),
        (["{street}", "What?", "--json", '{"type": }'], "--json holds no JSON"),
        (["{street}", "What?", "--hook", "receiver"], "http://HOST/PATH"),
        (["{street}", "What?", "--mqtt", "broker"], "mqtt://HOST"),
        (["{street}", "What?", "--set=mqtt_discovery=true"], "name a broker"),
        (["{street}", "What?", "--record", "no/such/folder.jsonl"], "cannot be written"),
        (["{street}", "What?", "--set=speed=0"], "a speed of 0"),
        (["/dev/video0", "What?", "--set=speed=2"], "speed is for files"),
        (["no-such.mp4", "What?"], "no-such.mp4"),
        (["{street}", "What?", "--events", "no-such.raw"], "no-such.raw"),
        (["{street}", "{street}", "What?", "--events", "{street}"], "one for each"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else None,
)
def test_what_cannot_be_is_said_before_an_engine_starts(words, said, street):
    words = [word.format(street=street) if "street" in word else word for word in words]
    result = CliRunner().invoke(app, ["watch", *words, "--target", "no-such-target"])
    assert result.exit_code == 1
    assert said in result.output
    assert "error: " in result.output


def test_a_broker_can_be_named_where_other_users_do_not_see_its_password(street):
    words = ["watch", str(street), "What?", "--target", "no-such-target"]
    result = CliRunner().invoke(app, words, env={"HEADSTART_MQTT": "broker"})
    assert result.exit_code == 1
    assert "mqtt://HOST" in result.output


def counts(asked=0, skipped=0, dropped=0, unread=0, **of_source):
    live = LiveCounts({FrameStatus.TAKEN: 8}, 0, asked, asked, skipped, dropped, unread)
    return WatchCounts(SourceCounts(**of_source), live)


def test_the_summary_is_about_all_cameras():
    waits_s = [0.1] * 94 + [1.0] * 6
    assert summary([counts(5, 2, 1), counts(7)], waits_s, {}) == (
        "12 windows asked, 2 skipped, 1 dropped;"
        " wait from the last frame: median 0.10 s, p95 1.00 s"
    )


def test_the_summary_tells_what_was_lost():
    told = summary(
        [counts(1, unread=4, dropped=0, reconnects=2), counts()],
        [],
        {"hook": DeliveryCounts(3, 2, 0, "503 Busy"), "mqtt": DeliveryCounts(5, 0, 0, "gone")},
    )
    assert told == (
        "1 windows asked, 0 skipped, 0 dropped; 4 not asked since answers were not read;"
        " 2 reconnects; hook: 3 delivered, 2 dropped (503 Busy);"
        " mqtt: 5 delivered, 0 dropped"
    )


def test_rows_are_a_log_that_replay_reads(tmp_path, capsys):
    file = tmp_path / "answers.jsonl"
    for text in ("A bus.", "Ein Café\nund ein Bus."):
        with AnswerLog(file) as log:  # appends
            log.write(row_of(answer_of(text)))
        JsonLines().print(answer_of(text))
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [row["target_text"] for row in rows] == ["A bus.", "Ein Café\nund ein Bus."]
    assert (rows[0]["first_token_s"], rows[0]["wait_s"], rows[0]["num_passes"]) == (0.1, 0.25, 2)
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [{**row, "time": ""} for row in printed] == [{**row, "time": ""} for row in rows]
    first, second = read_log(file)
    assert first.tokens == (5, 6, 7)
    assert (first.request.question, first.request.stream.stream) == ("What?", "front")
    assert second.request.stream == first.request.stream


def test_a_log_goes_on_behind_its_last_whole_row(tmp_path):
    file = tmp_path / "answers.jsonl"
    with AnswerLog(file) as log:
        log.write(row_of(answer_of("A bus.")))
        log.write(row_of(answer_of("A tram.")))
    file.write_bytes(file.read_bytes()[:-40])  # as a kill leaves it
    with AnswerLog(file) as log:
        log.write(row_of(answer_of("A bicycle.")))
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [row["target_text"] for row in rows] == ["A bus.", "A bicycle."]
    assert len(read_log(file)) == 2


def test_a_log_cuts_nothing_off_that_is_not_a_row(tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("a line\nmy last line")
    with AnswerLog(notes):
        pass
    assert notes.read_text() == "a line\nmy last line"


def test_a_full_disk_is_an_error_that_says_so():
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    log = AnswerLog("/dev/full")
    with pytest.raises(Exception, match="make room"):
        log.write(row_of(answer_of("A bus.")))
    with contextlib.suppress(OSError):
        log.close()


def test_previews_are_dim_below_the_answers_and_taken_back():
    console = Console(width=100, force_terminal=True, color_system="standard", highlight=False)
    frames = []
    with TextLines(console) as lines:

        def draw():
            with console.capture() as capture:
                lines._live.refresh()
            frames.append(capture.get().split("\x1b[2K")[-1].removeprefix("\x1b[1mfront  \x1b[0m"))

        for shown in (
            Preview(" A car.", "memory"),
            Confirmed(" A "),
            Retracted("car."),
            Confirmed("bus."),
            Confirmed(" Next"),
        ):
            lines.on_shown("front", shown)
            draw()
        with console.capture() as capture:
            lines.print(answer_of(" A bus."))
        draw()
    dim, end = "\x1b[2m", "\x1b[0m"
    under_way = [f"{dim}A car.{end}", f"A {dim}car.{end}", "A ", "A bus.", "A bus. Next", "Next"]
    assert frames == under_way
    assert f"{dim}2.0-4.0 s  {end}\x1b[32m+0.25 s  {end}A bus.\n" in capture.get()


def test_elsewhere_than_on_a_terminal_an_answer_is_a_line():
    console = Console(width=20, force_terminal=False, highlight=False)
    with console.capture() as capture, TextLines(console) as lines:
        assert lines.on_shown is None
        lines.print(answer_of("A bus that is longer than this line. "))
    assert capture.get() == "front  2.0-4.0 s  +0.25 s  A bus that is longer than this line.\n"


class _Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers["Content-Length"])
        self.server.rows.append(json.loads(self.rfile.read(length)))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def receiver():
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Receiver)
    server.rows = []
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def subscriber(tmp_path):
    """Of a broker; None where there is none, since the command is tried anyway."""
    if not HAS_BROKER:
        yield None
        return
    with Broker(tmp_path) as broker, Subscriber(broker) as running:
        yield running


def descendants(pid):
    """Every process that this one has started, and theirs."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            text = stat.read_text()
            parents[int(text.split()[0])] = int(text[text.rindex(")") + 1 :].split()[1])
    found, new = set(), {pid}
    while new:
        found |= new
        new = {child for child, parent in parents.items() if parent in new} - found
    return found - {pid}


@pytest.mark.engine
def test_two_cameras_are_watched_until_ctrl_c(tiny_target, tmp_path, receiver, subscriber):
    """One run of the command: JSON lines, a schema, a log, a hook, MQTT, previews, a clean end."""
    names = [tmp_path / name for name in ("left.mp4", "right.mp4")]
    for name in names:
        street_video(num_frames=480, width=96, height=64).write(name, fps=8)  # a minute
    log = tmp_path / "log.jsonl"
    arguments = [*map(str, names), "Is it safe?", "--target", str(tiny_target)]
    arguments += ["--window", "1", "--output", "jsonl", "--record", str(log), "--max-tokens", "24"]
    arguments += ["--hook", f"http://127.0.0.1:{receiver.server_port}/answers"]
    if subscriber is not None:
        arguments += ["--mqtt", subscriber.broker.url, "--set=mqtt_discovery=true"]
    arguments += ["--json", json.dumps({"type": "object", "properties": {"a": {"enum": [1]}}})]
    arguments += ["--when", "changed", "--events", "simulated", "--set=at_least=2"]
    for each in ("dtype=float32", "enforce_eager=true", "block_size=32"):
        arguments += ["--vllm", each]
    process = subprocess.Popen(
        [sys.executable, "-c", "from headstart.cli import main; main()", "watch", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell that starts the tests in the background has Ctrl-C ignored, by them as well.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        # The engine in processes of its own, as people run it.
        env={**os.environ, "VLLM_ENABLE_V1_MULTIPROCESSING": "1"},
    )
    rows = []
    try:
        while len({row["stream"] for row in rows}) < 2 or len(rows) < 6:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            rows.append(json.loads(line))
        children = descendants(process.pid)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        rest, told = process.communicate(timeout=60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, told
    assert "Traceback" not in told
    assert "ERROR" not in told
    assert not children & descendants(os.getpid())
    rows += [json.loads(line) for line in rest.splitlines()]
    assert {row["stream"] for row in rows} == set(map(str, names))
    assert all(row["target_text"].startswith("{") and row["num_frames"] for row in rows)
    # The last line of ours: on a busy machine Python's resource tracker may warn after it.
    (summed_up,) = (line for line in told.splitlines() if "windows asked" in line)
    assert summed_up.startswith(tuple("123456789"))
    assert "wait from the last frame: median" in summed_up
    assert f"hook: {len(rows)} delivered, 0 dropped" in summed_up
    assert len(receiver.rows) == len(rows) == len(read_log(log))
    assert [row["target_tokens"] for row in receiver.rows] == [row["target_tokens"] for row in rows]
    if subscriber is not None:
        assert f"mqtt: {len(rows)} delivered, 0 dropped" in summed_up
        until(lambda: subscriber.statuses() == ["online", "offline"])
        for name in map(str, names):
            topic = f"home/cameras/{topic_name(name)}/answer"
            sent = [row["target_tokens"] for row in rows if row["stream"] == name]
            assert [row["target_tokens"] for row in subscriber.rows(topic)] == sent
        assert sum(topic.startswith("homeassistant/") for topic, *_ in subscriber.received) == 2
    replayed = CliRunner().invoke(app, ["replay", str(log)])
    assert replayed.exit_code == 0
    assert "memory" in json.loads(replayed.stdout.splitlines()[-1])
