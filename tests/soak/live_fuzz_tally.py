"""What the clients of a live fuzz sent and were told, together, and what must not have been."""

import threading
from collections import Counter, deque
from dataclasses import dataclass, field

MAX_TOKENS_KEPT = 32
"""Of one tenant."""


@dataclass
class Tally:
    """Counts of what was sent and said. Its methods may be called from any thread."""

    sent: Counter[str] = field(default_factory=Counter)
    said: Counter[str] = field(default_factory=Counter)
    found: dict[str, str] = field(default_factory=dict)
    """Each finding, with how to see it again."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _tokens: dict[str, deque[str]] = field(default_factory=dict)

    @property
    def num_sent(self) -> int:
        """All messages."""
        return self.sent.total()

    def count_sent(self, kind: str) -> None:
        with self._lock:
            self.sent[kind] += 1

    def count_said(self, what: str) -> None:
        with self._lock:
            self.said[what] += 1

    def find(self, what: str, where: str) -> None:
        """Note something that must not be; one of a kind is enough."""
        with self._lock:
            self.found.setdefault(what[:80], f"{what}\n    {where}")

    def keep_token(self, key: str, token: str) -> None:
        with self._lock:
            self._tokens.setdefault(key, deque(maxlen=MAX_TOKENS_KEPT)).append(token)

    def tokens(self, key: str, *, of_others: bool) -> list[str]:
        """Those of cameras of this key, or of all others; most have ended."""
        with self._lock:
            kept = {each: list(tokens) for each, tokens in self._tokens.items()}
        if not of_others:
            return kept.get(key, [])
        return [token for each, tokens in kept.items() if each != key for token in tokens]
