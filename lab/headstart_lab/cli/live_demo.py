"""`headstart demo`: the lab pair watches a drive, live, beside vLLM alone, on a page."""

import json
import socket
import tempfile
import threading
import webbrowser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from headstart.cli.starting import shown_start
from headstart.cli.terminal import divert, quieten, report_errors
from headstart.errors import EngineMissingError

DRIVE_S = 60
"""Of the drive, which then begins again."""
SHOWN_HZ = 10
"""Frames a second of the video: the page takes four in a second."""
HOST = "127.0.0.1"

app = typer.Typer(add_completion=False)


@app.command()
@report_errors
def demo(
    port: Annotated[
        int, typer.Option(help="Of the page; the next free one if it is taken.")
    ] = 8000,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
    compare: Annotated[bool, typer.Option(help="Ask vLLM alone too.")] = True,
) -> None:
    """Watch a drive live on a page, beside vLLM alone.

    The lab pair answers about each window of it, in your browser. Everything is on this machine
    and stays there. Ctrl-C ends it.
    """
    try:
        from headstart_server import server
        from headstart_server.page import WISHES
        from headstart_server.settings import Settings
    except ModuleNotFoundError as error:
        raise EngineMissingError(
            f"the demo needs vLLM, and {error.name} is missing; `headstart doctor` says how to"
            " install it"
        ) from error
    from headstart.media.video import write_frames
    from headstart_lab.language.questions import Question
    from headstart_lab.pair import find_pair

    pair, port = find_pair(), _free(port)
    shown = divert()
    if shown.log is None:
        quieten()
    console = Console(file=shown.err)
    with tempfile.TemporaryDirectory(prefix="headstart-demo-") as folder:
        clips = Path(folder)
        write_frames(clips / "drive.mp4", _frames(console), fps=SHOWN_HZ)
        wishes = {"question": Question.DESCRIBE.usual, "plays": True}
        (clips / WISHES).write_text(json.dumps(wishes))
        engines = "vLLM with headstart, and vLLM alone" if compare else "vLLM with headstart"
        console.print(f"starting {engines}; this takes a minute or two")
        settings = Settings(
            target=str(pair.target),
            host=HOST,
            port=port,
            open=True,
            demo=clips,
            compare=compare,
            log=clips / "requests.jsonl",
            vllm={
                "enforce_eager": True,
                "dtype": "float32",
                "kv_cache_memory_bytes": 2**30,
            },
        )
        page = f"http://{HOST}:{port}/live"
        server.check_start(settings)
        with shown_start(shown, "the demo") as up:

            def on_up(_addresses: Sequence[str]) -> None:
                up()
                console.print(f"[bold]{page}[/]  (Ctrl-C ends it)")
                if browser:  # it may wait for a browser to start, and the server must not
                    threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()

            server.serve(settings, on_up)


def _frames(console: Console) -> Iterator[NDArray[np.uint8]]:
    """A minute of a held-out drive."""
    from headstart_lab.split import Split
    from headstart_lab.world.drive import SECOND_US, Drive
    from headstart_lab.world.painter import render

    (seed,) = Split.HELD_OUT.seeds(1)
    drive = Drive(seed)
    numbers = range(DRIVE_S * SHOWN_HZ)
    for number in track(numbers, "drawing a drive", console=console, transient=True):
        yield render(drive.scene(number * SECOND_US // SHOWN_HZ))


def _free(port: int) -> int:
    """This port, or the next that nobody listens on."""
    while True:
        with socket.socket() as probe:
            if probe.connect_ex((HOST, port)):
                return port
        port += 1
