"""Starts the engine for a command, and shows what vLLM does meanwhile, read from what it logs."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner

from headstart.cli.options import AskSettings
from headstart.cli.settings import engine_arguments, named_values
from headstart.cli.terminal import Terminal, divert, is_verbose, quieten
from headstart.engine.interrupts import interrupts_kept
from headstart.engine.options import Sources
from headstart.engine.question import RequestOptions

if TYPE_CHECKING:
    from headstart.engine.headstart import Headstart

FIRST = "reading vLLM"
BEGINNINGS = (
    ("Resolved architecture", "starting the engine"),
    ("Starting to load model", "loading the model"),
    ("Loading weights took", "measuring memory"),
    ("Warming up model for the compilation", "warming up"),
    ("KV cache size:", "warming up"),
    ("init engine (", "opening"),
)
"""A part of a line of vLLM's, and what begins with it."""
LOOK_S = 0.2


class Phases:
    """The parts of a start, and the seconds of each. The lines of several engines add up."""

    def __init__(self, now_s: float) -> None:
        self.current = FIRST
        self.first_s = self._since_s = now_s
        self._seconds: dict[str, float] = {}

    def hear(self, line: str, now_s: float) -> None:
        for part, phase in BEGINNINGS:
            if part in line and phase != self.current:
                self._count(now_s)
                self.current = phase

    def summary(self, now_s: float) -> str:
        """All seconds, and those of each part that took one at least."""
        self._count(now_s)
        parts = [f"{name} {s:.0f} s" for name, s in self._seconds.items() if s >= 1]
        shown = f" ({', '.join(parts)})" if len(parts) > 1 else ""
        return f"{now_s - self.first_s:.0f} s{shown}"

    def _count(self, now_s: float) -> None:
        self._seconds[self.current] = self._seconds.get(self.current, 0.0) + now_s - self._since_s
        self._since_s = now_s


@contextmanager
def shown_start(shown: Terminal, what: str) -> Iterator[Callable[[], None]]:
    """Show a start until the block is left, or says by a call that it is up, and how long it took.

    Without a log of vLLM's, only the latter is shown.
    """
    phases, over = Phases(time.monotonic()), threading.Event()
    console, spinner = Console(file=shown.err), Spinner("dots", f"starting {what}")
    # What is printed meanwhile is not for the terminal.
    live = Live(
        spinner, console=console, transient=True, redirect_stdout=False, redirect_stderr=False
    )

    def read() -> None:
        assert shown.log is not None
        with shown.log.open(errors="replace") as lines:
            while not over.wait(LOOK_S):
                for line in lines:
                    phases.hear(line, time.monotonic())
                seconds = time.monotonic() - phases.first_s
                spinner.update(text=f"starting {what}: {phases.current} {seconds:.0f} s")

    reader = threading.Thread(target=read, name="phases", daemon=True)

    def close() -> None:
        over.set()
        if reader.is_alive():
            reader.join()
            live.stop()

    def up() -> None:
        if not over.is_set():
            close()
            took = phases.summary(time.monotonic())
            console.print(f"[dim]{what} is up after {took}[/]", soft_wrap=True)

    if shown.log is not None:
        live.start()
        reader.start()
    try:
        yield up
    finally:
        close()


def start_headstart(
    target: str,
    settings: AskSettings,
    *,
    draft_model: str | None,
    sources: Sources = Sources(),
    num_frames: int | None,
    vllm: Sequence[str] | None,
    sampling: Sequence[str] | None = None,
) -> "Headstart":
    """A running engine. While it starts, a terminal shows that it does, and in which part."""
    options = RequestOptions(settings.system, named_values(sampling, "--sampling"), settings.lora)
    arguments, beside = engine_arguments(vllm, draft_model)
    if settings.lora is not None:
        arguments = {"enable_lora": True, **arguments}
    shown = divert()
    if shown.log is None:
        quieten()
    quiet = {"use_tqdm_on_load": is_verbose()}
    with shown_start(shown, target) as up, interrupts_kept():
        from headstart.engine.draft_model import draft_model as by_name
        from headstart.engine.headstart import Headstart

        headstart = Headstart(
            target,
            draft_model=by_name(draft_model, {**quiet, **beside}) if draft_model else None,
            sources=sources,
            max_draft_tokens=settings.max_draft_tokens,
            options=options,
            num_frames=num_frames,
            vllm={**quiet, **arguments},
        )
        up()
    return headstart
