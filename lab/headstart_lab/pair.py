"""Finds the trained pair: inside this package, or in a directory that a person names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headstart_lab.errors import LabError

INSTALLED = Path(__file__).parent / "pair"
_NEEDED = ("config.json", "tokenizer.json", "model.safetensors")
_HOW = (
    "Install the lab again (in a checkout: pip install ./lab),\n"
    "or train a pair and name it with --pair:\n"
    "    headstart lab data drives\n"
    "    headstart lab train drives pair"
)


@dataclass(frozen=True)
class Pair:
    """Two checkpoints trained on the lab's world: one takes frames, the other events."""

    target: Path
    drafter: Path

    @classmethod
    def at(cls, directory: Path) -> Pair:
        """The pair in a directory written by `headstart lab train` or `headstart lab tiny`."""
        pair = cls(directory / "target", directory / "drafter")
        for model in (pair.target, pair.drafter):
            if missing := [name for name in _NEEDED if not (model / name).is_file()]:
                raise LabError(f"{model} lacks {', '.join(missing)}: not a trained model. {_HOW}")
        return pair


def find_pair() -> Pair:
    """The pair that is installed with this package; an error says what to run if there is none."""
    if not INSTALLED.is_dir():
        raise LabError(f"the lab is installed without its weights ({INSTALLED}). {_HOW}")
    return Pair.at(INSTALLED)
