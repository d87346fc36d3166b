"""Finds what a dotted name stands for in a package's files. Nothing of the package is imported.

So a vLLM can be read that is only unpacked, or one that does not import here.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from headstart.errors import CompatibilityError

_MAX_HOPS = 20  # a name that two modules import from each other would never be found
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, eq=False)
class Definition:
    """Where a name is defined, after all re-exports."""

    module: str
    node: ast.AST


class SourceTree:
    """The modules of packages by their dotted names. Each is parsed once."""

    def __init__(self, *roots: Path) -> None:
        """``roots``: the packages' folders, which have the packages' names."""
        for root in roots:
            if not (root / "__init__.py").is_file():
                raise CompatibilityError(
                    f"{root} is no Python package: name the folder that has its __init__.py, such"
                    " as site-packages/vllm"
                )
        self.roots = {root.name: root for root in roots}
        self._modules: dict[str, ast.Module | None] = {}
        self._names: dict[str, dict[str, ast.stmt]] = {}

    def modules(self) -> Iterator[str]:
        """The dotted names of all modules."""
        for root in self.roots.values():
            for file in sorted(root.rglob("*.py")):
                parts = file.relative_to(root.parent).with_suffix("").parts
                yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def module(self, dotted: str) -> ast.Module | None:
        """A module's syntax tree; none if there is no such module."""
        if dotted not in self._modules:
            self._modules[dotted] = self._parsed(dotted)
        return self._modules[dotted]

    def find(self, dotted: str, hops: int = 0) -> Definition | None:
        """What a name stands for: a module, a class, a function, a member of a class, a value."""
        parts = dotted.split(".")
        if parts[0] not in self.roots or hops > _MAX_HOPS:
            return None
        for length in range(len(parts), 0, -1):
            module = ".".join(parts[:length])
            if self.module(module) is not None:
                return self._in_module(module, parts[length:], hops)
        return None

    def _parsed(self, dotted: str) -> ast.Module | None:
        first, *folders = dotted.split(".")
        if first not in self.roots:
            return None
        place = self.roots[first].joinpath(*folders)
        for file in (place / "__init__.py", place.parent / f"{place.name}.py"):
            if file.is_file():
                return ast.parse(file.read_text(encoding="utf-8"), filename=str(file))
        return None

    def is_package(self, dotted: str) -> bool:
        """Whether a module is a folder: its relative imports count from there."""
        first, *folders = dotted.split(".")
        return self.roots[first].joinpath(*folders, "__init__.py").is_file()

    def _in_module(self, module: str, rest: list[str], hops: int) -> Definition | None:
        tree = self.module(module)
        assert tree is not None
        if not rest:
            return Definition(module, tree)
        if module not in self._names:
            self._names[module] = top_level_names(tree)
        name, *members = rest
        node = self._names[module].get(name)
        if isinstance(node, ast.ImportFrom | ast.Import):
            source = imported_as(node, module, self.is_package(module)).get(name)
            return self.find(".".join([source, *members]), hops + 1) if source else None
        if node is None or not members:
            return Definition(module, node) if node is not None else None
        if isinstance(node, ast.ClassDef):
            return self._in_class(module, node, members, hops)
        if isinstance(node, ast.AnnAssign) and isinstance(node.annotation, ast.Name):
            # A value of a class, such as the one platform: its members are the class's.
            return self._in_module(module, [node.annotation.id, *members], hops + 1)
        return None

    def _in_class(
        self, module: str, node: ast.ClassDef, members: list[str], hops: int
    ) -> Definition | None:
        if len(members) != 1 or hops > _MAX_HOPS:
            return None
        if (member := member_of(node, members[0])) is not None:
            return Definition(module, member)
        for base in node.bases:
            name = dotted_name(base)
            found = self._in_module(module, name.split("."), hops + 1) if name else None
            if found is not None and isinstance(found.node, ast.ClassDef):
                inherited = self._in_class(found.module, found.node, members, hops + 1)
                if inherited is not None:
                    return inherited
        return None


def top_level_names(tree: ast.Module) -> dict[str, ast.stmt]:
    """What a module defines or imports outside of functions, by name.

    Of two definitions the first counts, since the second is often what stands in while types are
    not checked; of functions the last, since those before are its overloads.
    """
    names: dict[str, ast.stmt] = {}
    for node in _statements(tree.body):
        for name in bound_names(node):
            if name not in names or (
                isinstance(node, Function) and isinstance(names[name], Function)
            ):
                names[name] = node
    return names


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Those of a module or class, also inside of its ``if``, ``try`` and ``with``."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            yield from _statements(node.body)
        if isinstance(node, ast.If | ast.Try):
            yield from _statements(node.orelse)
        if isinstance(node, ast.Try):
            yield from _statements([inner for handler in node.handlers for inner in handler.body])


def bound_names(node: ast.stmt) -> list[str]:
    """What a statement defines or imports."""
    if isinstance(node, ast.ClassDef | Function):
        return [node.name]
    if isinstance(node, ast.ImportFrom | ast.Import):
        return [alias.asname or alias.name.split(".")[0] for alias in node.names]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


def imported_as(node: ast.ImportFrom | ast.Import, module: str, is_package: bool) -> dict[str, str]:
    """What an import statement binds: the full dotted name by the local one."""
    if isinstance(node, ast.Import):
        whole = {alias.asname: alias.name for alias in node.names if alias.asname}
        firsts = {alias.name.split(".")[0] for alias in node.names if not alias.asname}
        return {**whole, **{first: first for first in firsts}}
    source = node.module or ""
    if node.level:
        parents = module.split(".")[: None if is_package else -1]
        kept = parents[: len(parents) - node.level + 1]
        source = ".".join([*kept, *([node.module] if node.module else [])])
    return {alias.asname or alias.name: f"{source}.{alias.name}" for alias in node.names}


def member_of(node: ast.ClassDef, name: str) -> ast.stmt | None:
    """A method or a field of a class itself, or what a method first assigns to ``self``."""
    found: ast.stmt | None = None
    for inner in _statements(node.body):
        if name in bound_names(inner):
            found = inner
    if found is not None:
        return found
    methods = [inner for inner in node.body if isinstance(inner, Function)]
    for method in sorted(methods, key=lambda method: method.name != "__init__"):
        for part in ast.walk(method):
            if isinstance(part, ast.Assign | ast.AnnAssign) and name in _set_on_self(part):
                return part
    return None


def _set_on_self(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    flat = [one for target in targets for one in getattr(target, "elts", [target])]
    return [one.attr for one in flat if isinstance(one, ast.Attribute) and is_self(one.value)]


def is_self(node: ast.expr) -> bool:
    """Whether an expression is ``self``."""
    return isinstance(node, ast.Name) and node.id == "self"


def dotted_name(node: ast.expr) -> str:
    """The name in an expression such as ``a.B`` or ``a.B[int]``; empty for any other."""
    if isinstance(node, ast.Subscript):
        return dotted_name(node.value)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Attribute):
        inner = dotted_name(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return node.id if isinstance(node, ast.Name) else ""
