"""What `headstart doctor` can find, and how it says to mend it: every `Finding` in the source."""

import ast
import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reference.markdown import block, document, prose
from reference.source import SOURCES

_OPENING = """# What doctor finds

`headstart doctor` checks the installation without starting an engine. It ends with 1 if
headstart cannot answer here. These are the faults it knows, each with the command that it
prints. Words in capitals stand for what it found on the machine."""
_FIELDS = ("part", "health", "detail", "mend")


@dataclass(frozen=True)
class Fault:
    """A finding that is not ok."""

    part: str
    is_broken: bool
    detail: str
    mend: str


def page() -> str:
    """The page of all faults."""
    found = list(faults())
    broken = [_section(each) for each in found if each.is_broken]
    other = [_section(each) for each in found if not each.is_broken]
    return document(
        _OPENING,
        "## What keeps headstart from answering",
        *broken,
        "## What only some work needs",
        *other,
    )


def faults() -> Iterator[Fault]:
    """Every fault, in the order of the source."""
    source = SOURCES["headstart"]
    for path in sorted((source / "headstart").rglob("*.py")):
        text = path.read_text()
        if " Finding(" not in text:
            continue
        dotted = ".".join(path.relative_to(source).with_suffix("").parts)
        constants = vars(importlib.import_module(dotted))
        for function in ast.parse(text).body:
            yield from _faults_of(function, constants)


def _faults_of(function: ast.stmt, constants: Mapping[str, Any]) -> Iterator[Fault]:
    nodes = sorted(
        (node for node in ast.walk(function) if isinstance(node, ast.Assign | ast.Call)),
        key=lambda node: node.lineno,
    )
    known = dict(constants)
    for node in nodes:
        if isinstance(node, ast.Assign):
            # A text that is put together first, and then told.
            is_text = isinstance(node.value, ast.JoinedStr | ast.IfExp)
            if is_text and isinstance(node.targets[0], ast.Name):
                known[node.targets[0].id] = _words(node.value, known)
            continue
        if ast.unparse(node.func) != "Finding":
            continue
        given = dict(zip(_FIELDS, node.args, strict=False))
        given |= {each.arg: each.value for each in node.keywords if each.arg}
        health = ast.unparse(given.pop("health"))
        if not health.endswith("OK"):
            said = {name: _words(value, known) for name, value in given.items()}
            broken = health.endswith("BROKEN")
            yield Fault(said["part"], broken, said["detail"], said.get("mend", ""))


def _words(node: ast.expr, known: Mapping[str, Any]) -> str:
    """The text of an expression. What is known only on a machine stands there in capitals."""
    match node:
        case ast.JoinedStr(values=parts):
            return "".join(_words(part, known) for part in parts)
        case ast.FormattedValue(value=inner):
            return _words(inner, known)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _words(left, known) + _words(right, known)
        case ast.IfExp(body=body, orelse=otherwise):
            return f"{_words(body, known)}, or {_words(otherwise, known)}"
    try:
        return str(eval(ast.unparse(node), {}, dict(known)))  # the package's own constants
    except (NameError, AttributeError, TypeError):
        is_call = isinstance(node, ast.Call)  # of which the argument says more than the method
        attributes = [each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)]
        names = [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]
        told = [*names[-1:], "..."] if is_call else [*attributes[:1], *names[-1:], "..."]
        return told[0].replace("_", " ").upper()


def _section(fault: Fault) -> str:
    return document(
        f"**{fault.part}**: {prose(fault.detail)}", block(fault.mend) if fault.mend else ""
    )
