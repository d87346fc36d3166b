"""`headstart plan --fleet`: what a fleet needs, from a file and a price that the person gives."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headstart.cli import app
from headstart.errors import PlanningError
from headstart_research.commands.fleet_file import read_fleet

EXAMPLE = Path(__file__).parents[2] / "examples" / "fleet.toml"
BY_HAND = """
[calibration]
label = "made up for a test"
prefill_ms = 400
step_ms = 15
feed_ms = 60
acceptance = 0.9

[camera]
window_s = 10
within_s = 2
prompt_tokens = 2000
answer_tokens = 50
frame_kib = 40

[engine]
kv_gib = 40
kv_kib_per_token = 512
"""


def plan(*arguments):
    return CliRunner().invoke(app, ["plan", *map(str, arguments)], env={"COLUMNS": "140"})


def figures(*arguments):
    result = plan(*arguments)
    assert result.exit_code == 0, result.output
    return result.output, json.loads(result.output.splitlines()[-1])


@pytest.fixture
def by_hand(tmp_path):
    path = tmp_path / "fleet.toml"
    path.write_text(BY_HAND)
    return path


def test_a_price_is_the_persons_and_is_shown_as_such(by_hand):
    output, told = figures("--fleet", by_hand, "--cameras", 1000, "--set", "gpu_hour=2.50 CHF")
    assert "calibrated by made up for a test" in output
    assert "2.5 CHF, is yours" in output
    assert "CHF a camera and month" in output
    for row in told["fleets"]:
        per_camera = row["gpus"] * 2.50 * 730.5 / 1000
        assert row["price_a_camera_and_month"] == pytest.approx(per_camera, abs=1e-3)


def test_without_a_price_there_is_none_and_what_the_file_leaves_out_is_said(by_hand):
    output, told = figures("--fleet", by_hand)
    assert "camera and month" not in output
    assert "price_a_camera_and_month" not in told["fleets"][0]
    assert "calibration.verify_token_ms = 0.3" in told["assumed"]
    assert "engine.max_cameras = 32" in told["assumed"]
    assert "engine.max_cameras = 32" in output
    assert not [each for each in told["assumed"] if each.startswith("camera.within_s")]


def test_the_servers_limit_is_the_engines(by_hand):
    by_hand.write_text(BY_HAND + "max_cameras = 3\n")
    output, told = figures("--fleet", by_hand, "--cameras", 300)
    assert told["cameras_held"]["headstart"] == 3
    assert "the server's limit" in output
    bounded = next(row for row in told["fleets"] if row["method"] == "headstart, bounded")
    assert bounded["engines"] == 126  # 1.25 times 100, and a spare one


def test_a_fleet_calibrated_by_a_bench_is_simulated_with_a_death():
    pytest.importorskip("simpy")
    output, told = figures("--fleet", EXAMPLE, "--cameras", 100, "--set=simulate=30")
    assert "bench_lab-pair_live" in told["measured"]
    assert told["cameras_held"]["headstart"] > told["cameras_held"]["bare vLLM"] > 0
    assert told["fleets"][0]["kv_gib"] == pytest.approx(100 * 573 * 20 / 2**20, rel=0.01)
    assert told["fleets"][0]["network_gbit_a_second"] == pytest.approx(100 * 131072e-9, rel=0.01)
    (run,) = told["simulated"]
    assert run["engines"] == told["fleets"][1]["engines"]
    assert "cameras of an engine that dies" in run["groups"]
    assert "asked again" in output


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("feed_ms = 60", ""), "needs feed_ms"),
        (("feed_ms = 60", "feed_ms = true"), "needs feed_ms"),
        (("feed_ms", "feet_ms"), "needs feed_ms"),
        (("frame_kib = 40", "frame_kib = 40\nfps = 8"), "has fps, which nothing reads"),
        (("[engine]", "[engines]"), "its tables are"),
        (("[engine]", "[engine"), "is not TOML"),
        (("prefill_ms", 'bench = "gone.json"\nprefill_ms'), "which is not there"),
        (("kv_gib = 40", "kv_gib = 0.5"), "smaller than one window"),
    ],
)
def test_a_wrong_file_is_told_apart(by_hand, change, message):
    by_hand.write_text(BY_HAND.replace(*change))
    with pytest.raises(PlanningError, match=message):
        read_fleet(by_hand)


@pytest.mark.parametrize("price", ["1.20", "cheap EUR", "-1 EUR"])
def test_a_price_has_an_amount_and_a_currency(by_hand, price):
    result = plan("--fleet", by_hand, "--set", f"gpu_hour={price}")
    assert result.exit_code == 1
    assert "such as '1.20 EUR'" in result.output
