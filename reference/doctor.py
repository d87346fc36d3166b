"""What `headstart doctor` can find, and how it says to mend it: every `Finding` in the source."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from reference.markdown import block, document, prose
from reference.source import PACKAGE

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
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        if "Finding(" not in text:
            continue
        tree = ast.parse(text)
        constants = {
            node.targets[0].id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        for call in sorted(calls, key=lambda node: node.lineno):
            if ast.unparse(call.func) == "Finding":
                given = dict(zip(_FIELDS, call.args, strict=False))
                given |= {each.arg: each.value for each in call.keywords if each.arg}
                health = ast.unparse(given["health"])
                if health.endswith("OK"):
                    continue
                said = {k: _words(v, constants) for k, v in given.items() if k != "health"}
                broken = health.endswith("BROKEN")
                yield Fault(said["part"], broken, said["detail"], said.get("mend", ""))


def _words(node: ast.expr, constants: dict[str, ast.expr]) -> str:
    """The text of an expression. What is known only on a machine stands there in capitals."""
    match node:
        case ast.Constant(value=value):
            return str(value)
        case ast.JoinedStr(values=parts):
            return "".join(_words(part, constants) for part in parts)
        case ast.FormattedValue(value=inner):
            return _words(inner, constants)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _words(left, constants) + _words(right, constants)
        case ast.Name(id=name) if name in constants:
            return _words(constants[name], constants)
        case ast.Name(id=name):
            return name.upper()
    names = [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]
    return names[-1].upper() if names else "..."


def _section(fault: Fault) -> str:
    return document(
        f"**{fault.part}**: {prose(fault.detail)}", block(fault.mend) if fault.mend else ""
    )
