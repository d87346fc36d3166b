"""What the site has beyond docs/: the repository's own pages, and the files that pages link to.

mkdocs calls `on_files` once and `on_page_markdown` for each page; mkdocs.yml names this file.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent
DOCS = ROOT / "docs"
PAGES = {
    "index.md": ROOT / "README.md",
    "changelog.md": ROOT / "CHANGELOG.md",
    "contributing.md": ROOT / "CONTRIBUTING.md",
    "security.md": ROOT / "SECURITY.md",
    "code-of-conduct.md": ROOT / "CODE_OF_CONDUCT.md",
}
"""Pages that stand at the root of the repository, where people look for them."""
LANGUAGES = {".py": "python", ".js": "javascript", ".html": "html", ".toml": "toml"}
"""Files that are shown as pages of code."""
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and files outside of docs/."""
    for name, path in PAGES.items():
        files.append(File.generated(config, name, abs_src_path=str(path)))
    sources = [*PAGES.values(), *DOCS.rglob("*.md")]
    linked = {path for source in sources for path in _linked(source)}
    for path in sorted(linked):
        shown_as, language = site_name(path), LANGUAGES.get(path.suffix)
        if shown_as is None or not shown_as.startswith("repository/") or not path.is_file():
            continue
        if language is None:
            files.append(File.generated(config, shown_as, abs_src_path=str(path)))
            continue
        shown = f"# {path.relative_to(ROOT)}\n\n````{language}\n{path.read_text()}\n````\n"
        hidden = InclusionLevel.NOT_IN_NAV
        files.append(File.generated(config, shown_as, content=shown, inclusion=hidden))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links lead to where files are in the site; a link to a directory becomes its words."""
    if page.file.abs_src_path is None:
        return markdown
    source = Path(page.file.abs_src_path)

    def moved(link: re.Match[str]) -> str:
        mark, words, target, place = link[1], link[2], link[3], link[4] or ""
        name = site_name((source.parent / target).resolve())
        if name is None:
            return words
        relative = posixpath.relpath(name, posixpath.dirname(page.file.src_uri) or ".")
        return f"{mark}[{words}]({relative}{place})"

    return _LINK.sub(moved, markdown)


def site_name(path: Path) -> str | None:
    """The name of a repository's file in the site; none for a directory."""
    for name, source in PAGES.items():
        if path == source:
            return name
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    if path.is_dir():
        return None
    ending = ".md" if path.suffix in LANGUAGES else ""
    return f"repository/{path.relative_to(ROOT).as_posix()}{ending}"


def _linked(source: Path) -> Iterator[Path]:
    for link in _LINK.finditer(source.read_text()):
        yield (source.parent / link[3]).resolve()
