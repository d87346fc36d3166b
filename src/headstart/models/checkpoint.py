"""Checks that a directory's weights are those its config describes.

Only the safetensors headers are read, before an engine starts. So a wrong checkpoint is an error
message after a second, and not a traceback from another process after minutes.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from headstart.errors import CheckpointError

_MOST_NAMED = 8


def stored_shapes(directory: Path) -> dict[str, tuple[int, ...]]:
    from safetensors import SafetensorError, safe_open

    shapes: dict[str, tuple[int, ...]] = {}
    for file in sorted(directory.glob("*.safetensors")):
        try:
            with safe_open(file, framework="numpy") as tensors:
                for name in tensors.keys():  # noqa: SIM118 - not a mapping
                    shapes[name] = tuple(tensors.get_slice(name).get_shape())
        except SafetensorError as error:
            raise CheckpointError(
                f"{file} is not a whole safetensors file ({error}). Fetch or save it again."
            ) from error
    return shapes


def check_checkpoint(
    directory: Path,
    expected: Mapping[str, tuple[int, ...]],
    canonical_name: Callable[[str], str],
) -> None:
    """Raise a `CheckpointError` naming what is missing, unexpected or of another shape."""
    stored = {canonical_name(name): shape for name, shape in stored_shapes(directory).items()}
    if not stored:
        raise CheckpointError(
            f"{directory} holds no .safetensors file. Point at a directory written by"
            " save_pretrained, or a model's name on the hub."
        )
    problems = [
        _sentence("missing", sorted(expected.keys() - stored.keys())),
        _sentence("unexpected", sorted(stored.keys() - expected.keys())),
        _sentence(
            "of another shape",
            [
                f"{name} (stored {stored[name]}, config says {expected[name]})"
                for name in sorted(expected.keys() & stored.keys())
                if stored[name] != expected[name]
            ],
        ),
    ]
    if any(problems):
        raise CheckpointError(
            f"The weights in {directory} are not those of its config.json. "
            + " ".join(filter(None, problems))
            + " Save the model again, or correct config.json."
        )


def _sentence(what: str, names: list[str]) -> str:
    if not names:
        return ""
    rest = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{len(names)} {what}: {', '.join(names[:_MOST_NAMED])}{rest}."
