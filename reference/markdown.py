"""The Markdown that the pages consist of."""

from collections.abc import Iterable, Sequence


def document(*blocks: str) -> str:
    """Blocks with an empty line between them; empty blocks are left out."""
    return "\n\n".join(block.strip("\n") for block in blocks if block.strip()) + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; empty if it has no rows."""
    body = [_row(row) for row in rows]
    return "\n".join([_row(header), "|---" * len(header) + "|", *body]) if body else ""


def code(text: str) -> str:
    """Words of the code. A bar would end a table's cell, so a union is written with "or"."""
    return f"`{text.replace(' | ', ' or ').replace('|', ' or ')}`" if text else ""


def prose(text: str) -> str:
    """Words of a docstring or a help text, on one line."""
    return " ".join(text.split()).replace("<", "&lt;").replace("|", "\\|").replace("``", "`")


def block(text: str, language: str = "text") -> str:
    """A block of code."""
    return f"```{language}\n{text}\n```"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()) for cell in cells) + " |"
