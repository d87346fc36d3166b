"""What a program beside cameras uses imports no engine and no server: neither need be there.

Sources, sinks, windows, the confined decoder and the client of a server are such.
"""

import json
import subprocess
import sys

import pytest

ABSENT = ("vllm", "torch", "transformers", "headstart_server", "headstart_research")
ROOMS = (
    "headstart.media",
    "headstart.live.sources",
    "headstart.live.sinks",
    "headstart_client",
)
MODULES = ("headstart.live.windows", "headstart.live.when", "headstart.doctor.findings")
PROGRAM = """
import importlib, json, pkgutil, sys

absent, rooms, modules = json.loads(sys.argv[1])

class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ImportError(f"{name} is asked for, and is not there")

sys.meta_path.insert(0, Refusing())
failed = {}
found = list(modules)
for room in rooms:
    package = importlib.import_module(room)
    found += [room, *(each.name for each in pkgutil.walk_packages(package.__path__, room + "."))]
for name in found:
    try:
        importlib.import_module(name)
    except ImportError as error:
        failed[name] = str(error)
print(json.dumps([len(found), failed]))
"""


def imported(rooms, modules):
    """How many modules there were, and why which of them could not be imported."""
    given = json.dumps([ABSENT, rooms, modules])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, given], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_sources_windows_decoding_and_the_client_need_neither_engine_nor_server():
    num_modules, failed = imported(ROOMS, MODULES)
    assert failed == {}
    assert num_modules > 30


@pytest.mark.parametrize("module", ["headstart.models.video_parts", "headstart_server.gateway"])
def test_what_needs_an_engine_is_told_apart(module):
    _, failed = imported((), [module])
    assert "is not there" in failed[module]
