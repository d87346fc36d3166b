"""Prints an answer as it comes: confirmed text bright, previews dim."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from headstart.answers.preview import Confirmed, Preview, Retracted, Shown


class AnswerScreen:
    """Shows confirmed text and previews; only confirmed text where the output is no terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self.confirmed, self.preview = "", ""

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
        match shown:
            case Preview(text=text):
                self.preview += text
            case Retracted():
                self.preview = ""
            case Confirmed(text=text):
                self.confirmed += text
                continues = self.preview.startswith(text)
                self.preview = self.preview[len(text) :] if continues else ""
        if self._live is not None:
            shown_text = Text(self.confirmed)
            shown_text.append(self.preview, style="dim")
            self._live.update(shown_text, refresh=True)
        elif isinstance(shown, Confirmed):
            self._console.print(shown.text, end="", markup=False, highlight=False)
