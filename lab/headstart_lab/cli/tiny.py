"""`headstart lab tiny`: models with random weights, and a street scene to ask them about."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from headstart.cli.terminal import report_errors
from headstart.media.events import SensorSize


@report_errors
def tiny(
    directory: Annotated[Path, typer.Argument(help="Where to write; made if absent.")],
    real_geometry: Annotated[
        bool, typer.Option(help="Pictures as large as the published models': 2056 and 582 tokens.")
    ] = False,
) -> None:
    """Write untrained models, and a short street scene as video and as events.

    The models are laid out like the published ones, and their answers are noise: they show that
    everything works, not what trained models say.
    """
    from headstart_events.simulation import simulate
    from headstart_events.writers.writing import write_recording
    from headstart_lab.place import check_place
    from headstart_lab.street import street_video
    from headstart_lab.tiny import TinyEventGpt, TinyVideoLlava

    for model in ("target", "drafter"):
        check_place(directory / model)
    target = TinyVideoLlava.real_geometry() if real_geometry else TinyVideoLlava()
    drafter = TinyEventGpt.real_geometry() if real_geometry else TinyEventGpt()
    target.save(directory / "target")
    drafter.save(directory / "drafter")
    street = street_video()
    street.write(directory / "street.mp4")
    seen = zip(street.times_us.tolist(), street.frames, strict=True)
    sensor = SensorSize(street.frames.shape[2], street.frames.shape[1])
    write_recording(directory / "street.npz", simulate(seen), sensor)

    console = Console()
    console.print(f"wrote target and drafter (random weights) and a street scene to {directory}\n")
    for line in (
        f"headstart ask --target {directory}/target --video {directory}/street.mp4"
        " --question 'What is happening?'",
        f"headstart ask --model {directory}/drafter --events {directory}/street.npz"
        " --clip 500000:550000 --question 'What is happening?'",
    ):
        console.print(line, style="cyan", markup=False, highlight=False, soft_wrap=True)
