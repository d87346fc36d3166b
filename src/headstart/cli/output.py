"""Prints answers as they come: confirmed text bright, previews dim; or as lines of JSON."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Self

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from headstart.answers.preview import Confirmed, Preview, Retracted, Shown
from headstart.cli.terminal import terminal
from headstart.live.answer_log import row_of
from headstart.live.window_question import WindowAnswer

REFRESHES_PER_SECOND = 12


class AnswerText:
    """The two texts that a reader keeps: the certain one, and the previewed one after it."""

    def __init__(self) -> None:
        self.confirmed, self.preview = "", ""

    def add(self, shown: Shown) -> None:
        match shown:
            case Preview(text=text):
                self.preview += text
            case Retracted():
                self.preview = ""
            case Confirmed(text=text):
                self.confirmed += text
                continues = self.preview.startswith(text)
                self.preview = self.preview[len(text) :] if continues else ""

    def __rich__(self) -> Text:
        return Text(self.confirmed).append(self.preview, style="dim")


@contextmanager
def answer_screen(console: Console) -> Iterator[Callable[[Shown], None]]:
    """Show one answer as it comes; only confirmed text where the output is no terminal."""
    if console.is_terminal:
        text = AnswerText()
        with Live(text, console=console, auto_refresh=False) as live:

            def draw(shown: Shown) -> None:
                text.add(shown)
                live.refresh()

            yield draw
        return

    def write(shown: Shown) -> None:
        if isinstance(shown, Confirmed):
            console.print(shown.text, end="", markup=False, highlight=False)

    try:
        yield write
    finally:
        console.print()


class OutputForm(StrEnum):
    """What is printed for an answer about a window."""

    TEXT = "text"
    JSONL = "jsonl"


class JsonLines:
    """One object a line, written out at once."""

    on_shown = None

    def print(self, answer: WindowAnswer) -> None:
        typer.echo(json.dumps(row_of(answer)), file=terminal().out)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        pass


class TextLines:
    """A line for each answer; on a terminal, below them the answers under way, previews dim."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lock = threading.Lock()
        self._under_way: dict[str, AnswerText] = {}
        # It draws in a thread of its own: a terminal that is stopped must not stop the engine.
        self._live = Live(
            console=console,
            get_renderable=self._drawn,
            refresh_per_second=REFRESHES_PER_SECOND,
            transient=True,
        )

    @property
    def on_shown(self) -> Callable[[str, Shown], None] | None:
        """Takes a stream's words as they come, from any thread; None where nothing is drawn."""
        return self._show if self._console.is_terminal else None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._live.stop()

    def print(self, answer: WindowAnswer) -> None:
        with self._lock:
            if (text := self._under_way.get(answer.stream)) is not None:
                # The next answer may have begun: its words stay.
                text.confirmed = text.confirmed.removeprefix(answer.text)
        if self._live.is_started:
            self._live.refresh()  # else it stands below the line for a moment
        line = _heading(answer.stream)
        line.append(f"{answer.start_us / 1e6:.1f}-{answer.stop_us / 1e6:.1f} s  ", style="dim")
        line.append(f"+{answer.wait_s:.2f} s  ", style="green")
        self._console.print(line + Text(answer.text.strip()), soft_wrap=True)

    def _show(self, stream: str, shown: Shown) -> None:
        with self._lock:
            self._under_way.setdefault(stream, AnswerText()).add(shown)

    def _drawn(self) -> Group:
        with self._lock:
            return Group(
                *(
                    _heading(stream) + _begun(text)
                    for stream, text in self._under_way.items()
                    if text.confirmed or text.preview
                )
            )


def output_of(form: OutputForm | None) -> TextLines | JsonLines:
    """Where no form is asked for, text on a terminal and JSON elsewhere."""
    console = Console(file=terminal().out, highlight=False)
    if form is None:
        form = OutputForm.TEXT if console.is_terminal else OutputForm.JSONL
    return TextLines(console) if form is OutputForm.TEXT else JsonLines()


def _begun(text: AnswerText) -> Text:
    drawn = text.__rich__()
    return drawn[len(drawn.plain) - len(drawn.plain.lstrip()) :]  # as it is printed at its end


def _heading(stream: str) -> Text:
    return Text().append(f"{stream}  ", style="bold")
