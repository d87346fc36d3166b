"""What `headstart doctor` can find, and how it says to mend it: every fault in its source."""

import ast
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headstart.doctor import findings
from reference.markdown import block, document, prose

_OPENING = """# What doctor finds

`headstart doctor` checks the installation without starting an engine. It ends with 1 if
headstart cannot answer here. These are the faults it knows, each with the command that it
prints. Words in capitals stand for what it found on the machine."""
_IS_BROKEN = {"_broken": True, "_optional": False}
"""Who makes a fault, of its part, its detail and what mends it."""


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
    for function in ast.parse(inspect.getsource(findings)).body:
        yield from _faults_of(function, vars(findings))


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
        if (name := ast.unparse(node.func)) in _IS_BROKEN:
            part, detail, mend = (*(_words(given, known) for given in node.args), "")[:3]
            yield Fault(part, _IS_BROKEN[name], detail, mend)


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
