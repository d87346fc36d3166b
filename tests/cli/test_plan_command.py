"""`headstart plan`: forecasts on a terminal, and a picture."""

import json
import re

from typer.testing import CliRunner

from headstart.cli import app
from tests.bench.played import played_result

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


def test_a_drafter_within_the_prefill_is_bounded_by_what_it_has_ready():
    output = run(*RECORDED, "--drafter-prefill-ms", "83", "--drafter-step-ms", "18")
    assert "has 14 tokens ready: all of them right is 1.24x, and no more" in output


def test_free_verification_breaks_even_at_once_and_dear_one_never():
    free = json.loads(run(*RECORDED, "--verify-token-ms", "0").splitlines()[-1])
    assert set(free["break_even"]["16"]) == {0.0}
    assert "never" in run(*RECORDED, "--verify-token-ms", "20")


def test_figures_or_a_result_are_needed():
    result = CliRunner().invoke(app, ["plan"])
    assert result.exit_code != 0
    assert "--prefill-ms" in result.output


def test_figures_that_cannot_be_are_an_error_a_person_understands():
    result = CliRunner().invoke(app, ["plan", "--prefill-ms", "0", "--step-ms", "10"])
    assert result.exit_code == 1
    assert "take time" in result.output


def test_the_picture_is_drawn(tmp_path):
    run(*RECORDED, "--picture", str(tmp_path / "plan.svg"))
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


def test_the_notes_are_a_script_now_and_the_error_names_it():
    result = CliRunner().invoke(app, ["plan", "--notes"])
    assert result.exit_code == 1
    assert "python -m benchmarks.notes_checked" in result.output
