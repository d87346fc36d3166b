"""Where a model may be written: through no link, and over no trained model but a run's own."""

from pathlib import Path

from headstart.doctor.digests import FILE
from headstart.errors import TrainingError


def check_place(model: Path, *, has_begun: bool = False) -> None:
    """Raise `TrainingError` if a model written to this directory would overwrite another.

    The files of an untrained model may be overwritten; of a trained one only if it is what the same
    run wrote before, which ``has_begun``.
    """
    inside = sorted(model.iterdir()) if model.is_dir() else []
    if link := next((path for path in (model, *inside) if path.is_symlink()), None):
        raise TrainingError(
            f"{link} is a link, and what it leads to ({link.resolve()}) would be overwritten."
            " Choose another directory, or take the link away."
        )
    if (model / FILE).exists() and not has_begun:
        raise TrainingError(
            f"{model} holds a trained model, which would be overwritten. Choose another directory,"
            " or take the model away."
        )
