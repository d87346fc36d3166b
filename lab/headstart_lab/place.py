"""Where a model of the lab may be written: where any may, and not into the installed pair.

Every demo, guide and figure is of that pair, so no command writes into it, whichever links lead
there.
"""

from pathlib import Path

from headstart_lab import pair
from headstart_lab.errors import LabError
from headstart_research.training.place import check_place as check_any_place


def check_place(model: Path, *, has_begun: bool = False) -> None:
    """Raise if a model written to this directory would overwrite another."""
    check_any_place(model, has_begun=has_begun or _is_installed(model))
    if _is_installed(model):
        raise LabError(
            f"{model} is inside the installed pair ({pair.INSTALLED}), which every demo and figure"
            " is of. Choose another directory."
        )


def _is_installed(model: Path) -> bool:
    return pair.INSTALLED.resolve() in (model.resolve(), *model.resolve().parents)
