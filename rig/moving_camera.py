"""A live camera's program that outlives its server, and the frames it keeps until then."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from headstart.errors import LiveError
from headstart_client.live_client import LiveClient
from rig.film import Film
from rig.live_load import MAX_TOKENS
from rig.live_rounds import QUESTION

PATIENCE_S = 120.0


@dataclass
class MovingCamera:
    """It connects again when its server ends, and shows the windows again that have no answer."""

    name: str
    film: Film
    window_s: float
    address: Callable[[], str]
    """Where to connect now."""
    key: str = ""
    answers: dict[int, str] = field(default_factory=dict)
    num_answers: Counter[int] = field(default_factory=Counter)
    num_moves: int = 0
    longest_gap_s: float = 0.0
    """From the end of one connection to the first answer over the next."""

    @property
    def num_doubled(self) -> int:
        """Windows with more than one answer."""
        return sum(number > 1 for number in self.num_answers.values())

    def run(self, begun_s: float) -> None:
        """Show the whole film; returns when every window has an answer, or nobody gives one."""
        deadline_s = time.monotonic() + PATIENCE_S + len(self.film.windows) * self.window_s
        while len(self.answers) < len(self.film.windows) and time.monotonic() < deadline_s:
            try:
                self._show(begun_s)
                self.num_moves += len(self.answers) < len(self.film.windows)
            except (LiveError, OSError):
                time.sleep(0.2)

    def _show(self, begun_s: float) -> None:
        """Show what has no answer, one window right after the other, on a clock of its own."""
        unanswered = sorted(set(range(len(self.film.windows))) - self.answers.keys())
        connected_s = time.monotonic()
        with LiveClient(
            self.address(),
            stream=self.name,
            key=self.key,
            window_s=self.window_s,
            question=QUESTION,
            max_tokens=MAX_TOKENS,
        ) as live:
            ended = threading.Event()

            def read() -> None:
                try:
                    for answer in live:
                        window = unanswered[round(answer.start_us / 1e6 / self.window_s)]
                        if self.num_moves and answer.number == 1:
                            gap_s = time.monotonic() - connected_s
                            self.longest_gap_s = max(self.longest_gap_s, gap_s)
                        self.answers[window] = answer.text
                        self.num_answers[window] += 1
                except LiveError:
                    pass  # It is told to go: what has no answer is shown again.
                finally:
                    ended.set()

            reader = threading.Thread(target=read)
            reader.start()
            for place, window in enumerate(unanswered):
                if not self._send(live, window, place, begun_s, ended):
                    ended.wait(PATIENCE_S)  # for the answers under way
                    break
            else:
                live.end()
                reader.join()
        reader.join()

    def _send(
        self, live: LiveClient, window: int, place: int, begun_s: float, ended: threading.Event
    ) -> bool:
        """The frames of a window at their times, or at once where those are over."""
        pictures = self.film.windows[window]
        for slot, picture in enumerate(pictures):
            share = slot / len(pictures)
            due_s = begun_s + (window + share) * self.window_s
            if ended.wait(max(0.0, due_s - time.monotonic())):
                return False
            time_us = round((place + share) * self.window_s * 1e6)
            if not live.send(picture, time_us):
                return False
        return True
