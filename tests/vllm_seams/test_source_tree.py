"""What dotted names stand for, read from files that would not import."""

import ast

import pytest

from headstart.errors import CompatibilityError
from tools.vllm_seams.source_tree import SourceTree

FILES = {
    "__init__.py": """
import typing
if typing.TYPE_CHECKING:
    from engine.parts import Wheel
else:
    def __getattr__(name): raise ImportError
""",
    "parts/__init__.py": "from .wheel import Wheel, spin as turn\nfrom .wheel import platform\n",
    "parts/wheel.py": """
import no_such_module
from engine.base import Round
class Wheel(Round["int"]):
    size: int = 3
    def __init__(self):
        self.hub, self.rim = 1, 2
    def roll(self): return self.hub
def spin(speed): return speed
class Platform:
    def is_cpu(self): return True
try:
    platform: Platform
except ImportError:
    platform = None
""",
    "base.py": """
class Round:
    def stop(self): return 0
def spun(x: int) -> int: ...
def spun(x): return x
""",
}


@pytest.fixture
def tree(tmp_path):
    for name, text in FILES.items():
        file = tmp_path / "engine" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return SourceTree(tmp_path / "engine")


@pytest.mark.parametrize(
    ("name", "module", "kind"),
    [
        ("engine.parts", "engine.parts", ast.Module),
        ("engine.Wheel", "engine.parts.wheel", ast.ClassDef),
        ("engine.parts.turn", "engine.parts.wheel", ast.FunctionDef),
        ("engine.Wheel.roll", "engine.parts.wheel", ast.FunctionDef),
        ("engine.Wheel.size", "engine.parts.wheel", ast.AnnAssign),
        ("engine.Wheel.rim", "engine.parts.wheel", ast.Assign),
        ("engine.Wheel.stop", "engine.base", ast.FunctionDef),
        ("engine.parts.platform.is_cpu", "engine.parts.wheel", ast.FunctionDef),
    ],
)
def test_a_name_is_followed_to_where_it_is_defined(tree, name, module, kind):
    found = tree.find(name)
    assert found is not None
    assert found.module == module
    assert isinstance(found.node, kind)


@pytest.mark.parametrize(
    "name", ["engine.Nothing", "engine.Wheel.nothing", "engine.no.such", "other.Wheel"]
)
def test_a_name_that_stands_for_nothing_is_not_found(tree, name):
    assert tree.find(name) is None


def test_of_overloads_the_last_counts(tree):
    found = tree.find("engine.base.spun")
    assert isinstance(found.node.body[0], ast.Return)


def test_a_folder_without_a_package_is_refused(tmp_path):
    with pytest.raises(CompatibilityError, match=r"__init__\.py"):
        SourceTree(tmp_path)
