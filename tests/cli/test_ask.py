"""The parts of `headstart ask` that need no engine."""

import pytest
import typer
from rich.console import Console

from headstart.cli.ask import engine_arguments
from headstart.cli.timeline import stage_table
from headstart.drafting.timeline import Span, Stage, Timeline


def test_engine_arguments_are_json_where_they_parse():
    pairs = ["dtype=float32", "enforce-eager=true", "max_model_len=512", 'limit={"video": 2}']
    assert engine_arguments(pairs) == {
        "dtype": "float32",
        "enforce_eager": True,
        "max_model_len": 512,
        "limit": {"video": 2},
    }


def test_a_pair_without_a_value_is_refused():
    with pytest.raises(typer.BadParameter, match="name=value"):
        engine_arguments(["dtype"])


def test_the_table_draws_each_stage_where_it_happened():
    timeline = Timeline.of(0.0, 4.0, [Span(Stage.LOAD, 0, 1), Span(Stage.DECODE, 2, 4)])
    console = Console(width=100)
    with console.capture() as capture:
        console.print(stage_table(timeline))
    rows = {line.split()[0]: line for line in capture.get().splitlines() if line.split()}
    assert "1000.0" in rows["load"]
    assert rows["load"].count("█") == 10
    assert rows["decode"].count("█") == 20
    assert rows["decode"].rstrip().endswith("█")
    assert "█" not in rows["vision"]
    assert "1000.0" in rows["between"]
