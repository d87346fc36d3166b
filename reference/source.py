"""Classes and functions as their source states them, with the docstrings of their fields.

Read without importing: Python keeps no docstring of a field, and half of the package needs vLLM.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCES = {
    package.parent.name: package.parents[1]
    for package in Path(__file__).parents[1].glob("*/headstart*/__init__.py")
}
"""Where each of headstart's packages lies."""
MAX_WIDTH = 88


@dataclass(frozen=True)
class Field:
    """One field of a class."""

    name: str
    annotation: str
    default: str | None
    doc: str


@dataclass(frozen=True)
class Function:
    """A function or a method."""

    name: str
    parameters: tuple[str, ...]
    returns: str
    doc: str
    prefix: str = ""
    """``async`` for a coroutine."""
    is_property: bool = False

    @property
    def signature(self) -> str:
        """On one line, or with a line for each parameter where that is too long."""
        ending = f" -> {self.returns}" if self.returns else ""
        line = f"{self.prefix}{self.name}({', '.join(self.parameters)}){ending}"
        if len(line) <= MAX_WIDTH:
            return line
        inside = "".join(f"    {parameter},\n" for parameter in self.parameters)
        return f"{self.prefix}{self.name}(\n{inside}){ending}"


@dataclass(frozen=True)
class Class:
    """A class: what is public of it."""

    name: str
    bases: tuple[str, ...]
    doc: str
    fields: tuple[Field, ...]
    initialiser: Function | None
    methods: tuple[Function, ...]


@cache
def module(dotted: str) -> ast.Module:
    """The syntax tree of a module of the package."""
    parts = dotted.split(".")
    path = SOURCES[parts[0]].joinpath(*parts).with_suffix(".py")
    return ast.parse(path.read_text())


def read_class(dotted: str, name: str) -> Class | None:
    """A class of a module; none if the module has no class of that name."""
    found = (node for node in module(dotted).body if isinstance(node, ast.ClassDef))
    return next((_class(node) for node in found if node.name == name), None)


def read_function(dotted: str, name: str) -> Function:
    """A function of a module."""
    body = module(dotted).body
    return next(_function(n) for n in body if isinstance(n, ast.FunctionDef) and n.name == name)


def class_names(dotted: str) -> Iterator[str]:
    """The classes of a module, in its order."""
    return (node.name for node in module(dotted).body if isinstance(node, ast.ClassDef))


def docs_of_fields(dotted: str) -> dict[str, dict[str, str]]:
    """What a module says of each class's fields, those of its bases in the module included."""
    found: dict[str, dict[str, str]] = {}
    for name in class_names(dotted):
        known = read_class(dotted, name)
        assert known is not None
        inherited = [docs for base in known.bases for docs in [found.get(base, {})]]
        own = {field.name: field.doc for field in known.fields if field.doc}
        found[name] = {**{k: v for docs in inherited for k, v in docs.items()}, **own}
    return found


def _class(node: ast.ClassDef) -> Class:
    functions = [
        _function(each)
        for each in node.body
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return Class(
        node.name,
        tuple(map(ast.unparse, node.bases)),
        ast.get_docstring(node) or "",
        tuple(_fields(node)),
        next((each for each in functions if each.name == "__init__"), None),
        tuple(each for each in functions if not each.name.startswith("_")),
    )


def _fields(node: ast.ClassDef) -> Iterator[Field]:
    """Annotated names, and members of an enumeration; a text right after one is its docstring."""
    following: list[ast.stmt | None] = [*node.body[1:], None]
    for statement, after in zip(node.body, following, strict=True):
        doc = _text(after)
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            annotation, value = ast.unparse(statement.annotation), statement.value
            name = statement.target.id
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            annotation, value, name = "", statement.value, statement.targets[0].id
        else:
            continue
        if not name.startswith("_") and not annotation.startswith("ClassVar"):
            yield Field(name, annotation, None if value is None else ast.unparse(value), doc)


def _text(node: ast.stmt | None) -> str:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return str(node.value.value) if is_text else ""  # type: ignore[union-attr]


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Function:
    decorators = {ast.unparse(each) for each in node.decorator_list}
    return Function(
        node.name,
        tuple(_parameters(node.args)),
        "" if node.returns is None else ast.unparse(node.returns).strip("'"),
        ast.get_docstring(node) or "",
        "async " if isinstance(node, ast.AsyncFunctionDef) else "",
        bool(decorators & {"property", "cached_property"}),
    )


def _parameters(given: ast.arguments) -> Iterator[str]:
    positional = [*given.posonlyargs, *given.args]
    without_default = len(positional) - len(given.defaults)
    defaults: list[ast.expr | None] = [*[None] * without_default, *given.defaults]
    for argument, default in zip(positional, defaults, strict=True):
        if argument.arg not in ("self", "cls"):
            yield _parameter(argument, default)
    if given.vararg:
        yield f"*{_parameter(given.vararg, None)}"
    elif given.kwonlyargs:
        yield "*"
    for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        yield _parameter(argument, default)
    if given.kwarg:
        yield f"**{_parameter(given.kwarg, None)}"


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    if argument.annotation is None:
        return argument.arg if default is None else f"{argument.arg}={ast.unparse(default)}"
    told = f"{argument.arg}: {ast.unparse(argument.annotation).strip(chr(39))}"
    return told if default is None else f"{told} = {ast.unparse(default)}"
