"""An answer on a terminal as it comes: what is certain bright, what is drafted dim."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from headstart.drafting.preview import Confirmed, Preview, Retracted, Shown


class AnswerScreen:
    """Where the words appear. Elsewhere than on a terminal only the certain ones do."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self.certain, self.changing = "", ""

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
        """Change what is to be read."""
        match shown:
            case Preview(text=text):
                self.changing += text
            case Retracted():
                self.changing = ""
            case Confirmed(text=text):
                self.certain += text
                goes_on = self.changing.startswith(text)
                self.changing = self.changing[len(text) :] if goes_on else ""
        if self._live is not None:
            reading = Text(self.certain)
            reading.append(self.changing, style="dim")
            self._live.update(reading, refresh=True)
        elif isinstance(shown, Confirmed):
            self._console.print(shown.text, end="", markup=False, highlight=False)
