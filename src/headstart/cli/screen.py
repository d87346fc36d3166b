"""Prints an answer as it comes: confirmed text bright, previews dim."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from headstart.answers.preview import Confirmed, Preview, Retracted, Shown


class AnswerText:
    """The two texts that a reader keeps: the certain one, and the previewed one after it."""

    def __init__(self) -> None:
        self.confirmed, self.preview = "", ""

    def add(self, shown: Shown) -> None:
        """Update both."""
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
        text = Text(self.confirmed)
        text.append(self.preview, style="dim")
        return text


class AnswerScreen:
    """Shows confirmed text and previews; only confirmed text where the output is no terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self.text = AnswerText()

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()
        else:
            self._console.print()

    def show(self, shown: Shown) -> None:
        """Update what is shown."""
        self.text.add(shown)
        if self._live is not None:
            self._live.update(self.text, refresh=True)
        elif isinstance(shown, Confirmed):
            self._console.print(shown.text, end="", markup=False, highlight=False)
