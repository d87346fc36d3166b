"""The seams: every part of vLLM that headstart touches, with a digest of its source.

A digest of a function covers all of it but docstrings and comments; that of a class its
interface: bases, fields, and the signatures of its methods. Methods that headstart overrides or
calls are seams of their own.
"""

import ast
import hashlib
import importlib.util
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from headstart.errors import CompatibilityError
from tools.vllm_seams.source_tree import Function, SourceTree

_FOLDER = Path(__file__).parent
_SILENT = {"ctx", "kind", "type_comment"}
"""Fields of syntax trees that say nothing about what a program does."""


@dataclass(frozen=True)
class Seam:
    """A part of vLLM, as one version has it."""

    digest: str
    users: tuple[str, ...]
    """Files of headstart that touch it."""


@dataclass(frozen=True)
class Difference:
    """A seam that another vLLM has not, or not in the same way."""

    name: str
    is_gone: bool
    users: tuple[str, ...]


@dataclass(frozen=True)
class Seams:
    """All seams of one version of vLLM, by name."""

    version: str
    by_name: Mapping[str, Seam]

    @classmethod
    def of(cls, version: str) -> Self:
        """Those kept for a version, or raise with the versions there are."""
        path = file_of(version)
        if not path.is_file():
            kept = ", ".join(sorted(file.stem.removeprefix("vllm-") for file in known_files()))
            raise CompatibilityError(
                f"headstart keeps no seams of vLLM {version}, only of {kept}: see"
                " docs/gpus-and-versions.md for how to add a version"
            )
        stated = json.loads(path.read_text(encoding="utf-8"))
        seams = {
            name: Seam(digest, tuple(users)) for name, (digest, *users) in stated["seams"].items()
        }
        return cls(stated["vllm"], seams)

    def text(self) -> str:
        """As the file has it: a line for each seam, so that a change shows what has changed."""
        rows = (
            f"  {json.dumps(name)}: {json.dumps([seam.digest, *seam.users])}"
            for name, seam in sorted(self.by_name.items())
        )
        head = f'{{\n "vllm": {json.dumps(self.version)},\n "seams": {{\n'
        return head + ",\n".join(rows) + "\n }\n}\n"

    def differences(self, tree: SourceTree) -> tuple[Difference, ...]:
        """The seams that this source has not, or has in another form."""
        return tuple(
            Difference(name, found is None, seam.users)
            for name, seam in sorted(self.by_name.items())
            if (found := digest(tree, name)) != seam.digest
        )


def known_files() -> Iterator[Path]:
    """Of every version that headstart knows."""
    return _FOLDER.glob("vllm-*.json")


def file_of(version: str) -> Path:
    """Where the seams of a version are kept."""
    return _FOLDER / f"vllm-{version}.json"


def installed_vllm() -> Path:
    """The folder of the vLLM that is installed, which is not imported."""
    spec = importlib.util.find_spec("vllm")
    if spec is None or not spec.submodule_search_locations:
        raise CompatibilityError("vLLM is not installed: install it, or name a folder with --vllm")
    return Path(spec.submodule_search_locations[0])


def digest(tree: SourceTree, name: str) -> str | None:
    """Of what a dotted name stands for; none if it stands for nothing."""
    found = tree.find(name)
    if found is None:
        return None
    if isinstance(found.node, ast.Module):
        return "module"  # what is touched in it has names of its own
    parts = _interface(found.node) if isinstance(found.node, ast.ClassDef) else [found.node]
    text = "\n".join("".join(_dumped(part)) for part in parts)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _interface(node: ast.ClassDef) -> list[ast.AST]:
    parts: list[ast.AST] = [*node.decorator_list, *node.bases, *node.keywords]
    for inner in node.body:
        if isinstance(inner, Function):
            parts += [ast.Name(inner.name), inner.args, *inner.decorator_list]
        elif not _is_docstring(inner):
            parts.append(inner)
    return parts


def _dumped(node: object) -> Iterator[str]:
    """A syntax tree as text that is the same in every version of Python."""
    if isinstance(node, list):
        for item in node:
            if not _is_docstring(item):
                yield from _dumped(item)
    elif isinstance(node, ast.AST):
        yield f"({type(node).__name__}"
        for name, value in ast.iter_fields(node):
            if name not in _SILENT and value not in (None, []):
                yield f" {name}="
                yield from _dumped(value)
        yield ")"
    else:
        yield repr(node)


def _is_docstring(node: object) -> bool:
    """Any string that stands by itself, as fields have them too."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
