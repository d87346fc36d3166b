"""The documents as a site: it builds, its links lead somewhere, and it loads nothing else."""

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytest.importorskip("material", reason="no mkdocs-material: pip install 'headstart[docs]'")

ROOT = Path(__file__).parents[1]
LOADED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}


class Parsed(HTMLParser):
    """The anchors of a page, where it links to, and what it loads."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in LOADED and LOADED[tag] in given:
            self.loaded.append(given[LOADED[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Built as `make site` does; strict, so that a warning is an error."""
    directory = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(directory)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return directory


@pytest.fixture(scope="module")
def pages(site) -> dict[Path, Parsed]:
    found = sorted(set(site.rglob("*.html")) - {site / "404.html"})  # a server's, from its root
    return {page: Parsed(page) for page in found}


@pytest.fixture(scope="module")
def address(site) -> Iterator[str]:
    """The site on a server of this machine."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.slow
def test_every_link_inside_leads_somewhere(pages):
    assert len(pages) > 40
    for page, parsed in pages.items():
        for link in [*parsed.links, *parsed.loaded]:
            address = urlsplit(link)
            if address.scheme in ("http", "https", "mailto", "data"):
                continue
            target = page
            if address.path:
                target = (page.parent / unquote(address.path)).resolve()
                target = target / "index.html" if target.is_dir() else target
            assert target.exists(), f"{page.name} links to {link}"
            if address.fragment and target in pages and not address.fragment.startswith("__"):
                assert unquote(address.fragment) in pages[target].anchors, f"{page.name}: {link}"


@pytest.mark.slow
def test_nothing_is_loaded_from_elsewhere(site, pages):
    for page, parsed in pages.items():
        assert not [one for one in parsed.loaded if urlsplit(one).netloc], page.name
    for sheet in site.rglob("*.css"):
        outside = re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^\"')]+", sheet.read_text())
        assert not outside, f"{sheet.name} loads {outside}"


@pytest.mark.slow
def test_the_front_page_is_readme_and_code_is_shown_as_pages(site):
    front = (site / "index.html").read_text()
    assert "Who it is for" in front
    assert 'href="architecture.html"' in front
    assert "def propose" in re.sub(
        "<[^>]+>", "", (site / "repository/examples/own_drafter.py.html").read_text()
    )


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize(
    "name", ["index", "guides/server", "figures", "reference/commands", "reference/python"]
)
def test_a_page_fits_a_phone_and_a_desk(browser, address, name, width):
    with browser.open(f"{address}/{name}.html", width=width) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.complaints == []
        assert all(url.startswith((address, "data:", "blob:")) for url in page.requested)


@pytest.mark.slow
def test_the_search_finds_an_option(browser, address):
    with browser.open(f"{address}/index.html", width=1280) as page:
        page.wait_for("document.querySelector('[data-md-component=search-query]') !== null")
        page.evaluate(
            "(q => { q.focus(); q.value = 'mqtt-discovery';"
            " q.dispatchEvent(new Event('input', {bubbles: true}));"
            " q.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true})); })"
            "(document.querySelector('[data-md-component=search-query]'))"
        )
        page.wait_for("document.querySelectorAll('.md-search-result__item').length > 0")
        found = page.evaluate("document.querySelector('.md-search-result__list').textContent")
        assert "MQTT" in found
