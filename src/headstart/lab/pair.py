"""Where the trained pair is: in the package `headstart-lab`, or wherever it was trained."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from headstart.errors import LabError

PACKAGE = "headstart_lab"
_NEEDED = ("config.json", "tokenizer.json", "model.safetensors")
_HOW = (
    "Install it from a checkout of headstart:\n"
    "    pip install ./lab\n"
    "or train one and name it with --pair:\n"
    "    headstart lab data drives\n"
    "    headstart lab train drives pair"
)


@dataclass(frozen=True)
class Pair:
    """Two checkpoints that know the lab's world, one by frames and one by events."""

    target: Path
    drafter: Path

    @classmethod
    def at(cls, directory: Path) -> Pair:
        """The pair in a directory, as `headstart lab train` and `headstart lab tiny` leave it."""
        pair = cls(directory / "target", directory / "drafter")
        for model in (pair.target, pair.drafter):
            if missing := [name for name in _NEEDED if not (model / name).is_file()]:
                raise LabError(f"{model} lacks {', '.join(missing)}: not a trained model. {_HOW}")
        return pair


def find_pair() -> Pair:
    """The pair that is installed; `LabError` with what to run if there is none."""
    spec = importlib.util.find_spec(PACKAGE)
    places = [] if spec is None else list(spec.submodule_search_locations or ())
    if not places:
        raise LabError(f"the lab's trained pair is not installed. {_HOW}")
    directory = Path(places[0]) / "pair"
    if not directory.is_dir():
        raise LabError(f"{PACKAGE} is installed without its weights ({directory}). {_HOW}")
    return Pair.at(directory)
