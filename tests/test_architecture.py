"""The shape of the checkout and the package: who imports whom, cycles, names."""

import ast
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "headstart": ROOT / "src" / "headstart",
    "headstart_client": ROOT / "client" / "headstart_client",
    "headstart_events": ROOT / "events" / "headstart_events",
    "headstart_server": ROOT / "server" / "headstart_server",
    "headstart_research": ROOT / "research" / "headstart_research",
}
MAY_IMPORT = {
    "headstart": set(),
    "headstart_client": {"headstart"},
    "headstart_events": {"headstart"},
    "headstart_server": {"headstart", "headstart_client", "headstart_events"},
    "headstart_research": {"headstart", "headstart_events"},
}
"""A package finds the others by entry points, if it needs them."""

# Top to bottom. What lies in a folder imports from the floors below its own only.
FLOORS = (
    {"tests": "tests", "benchmarks": "benchmarks"},
    {"rig": "rig", "reference": "reference", "tools": "tools"},
    {"headstart_lab": "lab/headstart_lab"},
    {
        "headstart_server": "server/headstart_server",
        "headstart_research": "research/headstart_research",
    },
    {
        "headstart_client": "client/headstart_client",
        "headstart_events": "events/headstart_events",
    },
    {"headstart": "src/headstart"},
)
"""Folders by the names under which they are imported."""
FLOOR = {name: floor for floor, folders in enumerate(FLOORS) for name in folders}

# Which rooms the modules of a room of headstart may import. Their floors follow from what they do.
ROOMS: dict[str, set[str]] = {
    "errors": set(),
    "doctor": {"errors"},
    "media": {"errors"},
    "speculation": {"errors"},
    "models": {"errors", "media"},
    "drafters": {"errors", "speculation"},
    "answers": {"speculation"},
    "engine": {"errors", "doctor", "media", "speculation", "drafters", "models", "answers"},
    "live": {"errors", "media", "speculation", "answers", "engine"},
    "cli": {"errors", "doctor", "media", "speculation", "answers", "engine", "live"},
}
MAY_IMPORT_VLLM = {
    "headstart.engine",
    "headstart.models",
    "headstart_events.beside",
    "headstart_events.eventgpt",
    "headstart_server",
    "headstart_research.collect.observer",
    "headstart_research.bridge",
}
BANNED_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "base_utils"}
MAX_LINES = 400

MODULES = sorted(file for folder in PACKAGES.values() for file in folder.rglob("*.py"))


def dotted(module: Path) -> str:
    folder = next(folder for folder in PACKAGES.values() if module.is_relative_to(folder))
    parts = module.relative_to(folder.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


KNOWN = {dotted(module) for module in MODULES}
CORE = [module for module in MODULES if dotted(module).split(".")[0] == "headstart"]


def room_of(module: Path) -> str:
    """Of a module of headstart; its front door is a room of its own."""
    return (*dotted(module).split("."), "__init__")[1]


def test_every_package_that_is_installed_is_looked_at():
    found = {folder.parent.name for folder in ROOT.glob("*/headstart*/__init__.py")}
    assert found - {"headstart_lab"} == PACKAGES.keys() == MAY_IMPORT.keys()


@pytest.mark.parametrize("module", MODULES, ids=dotted)
def test_packages_import_only_those_below_them(module):
    own = dotted(module).split(".")[0]
    used = {name.split(".")[0] for name in imports_of(module)}
    ours = {name for name in used if name.startswith("headstart")} - {own}
    assert ours <= MAY_IMPORT[own]


def imports_of(module: Path) -> set[str]:
    """Every module named in an import, wherever in the file it stands."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def own_imports(module: Path) -> set[str]:
    return imports_of(module) & KNOWN


def rooms_imported(module: Path) -> set[str]:
    """Rooms of headstart, other than its own, that a module imports from."""
    names = [name.split(".") for name in own_imports(module)]
    rooms = {name[1] for name in names if name[0] == "headstart" and len(name) > 1}
    return rooms - {room_of(module)}


def floors_of(imports: Mapping[str, set[str]]) -> dict[str, int]:
    """The floor of each room, from 1: one above the highest of those that it imports."""
    floors: dict[str, int] = {}

    def floor(room: str) -> int:
        if room not in floors:
            floors[room] = 1 + max(map(floor, imports[room]), default=0)
        return floors[room]

    return {room: floor(room) for room in imports}


def against_the_floors(importer: str, imported: set[str]) -> set[str]:
    """Those of ``imported`` (modules) whose folder one of folder ``importer`` must not see."""
    tops = {name: name.split(".")[0] for name in imported}
    return {
        name
        for name, top in tops.items()
        if top in FLOOR and top != importer and FLOOR[top] <= FLOOR[importer]
    }


def test_imports_between_folders_go_down():
    wrong, seen = [], set()
    for name, folder in [pair for folders in FLOORS for pair in folders.items()]:
        for module in sorted((ROOT / folder).rglob("*.py")):
            imported = imports_of(module)
            seen |= {(name, one.split(".")[0]) for one in imported}
            path = module.relative_to(ROOT)
            wrong += [f"{path}: {one}" for one in sorted(against_the_floors(name, imported))]
    assert not wrong
    down = {("tests", "rig"), ("benchmarks", "rig"), ("rig", "headstart_lab")}
    assert down <= seen, "imports were not found"


def test_the_floors_refuse_upward_and_sideways_imports():
    assert against_the_floors("tests", {"benchmarks.keep", "rig.servers"}) == {"benchmarks.keep"}
    assert against_the_floors("benchmarks", {"tests.guides"}) == {"tests.guides"}
    assert against_the_floors("rig", {"tests", "headstart.live"}) == {"tests"}
    assert against_the_floors("headstart", {"rig", "headstart_lab"}) == {"rig", "headstart_lab"}
    assert against_the_floors("tests", {"tests.soak.promise", "headstartle"}) == set()


def test_only_these_open_addresses_by_what_follows_redirects():
    """A redirect takes a key, or a tenant's words, to whoever an answer names."""
    opening = re.compile(r"\b(urlopen|build_opener|import requests|httpx|aiohttp)\b")
    found = {dotted(module) for module in MODULES if opening.search(module.read_text())}
    # The one has an opener that does not follow, the other says so to aiohttp.
    assert found == {"headstart.live.sinks.hook", "headstart_server.media.fetcher"}
    fetcher = (PACKAGES["headstart_server"] / "media/fetcher.py").read_text()
    assert fetcher.count("session.get(") == fetcher.count("allow_redirects=False") == 1


# The front door names things of every room, lazily.
IMPORTED = {
    room: set[str]().union(*(rooms_imported(module) for module in CORE if room_of(module) == room))
    for room in {room_of(module) for module in CORE} - {"__init__"}
}


@pytest.mark.parametrize("room", sorted(IMPORTED))
def test_a_room_imports_the_rooms_that_it_may(room):
    assert room in ROOMS, f"{room} is not a room of the design; add it to ROOMS on purpose"
    assert IMPORTED[room] <= ROOMS[room], f"{room} may import {sorted(ROOMS[room])}"


def test_rooms_stand_on_floors():
    assert not find_cycle(IMPORTED)
    floors = floors_of(IMPORTED)
    assert floors["errors"] == 1
    assert floors["cli"] == max(floors.values())
    assert ROOMS.keys() == IMPORTED.keys(), "a room that is gone may import nothing"


def test_floors_follow_from_imports():
    imports = {"a": {"b", "c"}, "b": {"c"}, "c": set(), "d": {"c"}}
    assert floors_of(imports) == {"a": 3, "b": 2, "c": 1, "d": 2}


def test_the_draft_channel_knows_nothing_of_who_uses_it():
    folder = "headstart.engine.drafts"
    imports = {dotted(m): own_imports(m) for m in MODULES if room_of(m) == "engine"}
    inside = {name for name in imports if name.startswith(folder)}
    users = {name for name in imports.keys() - inside if imports[name] & inside}
    assert users  # the front end among them
    for name in inside:
        assert not imports[name] & users, name


def find_cycle(graph: dict[str, set[str]]) -> list[str]:
    done: set[str] = set()

    def visit(node: str, path: list[str]) -> list[str]:
        if node in path:
            return [*path[path.index(node) :], node]
        if node in done:
            return []
        for successor in sorted(graph.get(node, ())):
            if cycle := visit(successor, [*path, node]):
                return cycle
        done.add(node)
        return []

    return next((cycle for node in sorted(graph) if (cycle := visit(node, []))), [])


def test_no_import_cycle():
    # A package's name in "from package import module" is not an import of its own contents.
    graph = {dotted(m): own_imports(m) - {dotted(m)} for m in MODULES if m.stem != "__init__"}
    assert not find_cycle(graph)
    assert find_cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a", "b", "c", "a"]


@pytest.mark.parametrize("module", MODULES, ids=dotted)
def test_a_module_is_one_noun_readable_in_one_sitting(module):
    names = set(dotted(module).split("."))
    assert not names & BANNED_NAMES
    text = module.read_text()
    assert len(text.splitlines()) <= MAX_LINES
    assert not re.search(r"sys\.path(\.|\[| *\+?=)", text)  # what finds modules is the installation
    assert ast.get_docstring(ast.parse(text)), "a module says what it owns"


@pytest.mark.parametrize("module", MODULES, ids=dotted)
def test_vllm_stays_behind_the_engine(module):
    name = f"{dotted(module)}."
    if any(name.startswith(f"{room}.") for room in MAY_IMPORT_VLLM):
        return
    assert not {n for n in imports_of(module) if n.split(".")[0] == "vllm"}
