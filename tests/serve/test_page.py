"""The page a server shows in a browser, and the examples of docs/serving.md."""

import os
from pathlib import Path

import pytest

from tests.serve.servers import (
    CHAT,
    asking,
)

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("width", [1200, 390], ids=["desktop", "phone"])
def test_the_page_asks_previews_and_confirms(server, browser, clips, tmp_path, width):
    expected = (
        server.client()
        .post(CHAT, json=asking(clips / "street.mp4", "What is happening?", max_tokens=64))
        .json()["choices"][0]["message"]["content"]
    )
    with browser.open(f"{server.url}/", width=width) as page:
        page.evaluate(
            "document.getElementById('key').value = 'key-north',"
            "document.getElementById('key').dispatchEvent(new Event('change'))"
        )
        page.wait_for("document.getElementById('clip').value === 'dusk'")
        page.evaluate(
            "document.getElementById('clip').value = 'street',"
            "document.getElementById('clip').dispatchEvent(new Event('change'))"
        )
        page.wait_for("!document.getElementById('events').hidden")
        page.wait_for("!document.getElementById('ask').disabled")
        for number in (1, 2):
            page.evaluate("document.getElementById('ask').click()")
            page.wait_for(f"document.getElementById('t-answers').textContent === '{number}'")
            assert page.evaluate("document.getElementById('certain').textContent") == expected
            assert page.evaluate("document.getElementById('unsure').textContent") == ""
        assert page.evaluate("document.querySelectorAll('#gantt rect').length") >= 5
        assert int(page.evaluate("document.getElementById('t-accepted').textContent")) > 0
        assert page.evaluate("document.getElementById('trouble').textContent") == ""
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, "it does not fit"
        page.screenshot(Path(os.environ.get("HEADSTART_SCREENSHOTS", tmp_path)) / f"{width}.png")
        # 401 until the key was typed.
        assert [said for said in page.complaints if "401" not in said] == []
        assert all(url.startswith((server.url, "data:", "blob:")) for url in page.requested)


def test_the_documents_examples_run(server, tmp_path):
    """docs/serving.md word for word, against this server."""
    from tests.serve.documented import run_examples

    run_examples(server, tmp_path)
