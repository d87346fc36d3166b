"""No field of a request is without a cell of the promise's grid or a reason why it needs none."""

from dataclasses import fields
from typing import get_args

import pytest

pytest.importorskip("vllm")
from vllm import SamplingParams
from vllm.config.model import LogprobsMode
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import StructuredOutputsParams

from headstart_server.bodies.routes import ChatBody, CompletionBody
from rig.schedule_harness import scheduler
from tests.engine.promise_cells import SETUPS
from tests.engine.promise_fields import (
    ANOTHER_RUNNER,
    BODY_BECOMES,
    BODY_NOT_WORDS,
    NOT_WORDS,
    REFUSED,
    STRUCTURED_NOT_READ,
    fields_with_cells,
    settings_made,
)

pytestmark = pytest.mark.engine

SAMPLING = {name for name in SamplingParams.__struct_fields__ if not name.startswith("_")}


def test_every_sampling_parameter_has_a_cell_or_a_reason_why_not():
    without = {*NOT_WORDS, *REFUSED, *ANOTHER_RUNNER}
    assert fields_with_cells() | without == SAMPLING
    assert not fields_with_cells() & without


def test_every_kind_of_structured_output_has_a_cell():
    tried = {
        field.name
        for given in settings_made("structured_outputs")
        for field in fields(given)
        if getattr(given, field.name) != field.default
    }
    known = {
        field.name for field in fields(StructuredOutputsParams) if not field.name.startswith("_")
    }
    assert tried | set(STRUCTURED_NOT_READ) == known
    assert not tried & set(STRUCTURED_NOT_READ)


def test_every_way_to_tell_logprobs_has_an_engine():
    told = {setup.engine.get("logprobs_mode", "raw_logprobs") for setup in SETUPS}
    assert told == set(get_args(LogprobsMode))


@pytest.mark.parametrize("body", [ChatBody, CompletionBody])
def test_every_field_of_a_body_is_a_sampling_parameter_or_has_a_reason(body):
    assert body.names <= SAMPLING | set(BODY_BECOMES) | set(BODY_NOT_WORDS)


def test_no_reason_is_about_a_field_that_bodies_do_not_have():
    known = ChatBody.names | CompletionBody.names
    assert {*BODY_BECOMES, *BODY_NOT_WORDS} <= known - SAMPLING
    assert not set(BODY_BECOMES) & set(BODY_NOT_WORDS)
    assert set(BODY_BECOMES.values()) <= fields_with_cells()
    dropped = {name for name, reason in BODY_NOT_WORDS.items() if reason.endswith("not used")}
    excluded = {
        name
        for body in (ChatBody, CompletionBody)
        for name, field in body.model_fields.items()
        if field.exclude
    }
    assert dropped == excluded


@pytest.fixture(scope="module")
def config():
    return scheduler(4).vllm_config


@pytest.mark.parametrize("settings", REFUSED.values(), ids=REFUSED)
def test_what_the_grid_leaves_out_as_refused_is_refused_beside_drafts_alone(config, settings):
    params = SamplingParams(**{"temperature": 0.0, **settings})
    params.verify(config.model_config, None, None, None)
    with pytest.raises((ValueError, VLLMValidationError), match="speculative decoding"):
        params.verify(config.model_config, config.speculative_config, None, None)


def test_what_the_grid_leaves_out_as_another_runners_is_no_matter_here(config):
    """Should our flags come to go with that runner, these fields need cells."""
    assert not config.use_v2_model_runner
    for settings in ANOTHER_RUNNER.values():
        SamplingParams(**settings).verify(config.model_config, None, None, None)
