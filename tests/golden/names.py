"""The names that people use of each package.

    python -m tests.golden.names

writes `kept/names.txt` anew: what each package itself gives, with members and arguments; what the
documents and examples import from further inside; what vLLM's flags and other programs find by its
place. `headstart_lab` has no front of its own, so only the latter two are there.
"""

import ast
import contextlib
import importlib
import inspect
import tomllib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from headstart.engine.options import SchedulerOptions
from headstart.engine.startup import drafting_arguments
from tests.documents import DOCUMENTS, blocks

KEPT = Path(__file__).with_name("kept") / "names.txt"
ROOT = Path(__file__).parents[2]
SOURCES = {
    init.parent.name: init.parents[1] for init in sorted(ROOT.glob("*/headstart*/__init__.py"))
}
"""Where each package lies."""
PROJECTS = {name: ROOT if name == "headstart" else place for name, place in SOURCES.items()}


def names() -> list[str]:
    """All of them, sorted."""
    return sorted({*_front(), *imported(), *_entry_points(), *_flags()})


def _front() -> Iterator[str]:
    for package in SOURCES:
        front = importlib.import_module(package)
        for name in getattr(front, "__all__", ()):
            yield from _described(f"{package}.{name}", getattr(front, name))


def _described(name: str, thing: Any) -> Iterator[str]:
    """A name with its arguments, and below a class its members."""
    if not inspect.isclass(thing):
        yield name + (_arguments(thing) if callable(thing) else "")
        return
    yield name + ("" if issubclass(thing, Exception) else _arguments(thing))
    ours = [one for one in thing.__mro__ if one.__module__.startswith("headstart")]
    members = {member: value for one in reversed(ours) for member, value in vars(one).items()}
    if is_dataclass(thing):
        members = {**{field.name: None for field in fields(thing)}, **members}
    for member, value in members.items():
        if not member.startswith("_"):
            called = getattr(value, "__func__", value)
            yield f"{name}.{member}" + (_arguments(called) if inspect.isfunction(called) else "")


def _arguments(thing: Any) -> str:
    found = inspect.signature(thing).parameters
    return f"({', '.join(name for name in found if name not in ('self', 'cls'))})"


def imported() -> Iterator[str]:
    """From further inside than the package's front, by documents and examples."""
    code = [block for document in DOCUMENTS for block in blocks(document, "python")]
    code += [path.read_text() for path in sorted((ROOT / "examples").glob("*.py"))]
    for block in code:
        with contextlib.suppress(SyntaxError):  # a part of a program
            for node in ast.walk(ast.parse(block)):
                module = (isinstance(node, ast.ImportFrom) and node.module) or ""
                package, _, further = module.partition(".")
                if package in PROJECTS and further:
                    yield from (f"{module}.{alias.name}" for alias in node.names)


def _entry_points() -> Iterator[str]:
    """What other programs find by its place."""
    for directory in PROJECTS.values():
        project = tomllib.loads((directory / "pyproject.toml").read_text())["project"]
        groups = {"scripts": project.get("scripts", {}), **project.get("entry-points", {})}
        for group, rows in groups.items():
            yield from (f"{group} {name} = {place}" for name, place in rows.items())


def _flags() -> Iterator[str]:
    """What stands in vLLM's flags, wherever somebody has written them down."""
    told = drafting_arguments(8, SchedulerOptions(), {})
    yield f"flag scheduler_cls = {told['scheduler_cls']}"
    for name in ("method", "model"):
        yield f"flag speculative_config.{name} = {told['speculative_config'][name]}"
    for table, given in told["additional_config"].items():
        yield f"flag additional_config.{table}"
        yield from (f"flag additional_config.{table}.{name}" for name in given)
        yield from (f"flag additional_config.{table}.sources.{name}" for name in given["sources"])


def is_defined(name: str) -> bool:
    """Whether a name from further inside a package is defined, or imported, where it should be."""
    module, _, member = name.rpartition(".")
    place = SOURCES[name.partition(".")[0]] / Path(*module.split("."))
    text = next(
        (
            path.read_text()
            for path in (place.with_suffix(".py"), place / "__init__.py")
            if path.is_file()
        ),
        "",
    )
    found = set[str]()
    for node in ast.parse(text).body:
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                found.add(node.name)
            case ast.Assign():
                found |= {one.id for one in node.targets if isinstance(one, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=known)):
                found.add(known)
            case ast.ImportFrom():
                found |= {alias.asname or alias.name for alias in node.names}
    return member in found


if __name__ == "__main__":
    KEPT.write_text("".join(f"{name}\n" for name in names()))
