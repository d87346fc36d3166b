"""`headstart lab demo` on two real engines, and its page in a browser."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from headstart.cli import app
from headstart_lab import pair as pairs


def test_without_a_pair_it_says_what_to_run(monkeypatch, tmp_path):
    monkeypatch.setattr(pairs, "INSTALLED", tmp_path / "pair")
    done = CliRunner().invoke(app, ["lab", "demo"])
    assert done.exit_code == 1
    assert "pip install ./lab" in done.output


def test_a_directory_without_models_is_no_pair(tmp_path):
    done = CliRunner().invoke(app, ["lab", "demo", "--pair", str(tmp_path)])
    assert done.exit_code == 1
    assert "not a trained model" in done.output


@pytest.mark.engine
@pytest.mark.timeout(1200)  # two engines, one after the other
def test_the_page_is_written_and_opens(browser, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments in (["tiny", "pair"], ["demo", "page.html", "--pair", "pair", "--clips", "2"]):
        # In this process, which has imported vLLM.
        done = CliRunner().invoke(app, ["lab", *arguments])
        assert done.exit_code == 0, done.output
    assert "wrote page.html" in done.stdout
    with browser.open(Path(tmp_path / "page.html").as_uri(), width=390) as page:
        page.wait_for("Array.from(document.images).every(image => image.naturalWidth > 0)")
        assert page.evaluate("document.querySelectorAll('article').length") == 2
        assert "--clips 2" in page.evaluate("document.querySelector('footer').textContent")
        assert page.complaints == []
