"""The benchmarks run, and on a small scale already keep what they are there to measure."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def last_line_of(script, *arguments):
    search = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    result = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / script), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": search},
    )
    return json.loads(result.stdout.splitlines()[-1])


def test_a_window_out_of_a_long_recording_takes_little_time_and_memory(tmp_path):
    pytest.importorskip("hdf5plugin")
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("peak memory is read from Linux's /proc")
    figures = last_line_of(
        "window_read.py", "--file", tmp_path / "long.h5", "--num-events", 5_000_000
    )
    assert figures["num_events"] == 5_000_000
    assert figures["median_window_ms"] < 100
    assert figures["peak_mib"] + figures["peak_helper_mib"] < 300


def test_rendering_prints_its_figures():
    figures = last_line_of("rendering.py", "--num-events", 500_000, "--repeats", 1)
    assert figures["render_events_per_s"] > 5e6


def test_a_proposal_takes_little_beside_a_pass_of_the_target():
    figures = last_line_of("drafting.py", "--num-answers", 1000, "--repeats", 300)
    # Four to ten times what an idle core needs: other work shares it.
    assert figures["board_us_p50"] < 100
    assert figures["memory_us_p50"] < 400
    assert figures["memory_worst_us_p50"] < 2000
