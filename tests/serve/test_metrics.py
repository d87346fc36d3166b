"""What the server counts, and the dashboard that shows it."""

import json
import re
from pathlib import Path

import pytest

from rig.live_camera import NUM_SLOTS, LiveCamera, jpegs
from rig.servers import MAX_TENANT_REQUESTS, ask, ask_at_once, asking, metric

pytestmark = pytest.mark.engine
ROOT = Path(__file__).parents[2]
DASHBOARDS = (
    ROOT / "docs" / "headstart-dashboard.json",
    ROOT / "deploy" / "monitoring" / "fleet-dashboard.json",
)
MANY_TOKENS = 300
"""Of an answer that takes long enough to be seen on its way."""


@pytest.fixture(scope="module")
def counted(server, north, operator, clips) -> dict[str, float]:
    """By how much each figure grew while a stream was asked twice and too many came at once."""
    names = (
        'headstart_accepted_tokens_total{source="memory"}',
        'headstart_drafted_tokens_total{source="memory"}',
        "headstart_saved_passes_total",
        "headstart_fused_answers_total",
        "headstart_answers_total",
        "headstart_cached_tokens_total",
        'headstart_turned_away_total{reason="tenant"}',
        'headstart_stage_seconds_count{stage="prefill"}',
        "vllm:generation_tokens_total",
    )
    before = {name: metric(operator, name) for name in names}
    body = asking(clips / "street.mp4", "What is counted?", max_tokens=40, ignore_eos=True)
    for _ in range(2):
        ask(north, body, stream="counted")
    ask_at_once(server, {**body, "max_tokens": 340}, 5 * MAX_TENANT_REQUESTS)
    return {name: metric(operator, name) - before[name] for name in names}


def test_a_full_disk_costs_log_lines_and_no_request(server, north, operator):
    assert north.get("/v1/models").status_code == 200
    server.wait_until(lambda: metric(operator, "headstart_log_lines_dropped ") > 0, "lines dropped")


def test_what_happens_is_counted_on_vllms_own_page(operator, counted):
    assert [name for name, grown in counted.items() if grown <= 0] == []
    assert counted["headstart_answers_total"] == 2  # those that belong to a stream
    assert metric(operator, "headstart_memory_answers ") > 0
    assert metric(operator, "headstart_free_bytes ") > 0
    text = operator.get("/metrics").text
    assert "headstart_drafter_up " in text
    assert "vllm:num_requests_running" in text


def test_a_tenant_sees_its_own_figures_and_nobody_elses(north, south, operator, counted):
    assert south.get("/v1/models").status_code == 200
    for client, own, other in ((north, "north", "south"), (south, "south", "north")):
        text = client.get("/metrics").text
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        assert f'headstart_tenant_requests_total{{status="200",tenant="{own}"}}' in text
        assert [line for line in lines if not line.startswith("headstart_tenant_")] == []
        assert other not in text
        assert metric(client, 'headstart_tenant_limit{limit="max_tenant_requests"}') == (
            MAX_TENANT_REQUESTS
        )
    mine = 'headstart_tenant_requests_total{status="429",tenant="north"}'
    assert metric(north, mine) == metric(operator, mine) > 0
    assert metric(north, "headstart_tenant_requests_in_flight") == 0


def test_a_tenant_sees_its_own_tokens_and_drafts(north, counted):
    assert metric(north, "headstart_tenant_tokens_total") > 0
    drafted = metric(north, 'headstart_tenant_drafted_tokens_total{source="memory"')
    assert 0 < metric(north, 'headstart_tenant_accepted_tokens_total{source="memory"') <= drafted


def test_the_dashboard_asks_for_figures_that_exist(operator, counted):
    text = operator.get("/metrics").text
    asked = {
        name
        for dashboard in DASHBOARDS
        for panel in json.loads(dashboard.read_text())["panels"]
        for target in panel["targets"]
        for name in re.findall(r"(?:headstart_|vllm:)\w+", target["expr"])
    }
    assert len(asked) > 20
    assert not [name for name in asked if name not in text]


def test_windows_that_wait_and_their_waits_are_counted(server, operator):
    names = ("headstart_live_wait_seconds_count", "headstart_live_wait_seconds_sum")
    before = [metric(operator, name) for name in names]
    with LiveCamera(server) as camera:
        camera.start(stream="counted waits", max_tokens=MANY_TOKENS)
        camera.show_window(jpegs(NUM_SLOTS), 0)
        server.wait_until(
            lambda: metric(operator, "headstart_live_windows_waiting ") == 1, "a window waits"
        )
        answer = camera.wait_for("answer")
        server.wait_until(
            lambda: metric(operator, "headstart_live_windows_waiting ") == 0, "none waits"
        )
        camera.ack(answer)
    count, seconds = (metric(operator, name) - was for name, was in zip(names, before, strict=True))
    assert count == 1
    assert seconds == pytest.approx(answer["wait_s"], abs=0.01)
