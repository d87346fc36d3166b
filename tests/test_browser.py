"""The tests' own browser sees what a person's would, and says what a page did wrong."""

import pytest

PAGE = """<!doctype html><title>one</title><meta name=viewport content="width=device-width">
<body style="margin:0"><p id=text></p><script>
document.getElementById("text").textContent = innerWidth + " wide";
</script>"""


@pytest.mark.slow
def test_a_page_is_run_measured_and_pictured(browser, tmp_path):
    (tmp_path / "page.html").write_text(PAGE)
    with browser.open((tmp_path / "page.html").as_uri(), width=390, height=800) as page:
        page.wait_for("document.title === 'one'")
        assert page.evaluate("document.getElementById('text').textContent") == "390 wide"
        picture = page.screenshot(tmp_path / "page.png").read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert page.complaints == []
        assert page.requested == [(tmp_path / "page.html").as_uri()]


@pytest.mark.slow
def test_what_a_page_does_wrong_is_noted(browser, tmp_path):
    broken = PAGE + "<img src='missing.png'><script>nobody.knows()</script>"
    (tmp_path / "page.html").write_text(broken)
    with browser.open((tmp_path / "page.html").as_uri()) as page:
        missing = (tmp_path / "missing.png").as_uri()
        while missing not in page.requested or "nobody is not defined" not in str(page.complaints):
            page.evaluate("0")  # events are read with the next reply; the test's timeout ends it
