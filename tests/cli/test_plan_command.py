"""`headstart plan`: forecasts on a terminal, and a picture."""

import json
import re
from pathlib import Path

from typer.testing import CliRunner

from headstart.cli import app
from tests.bench.played import played_open_result, played_result

FENCED = re.MULTILINE | re.DOTALL
RECORDED = ["plan", "--prefill-ms", "326", "--step-ms", "13.8", "--tokens", "50"]


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "120"})
    assert result.exit_code == 0, result.output
    return result.output


def test_a_forecast_by_hand_ends_with_its_figures():
    output = run(*RECORDED)
    figures = json.loads(output.splitlines()[-1])
    assert figures["end_to_end_ms"] == 1002.2
    assert figures["first_token_ms"] == 326
    # A drafted token costs two hundredths of a step here: 32 of them, 0.64 of a pass.
    assert figures["break_even"]["1"][-1] == 0.64
    assert figures["speedup"]["0.0"][-1] < 1 < figures["speedup"]["0.9"][-1]
    assert "break-even" in output
    assert re.search(r"^90% .*x$", output, flags=re.MULTILINE)


def test_free_verification_breaks_even_at_once_and_dear_one_never():
    free = json.loads(run(*RECORDED, "--set=verify_token_ms=0").splitlines()[-1])
    assert set(free["break_even"]["16"]) == {0.0}
    assert "never" in run(*RECORDED, "--set=verify_token_ms=20")


def test_figures_or_a_result_are_needed():
    result = CliRunner().invoke(app, ["plan"])
    assert result.exit_code != 0
    assert "--prefill-ms" in result.output


def test_figures_that_cannot_be_are_an_error_a_person_understands():
    result = CliRunner().invoke(app, ["plan", "--prefill-ms", "0", "--step-ms", "10"])
    assert result.exit_code == 1
    assert "take time" in result.output


def test_the_picture_is_drawn(tmp_path):
    run(*RECORDED, f"--set=picture={tmp_path / 'plan.svg'}")
    drawn = (tmp_path / "plan.svg").read_text()
    assert drawn.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert drawn.count("<polyline") == 5
    assert "draft of 32" in drawn


def test_a_result_is_forecast_method_by_method(tmp_path):
    played_result().write(tmp_path / "bench.json")
    output = run("plan", "--from", str(tmp_path / "bench.json"))
    checks = json.loads(output.splitlines()[-1])["forecast"]
    assert len(checks) == 2 * 4
    assert all(abs(check["error"]) < 0.1 for check in checks)
    assert "draft pays from" in output


def test_open_loads_alone_are_nothing_to_forecast_from(tmp_path):
    played_open_result().write(tmp_path / "bench.json")
    result = CliRunner().invoke(app, ["plan", "--from", str(tmp_path / "bench.json")])
    assert result.exit_code == 1
    assert "give a bench of closed loops" in " ".join(result.output.split())


LIVE = ["plan", "--prefill-ms", "400", "--step-ms", "18", "--tokens", "75"]
FED = [*LIVE, "--feed-ms", "80", "--set=acceptance=0.94", "--set=frames=8", "--set=window=2"]


def test_live_says_how_long_a_camera_waits_and_how_many_are_held():
    output = run(*FED, "--set=step=2")
    figures = json.loads(output.splitlines()[-1])
    methods = figures["methods"]
    assert methods["bare"]["last_word_ms"] > 5 * methods["both"]["last_word_ms"]
    assert methods["both"]["cameras_held"] >= 2 * methods["bare"]["cameras_held"] > 0
    assert methods["both"]["engine_ms"] > methods["drafts"]["engine_ms"]
    held = [load["cameras"] for load in figures["cameras"] if load["is_held"]]
    assert held[-1] == methods["both"]["cameras_held"]
    assert not figures["cameras"][-1]["is_held"]
    assert "(not held)" in output


def test_live_cameras_need_figures_of_their_own(tmp_path):
    played_result().write(tmp_path / "bench.json")
    both = CliRunner().invoke(app, ["plan", "--feed-ms=80", "--from", str(tmp_path / "bench.json")])
    assert both.exit_code == 2
    assert "--feed-ms" in both.output


def test_the_documented_plan_is_what_the_command_prints():
    document = (Path(__file__).parents[2] / "docs" / "costs.md").read_text()
    (block,) = re.findall(
        r"^```text\n\$ headstart (plan .*?--feed-ms .*?)\n(.*?)^```", document, FENCED
    )
    result = CliRunner().invoke(app, block[0].split(), env={"COLUMNS": "80"})
    printed = [line.rstrip() for line in result.output.splitlines()]
    assert printed[:-1] == block[1].splitlines()
