"""Which models can be shown a clip in part, before any engine starts."""

from pathlib import Path

import pytest

from headstart.engine.model import Model, approximate_model
from headstart.engine.options import Sources
from headstart.errors import ApproximateError
from headstart.models.view import ApproximateView

pytest.importorskip("transformers")


def test_a_video_llava_can_and_its_engine_is_told_to_ask_for_positions(tiny_target):
    model = Model.checked(tiny_target)
    assert model.view.engine_arguments == {}
    shown_in_part = approximate_model(model, Sources())
    assert isinstance(shown_in_part.view, ApproximateView)
    assert shown_in_part.view.is_approximate
    overrides = shown_in_part.view.engine_arguments["hf_overrides"]
    assert "mrope_section" in overrides["rope_parameters"]


def test_an_eventgpt_cannot(tiny_drafter):
    with pytest.raises(ApproximateError, match="take a Video-LLaVA"):
        approximate_model(Model.checked(tiny_drafter), Sources())


def test_a_bridge_beside_it_is_refused(tiny_target):
    with pytest.raises(ApproximateError, match="leave out the bridge"):
        approximate_model(Model.checked(tiny_target), Sources(bridge=Path("bridge")))
