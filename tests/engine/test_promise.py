"""A seeded slice of the grid that `tests/soak/promise.py` runs whole."""

import pytest

from tests.engine.promise_cells import SETUPS
from tests.engine.promise_engine import Engine
from tests.engine.promise_grid import NUM_ANSWERS_A_PROMPT, run_setup
from tests.engine.promise_model import save_adapter, save_model

pytestmark = pytest.mark.engine

NUM_PROMPTS = 4  # one of each length
SLICE = [setup for setup in SETUPS if setup.name in ("plain", "all of these")]


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    model, adapter = tmp_path_factory.mktemp("model"), tmp_path_factory.mktemp("adapter")
    save_model(model)
    save_adapter(adapter)
    return lambda arguments: Engine(model, adapter, arguments)


@pytest.mark.parametrize("setup", SLICE, ids=lambda setup: setup.name)
def test_drafts_change_no_answer_whatever_is_asked(setup, start, monkeypatch):
    monkeypatch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    results = list(run_setup(setup, start, NUM_PROMPTS))
    # Then some of all of these in one batch, and the same after what keeps drafts back.
    assert [result.cell for result in results][:-2] == [cell.name for cell in setup.cells]
    assert all(result.answers >= NUM_PROMPTS * NUM_ANSWERS_A_PROMPT for result in results)
    # Of each cell: a difference, no draft accepted, or settings without effect.
    assert {result.cell: result.problem for result in results if result.problem} == {}
