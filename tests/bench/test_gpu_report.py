"""A machine's report: one file, robust parts, nothing of the user's in it, a page to read."""

import json
import os
import subprocess
import sys

import pytest

from headstart.errors import BenchError
from headstart_research.bench import cards
from headstart_research.bench.engine_log import kept_output, last_lines
from headstart_research.bench.gpu_report import FILE, LOG, GpuReport, Part, read
from headstart_research.bench.gpu_report_page import SEND, page, summary
from tests.bench.played import played_result

ABOUT = {"date": "2026-11-18 12:00 UTC", "machine": "arithmetic", "options": {"words": False}}
SETTINGS = {"bare vLLM": {"model_runner_v2": True}, "headstart": {"model_runner_v2": False}}


def equality(*margins: float, drafted: int = 60):
    """A played part: so many answers differ."""
    differences = [
        {"clip": number, "token": 3, "num_tokens": 20, "margin": margin}
        for number, margin in enumerate(margins)
    ]
    row = {"answers": 24, "drafted_tokens": 0, "accepted_tokens": 0, "differences": []}
    return {
        "comparisons": [
            {"engine": "headstart", "way": "one by one", **row, "drafted_tokens": drafted}
            | {"differences": differences},
            {"engine": "bare vLLM", "way": "4 at once", **row},
        ],
        "settings": SETTINGS,
    }


def speed():
    return {"bench": played_result().as_json(), "settings": SETTINGS}


def parts_of(**played):
    return [
        Part(name.replace("__", ", "), "played", lambda say, found=found: found())
        for name, found in played.items()
    ]


def fails():
    print("a line of vLLM's own")
    os.write(2, b"\x1b[31mCUDA error\x1b[0m of a worker\n")
    raise RuntimeError("the engine died")


def test_a_part_that_fails_is_kept_with_its_reason_and_the_others_go_on(tmp_path):
    report, said = GpuReport.begun(tmp_path, ABOUT, {}), []
    report.play(parts_of(equality__eager=fails, speed__files=speed), said.append)
    kept = read(tmp_path / FILE)["parts"]
    assert kept["equality, eager"]["state"] == "failed"
    assert kept["equality, eager"]["why"] == "RuntimeError: the engine died"
    assert "CUDA error of a worker" in kept["equality, eager"]["log"]
    assert kept["speed, files"]["state"] == "done"
    assert "log" not in kept["speed, files"]
    assert report.failed == ["equality, eager"]
    assert "part 1 of 2, equality, eager: failed. RuntimeError: the engine died" in said


def test_a_report_goes_on_where_it_was_and_tries_again_what_failed(tmp_path):
    GpuReport.begun(tmp_path, ABOUT, {"rounds": 2}).play(
        parts_of(equality__eager=fails, speed__files=speed), lambda _: None
    )
    again, played = GpuReport.begun(tmp_path, ABOUT, {"rounds": 2}), []

    def once_more():
        played.append("equality")
        return equality()

    again.play(parts_of(equality__eager=once_more, speed__files=fails), lambda _: None)
    assert played == ["equality"]
    assert again.failed == []
    with pytest.raises(BenchError, match="other options: choose another --out"):
        GpuReport.begun(tmp_path, ABOUT, {"rounds": 3})
    (tmp_path / FILE).write_text('{"kind": "something else", "format": 1}')
    with pytest.raises(BenchError, match="is no report"):
        GpuReport.begun(tmp_path, ABOUT, {"rounds": 2})


def test_the_name_of_the_users_directory_stays_out(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/somebody")

    def missing():
        raise OSError("/home/somebody/models/vlm is missing")

    report = GpuReport.begun(tmp_path, ABOUT, {})
    report.play(parts_of(equality__eager=missing), lambda _: None)
    assert "~/models/vlm is missing" in report.parts["equality, eager"]["why"]
    assert "somebody" not in (tmp_path / FILE).read_text()


def test_what_processes_print_goes_to_the_log_and_the_screen_is_back_after_it(tmp_path, capfd):
    log = tmp_path / LOG
    log.write_text("of an earlier run\n")
    start = log.stat().st_size
    with kept_output(log):
        subprocess.run([sys.executable, "-c", "print('from a process')"], check=True)
    print("on the screen")
    sys.stdout.flush()
    assert last_lines(log, start, 10) == ["from a process"]
    assert last_lines(log, 0, 1) == ["from a process"]
    assert capfd.readouterr().out == "on the screen\n"


def test_the_summary_says_how_many_differ_beside_bare_vllm_itself(tmp_path):
    report = GpuReport.begun(tmp_path, ABOUT, {})
    parts = {
        "equality__eager": equality,
        "equality__graphs": lambda: equality(0.001, 0.02),
        "equality__float32": lambda: equality(drafted=0),
        "speed__files": speed,
        "speed__live": fails,
    }
    report.play(parts_of(**parts), lambda _: None)
    lines = summary(report)
    assert lines[0] == "equality, eager: 0 of 24 answers are not token for token bare vLLM's"
    assert "graphs: 2 of 24" in lines[1]
    assert "bare vLLM's own, asked again, 0 of 24 are not" in lines[1]
    assert "nothing was drafted: it shows nothing" in lines[2]
    memory = played_result().summary()["fixed"]["memory"]
    assert any(
        line.startswith(f"speed, files, fixed, memory: {memory['end_to_end']:.2f} times")
        for line in lines
    )
    assert lines[-1] == "speed, live: failed. RuntimeError: the engine died"

    text = page(report)
    assert SEND.replace("'", "&#x27;") in text
    assert "no questions and no answers" in text
    assert "0.020 nats" in text
    assert "<td>model_runner_v2</td><td>True</td><td>False</td>" in text
    assert text.count("<figure>") == 14  # the bench's charts of two workloads
    assert "<script" not in text


def test_a_card_is_described_by_its_drivers_command():
    fields = ("name", "driver_version", "memory.total")
    table = "NVIDIA L4, 580.95.05, 23034 MiB\nNVIDIA L4, 580.95.05, 23034 MiB\n"
    found = cards.parse(table, fields)
    assert found == [dict(zip(fields, table.splitlines()[0].split(", "), strict=True))] * 2
    assert cards.parse("No devices were found\n", fields) == []
    assert not {"serial", "uuid", "pci.bus_id"} & {*cards.WHAT, *cards.NOW}


def test_no_card_is_no_error(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert cards.cards(cards.WHAT) == []
    broken = tmp_path / "nvidia-smi"
    broken.write_text("#!/bin/sh\nexit 9\n")
    broken.chmod(0o755)
    assert cards.cards(cards.NOW) == []


def test_a_report_is_one_line_of_json(tmp_path):
    report = GpuReport.begun(tmp_path, ABOUT, {})
    report.play(parts_of(speed__files=speed), lambda _: None)
    (line,) = (tmp_path / FILE).read_text().splitlines()
    assert json.loads(line)["about"]["machine"] == "arithmetic"
