"""The options of approximate answers, and the lines that say what was left out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headstart.errors import ApproximateError

if TYPE_CHECKING:
    from headstart.bridges.kv_bridge import ApproximateKv
    from headstart.media.approximate import Approximation, Omission

AUTO = "auto"

Patches = Annotated[
    str | None,
    typer.Option(
        "--approximate",
        metavar="SHARE|NUMBER|auto",
        help="Show the target only the patches that changed: a share of them such as 0.5, their"
        " number, or auto. The answer may differ from the target's own.",
    ),
]
Frames = Annotated[
    str | None,
    typer.Option(
        "--approximate-frames",
        metavar="NUMBER|auto",
        help="Show the target fewer frames, chosen by what happens between them. The answer may"
        " differ from the target's own.",
    ),
]

Guessed = Annotated[
    Path | None,
    typer.Option(
        "--approximate-kv",
        exists=True,
        file_okay=False,
        help="Let a KV bridge guess what the target would compute of the clip, from its events. The"
        " answer may differ from the target's own.",
    ),
]


def approximation(
    patches: str | None, frames: str | None, guessed: Path | None
) -> "Approximation | ApproximateKv | None":
    """What the options ask for; None where the answer is to be the target's own."""
    from headstart.bridges.kv_bridge import ApproximateKv

    shown = shown_part(patches, frames)
    if guessed is None:
        return shown
    if shown is not None:
        raise ApproximateError(
            "--approximate-kv shows the target nothing of the clip: give it or --approximate or"
            " --approximate-frames, one of them"
        )
    return ApproximateKv(guessed)


def shown_part(patches: str | None, frames: str | None) -> "Approximation | None":
    """What the options show of a clip; None where they show all of it."""
    from headstart.media.approximate import Approximate, ApproximateFrames

    if patches is not None and frames is not None:
        raise ApproximateError(
            "--approximate leaves out frames in which nothing changed by itself: give it or"
            " --approximate-frames, not both"
        )
    if patches is not None:
        return Approximate(None if patches == AUTO else _number("--approximate", patches))
    if frames is not None:
        number = None if frames == AUTO else _number("--approximate-frames", frames)
        return ApproximateFrames(number)  # type: ignore[arg-type]  # it refuses a share itself
    return None


def omission_line(left_out: "Omission | ApproximateKv") -> str:
    """What the answer did not look at."""
    from headstart.media.approximate import Omission

    if not isinstance(left_out, Omission):
        return (
            f"approximate: {left_out.directory} guessed the clip, which the target did not see. The"
            " answer to the clip may differ."
        )
    steps = left_out.num_dropped_steps
    return (
        f"approximate: {left_out.num_dropped_patches} of {left_out.num_patches} patches"
        f" ({left_out.dropped_share:.0%}) were not shown to the target"
        f"{f', and nothing of {steps} frames or pairs of frames' if steps else ''}."
        " The answer to the whole clip may differ."
    )


def _number(option: str, text: str) -> float | int:
    try:
        return int(text) if text.strip().isdecimal() else float(text)
    except ValueError:
        raise ApproximateError(
            f"{option} {text}: give a number such as {'4' if 'frames' in option else '0.5'}, or"
            f" {AUTO}"
        ) from None
