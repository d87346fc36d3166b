"""Where a model of the lab may be written: over nothing that somebody may want to keep.

Every demo, guide and figure is of the installed pair, so no command writes into it, whichever
links lead there.
"""

from pathlib import Path

from headstart.models.digests import FILE
from headstart_lab import pair
from headstart_lab.errors import LabError


def check_place(model: Path, *, has_begun: bool = False) -> None:
    """Raise `LabError` if a model written to this directory would overwrite another.

    The files of an untrained model may be overwritten; of a trained one only if it is what the same
    run wrote before, which ``has_begun``.
    """
    installed = pair.INSTALLED.resolve()
    inside = sorted(model.iterdir()) if model.is_dir() else []
    if link := next((path for path in (model, *inside) if path.is_symlink()), None):
        raise LabError(
            f"{link} is a link, and what it leads to ({link.resolve()}) would be overwritten."
            " Choose another directory, or take the link away."
        )
    if installed in (model.resolve(), *model.resolve().parents):
        raise LabError(
            f"{model} is inside the installed pair ({installed}), which every demo and figure is"
            " of. Choose another directory."
        )
    if (model / FILE).exists() and not has_begun:
        raise LabError(
            f"{model} holds a trained model, which would be overwritten. Choose another directory,"
            " or take the model away."
        )
