"""Logs of tenants' answers: who is in them, whose they are, and what a kill or a disk may cost."""

import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from headstart.drafters.memory_log import read_memory_log
from headstart.engine.question import Question
from headstart.engine.request_record import RequestRecord
from headstart.speculation.drafter import StreamKey
from headstart_research.bench.log import read_log
from headstart_research.collect.answer_rows import logged_records
from headstart_research.collect.shard import Shard
from headstart_server import tenant_logs
from headstart_server.metrics import LOGGED_ANSWERS
from headstart_server.settings_table import SettingsError
from headstart_server.tenant_logs import MAX_WAITING_ROWS, TenantLogs, log_name
from rig.live_camera import NUM_SLOTS, QUESTION, LiveCamera, jpegs
from rig.servers import CHAT, ask, asking, metric
from rig.waiting import PATIENCE_S
from tests.serve.registered_camera import AnswerReader, film_camera, registered, write_film

LARGE = 1 << 20
HOSTILE = ("", "north", "North", "../../etc/passwd", "a/b", "a_b", "..", "-rf", "x" * 500, "ü\n車")


def question(tenant="north", stream="door", words="What?", **more):
    return Question(words, stream=StreamKey(tenant, stream), tenant=tenant, **more)


def record(*tokens, reason="stop"):
    return RequestRecord("id", 0.0, 0.0, token_ids=list(tokens), finish_reason=reason)


def counted(fate):
    return LOGGED_ANSWERS.labels(fate)._value.get()


def log_of(directory, tenant="north"):
    return directory / f"{log_name(tenant)}.jsonl"


def tokens_in(file):
    return [row.tokens for row in read_memory_log(file)]


def logged(directory, *answers, max_tenant_bytes=LARGE):
    logs = TenantLogs(directory, max_tenant_bytes)
    for asked, answered in answers:
        logs.answered(asked, answered)
    logs.close()


def test_an_answer_is_a_row_for_everyone_who_learns_from_logs(tmp_path):
    logged(
        tmp_path,
        (question(words="Wer, \U0001f697?"), record(5, 6, 2)),
        (question(stream="yard"), record(7, reason="length")),
    )
    file = log_of(tmp_path)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert rows[0].pop("time") <= rows[1].pop("time")
    assert rows[0] == {
        "tenant": "north",
        "stream": "door",
        "question": "Wer, \U0001f697?",
        "target_tokens": [5, 6, 2],
        "finish_reason": "stop",
    }
    records = logged_records(file, "north", Shard())
    assert [(r.stream, r.answer_ids, r.finish_reason) for r in records] == [
        ("door", (5, 6, 2), "stop"),
        ("yard", (7,), "length"),
    ]
    assert [answer.tenant for answer in read_memory_log(file)] == ["north"] * 2
    assert [row.request.stream for row in read_log(file)] == [
        StreamKey("north", "door"),
        StreamKey("north", "yard"),
    ]


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        (Question("What?", tenant="north"), record(1)),
        (question(is_private=True), record(1)),
        (question(words=""), record(1)),
        (question(), record()),
        (question(), record(1, reason=None)),
        (question(), record(1, reason="abort")),
        (question(), record(1, reason="error")),
        (question(), record(1, reason="repetition")),
    ],
    ids=["no stream", "private", "no words", "empty", "left", "aborted", "failed", "repeating"],
)
def test_what_may_not_be_remembered_or_is_no_answer_is_not_logged(tmp_path, asked, answered):
    before = counted("dropped")
    logged(tmp_path, (asked, answered), (question(), record(9)))
    assert tokens_in(log_of(tmp_path)) == [(9,)]
    assert counted("dropped") == before


def test_each_tenant_has_a_file_of_its_own_inside_the_directory(tmp_path):
    directory = tmp_path / "new" / "answers"
    logged(directory, *((question(name), record(n)) for n, name in enumerate(HOSTILE)))
    for number, name in enumerate(HOSTILE):
        assert tokens_in(log_of(directory, name)) == [(number,)]
    names = {file.name.lower() for file in directory.iterdir()}
    assert len(names) == len(HOSTILE) + 1, "and the lock"
    assert not any(name.startswith(("-", ".")) for name in names)
    assert [each.name for each in tmp_path.iterdir()] == ["new"]


def test_only_the_servers_own_user_can_read_them(tmp_path):
    before = os.umask(0)
    try:
        logged(tmp_path / "answers", (question(), record(1)))
    finally:
        os.umask(before)
    assert stat.S_IMODE(log_of(tmp_path / "answers").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "answers").stat().st_mode) == 0o700


def test_a_log_is_bounded_and_its_newest_rows_are_there(tmp_path):
    limit = 4000
    answers = [(question(), record(number)) for number in range(200)]
    logged(tmp_path, *answers, (question("south"), record(7)), max_tenant_bytes=limit)
    newer = log_of(tmp_path)
    older = newer.with_suffix(".older.jsonl")
    assert limit / 2 < newer.stat().st_size + older.stat().st_size <= limit
    kept = [*tokens_in(older), *tokens_in(newer)]
    assert kept == [(number,) for number in range(200 - len(kept), 200)]
    assert stat.S_IMODE(older.stat().st_mode) == 0o600
    assert tokens_in(log_of(tmp_path, "south")) == [(7,)]


def test_a_row_too_large_for_its_log_or_for_waiting_is_dropped_and_counted(tmp_path):
    before = counted("dropped")
    long = question(words="x" * (tenant_logs.MAX_QUESTION_CHARACTERS + 1))
    huge = record(*range(2000))
    logged(
        tmp_path, (long, record(1)), (question(), huge), (question(), record(9)),
        max_tenant_bytes=4000,
    )  # fmt: skip
    assert counted("dropped") - before == 2
    assert tokens_in(log_of(tmp_path)) == [(9,)]


def test_a_disk_that_hangs_costs_rows_and_nobodys_time(tmp_path, monkeypatch):
    hanging = threading.Event()
    append = TenantLogs._append

    begun = []

    def slowly(self, tenant, line):
        begun.append(line)
        assert hanging.wait(PATIENCE_S)
        return append(self, tenant, line)

    monkeypatch.setattr(TenantLogs, "_append", slowly)
    logs, before = TenantLogs(tmp_path, LARGE), counted("dropped")
    for number in range(MAX_WAITING_ROWS + 11):
        logs.answered(question(), record(number))
    assert len(begun) <= 1  # and that one still hangs: nobody has waited for it
    # One may be in the thread's hands already.
    assert 10 <= counted("dropped") - before <= 11
    hanging.set()
    logs.close()
    assert len(log_of(tmp_path).read_bytes().splitlines()) >= MAX_WAITING_ROWS


def test_a_full_disk_costs_the_row_and_leaves_no_half(tmp_path, monkeypatch):
    calls = []

    class FullOnce:
        """The module `os`, whose second write breaks off and whose third fails."""

        def __getattr__(self, name):
            return getattr(os, name)

        def write(self, handle, line):
            calls.append(line)
            if len(calls) == 3:
                raise OSError(28, "No space left on device")
            return os.write(handle, line[:20] if len(calls) == 2 else line)

    monkeypatch.setattr(tenant_logs, "os", FullOnce())
    dropped, written = counted("dropped"), counted("written")
    logged(tmp_path, *((question(), record(number)) for number in range(4)))
    assert (counted("dropped") - dropped, counted("written") - written) == (2, 2)
    assert tokens_in(log_of(tmp_path)) == [(0,), (3,)]
    assert len(log_of(tmp_path).read_bytes().splitlines()) == 2


WRITER = """
import itertools, sys, time
from pathlib import Path
from tests.serve.test_tenant_logs import TenantLogs, question, record
logs = TenantLogs(Path(sys.argv[1]), 1 << 30)
for number in itertools.count():
    logs.answered(question(words="x" * 5000), record(number))
    if number == 20:
        print("writing", flush=True)
    time.sleep(0.001)
"""


def test_one_server_writes_and_after_it_was_killed_another_goes_on(tmp_path):
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert writer.stdout.readline() == "writing\n"
        with pytest.raises(SettingsError, match="another directory"):
            TenantLogs(tmp_path, LARGE)
    finally:
        writer.kill()
        writer.communicate()
    file = log_of(tmp_path)
    numbers = [tokens[0] for tokens in tokens_in(file)]
    assert numbers == sorted(numbers)
    # As if the kill had come in the middle of a line, which is too short a time to hit.
    with file.open("ab") as torn:
        torn.write(b'{"time":"2026-11-17T20:00:00.000+00:00","tenant":"no')
    assert len(tokens_in(file)) == len(numbers)
    assert len(read_log(file)) == len(logged_records(file, "north", Shard())) >= len(numbers)
    logged(tmp_path, (question(), record(7)), max_tenant_bytes=1 << 30)
    assert tokens_in(file)[-2:] == [(numbers[-1],), (7,)]


def test_a_directory_that_cannot_be_written_is_an_error_with_advice(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="answer_log"):
        TenantLogs(tmp_path / "file" / "answers", LARGE)


def rows_of(directory, tenant, stream):
    file = log_of(directory, tenant)
    rows = map(json.loads, file.read_text().splitlines()) if file.exists() else ()
    return [row for row in rows if row["stream"] == stream]


@pytest.mark.engine
def test_a_server_logs_what_its_tenants_streams_were_answered_and_nothing_else(
    server, north, south, operator, clips, answer_log
):
    def body(words, **more):
        return asking(clips / "street.mp4", words, return_token_ids=True, **more)

    said = [ask(north, body("What is logged?"), stream="logged")]
    ask(south, body("What is south's?"), stream="logged")
    ask(north, body("Without a stream?"))
    ask(north, body("With a salt?", cache_salt="own"), stream="logged")
    long = body("Left early?", max_tokens=340, ignore_eos=True, stream=True)
    with north.stream("POST", CHAT, json={**long, "headstart": {"stream": "logged"}}) as left:
        next(left.iter_lines())
    server.wait_until(lambda: metric(operator, "headstart_requests_in_flight ") == 0, "all ended")
    said.append(ask(north, body("And then?"), stream="logged"))
    server.wait_until(lambda: len(rows_of(answer_log, "north", "logged")) >= 2, "two rows")
    assert [
        (row["question"], row["target_tokens"], row["finish_reason"])
        for row in rows_of(answer_log, "north", "logged")
    ] == [
        (words, answer["choices"][0]["token_ids"], answer["choices"][0]["finish_reason"])
        for words, answer in zip(("What is logged?", "And then?"), said, strict=True)
    ]
    (theirs,) = rows_of(answer_log, "south", "logged")
    assert (theirs["tenant"], theirs["question"]) == ("south", "What is south's?")
    assert metric(operator, 'headstart_logged_answers_total{fate="written"}') >= 3


@pytest.mark.engine
def test_live_cameras_of_both_kinds_are_logged(server, north, answer_log, camera_port, tmp_path):
    with LiveCamera(server) as camera:
        camera.start(stream="logged socket")
        camera.show_window(jpegs(NUM_SLOTS, seed=500), 0)
        camera.ack(camera.wait_for("answer"))
        camera.say({"type": "ask", "id": "more", "question": "How many?", "max_tokens": 24})
        camera.wait_for("answer")
    film = write_film(tmp_path / "film.mkv", 0, 2 * NUM_SLOTS)
    source = f"http://127.0.0.1:{camera_port}/film.mkv"
    with (
        film_camera(film, camera_port),
        registered(north, source, stream="logged camera") as watched,
        AnswerReader(north, watched["id"]) as reader,
    ):
        told = [message for message in reader if message["type"] == "answer"]
    wanted = {"logged socket": [QUESTION, "How many?"], "logged camera": [QUESTION] * len(told)}
    assert told
    for stream, questions in wanted.items():
        server.wait_until(
            lambda stream=stream, questions=questions: (
                [row["question"] for row in rows_of(answer_log, "north", stream)] == questions
            ),
            f"rows of {stream}",
        )
