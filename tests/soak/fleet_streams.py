"""Streams that ask about one window after the other, through a router that may lose a server."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

import httpx

from rig.servers import CHAT, asking, from_memory
from rig.serving import Clip
from tests.soak.fleet_servers import SERVED_BY

MAX_TOKENS = 64
PAUSE_S = 0.5
"""Before a stream asks again."""
LATEST_S = 120.0
"""After this time a question is lost."""

Subject = tuple[str, str]
"""A clip's name and a question."""


@dataclass(frozen=True)
class Answered:
    """One answer."""

    number: int
    """Of the question about its window: the first, or one about a window that was asked about."""
    text: str
    server: str
    accepted: int
    """Tokens of memory's drafts."""
    prompt_tokens: int
    cached_tokens: int
    wait_s: float
    has_moved: bool
    """Whether another server answered the stream's last question."""


@dataclass(frozen=True)
class Asked:
    """One question, and what became of it."""

    asked_s: float
    answer: Answered | None
    """None if it was lost."""
    is_wrong: bool
    repeats: Counter[str]
    """Why it was asked again, and how often."""


def figures(asked: Sequence[Asked]) -> dict[str, Any]:
    """As they are kept."""
    answers = [each.answer for each in asked if each.answer]
    moved = [answer for answer in answers if answer.has_moved]
    stayed = [answer for answer in answers if not answer.has_moved]
    again = [answer for answer in answers if answer.number]
    waits_s = [answer.wait_s for answer in answers]
    return {
        "asked": len(asked),
        "answered": len(answers),
        "wrong": sum(each.is_wrong for each in asked),
        "lost": len(asked) - len(answers),
        "asked_again": dict(sum((each.repeats for each in asked), Counter())),
        "answers_after_a_move": len(moved),
        "accepted_tokens_an_answer": _mean(answers, lambda each: each.accepted),
        "accepted_tokens_after_a_move": _mean(moved, lambda each: each.accepted),
        "accepted_tokens_without_a_move": _mean(stayed, lambda each: each.accepted),
        "answers_memory_helped": _mean(answers, lambda each: each.accepted > 0),
        "cached_share_of_a_second_question": _mean(
            again, lambda each: each.cached_tokens / each.prompt_tokens
        ),
        "median_wait_s": round(median(waits_s), 3) if waits_s else None,
    }


def _mean(answers: Sequence[Answered], figure: Callable[[Answered], float]) -> float | None:
    return round(fmean(figure(each) for each in answers), 3) if answers else None


def question_about(clip: Clip, question: str) -> dict[str, Any]:
    """A chat request of a stream."""
    return {**asking(clip.video_url, question, max_tokens=MAX_TOKENS), "headstart": {}}


def answered(reply: httpx.Response, number: int, last_server: str, wait_s: float) -> Answered:
    """What a reply says."""
    answer = reply.json()
    _, accepted = from_memory(answer)
    server = reply.headers.get(SERVED_BY, "")
    return Answered(
        number,
        answer["choices"][0]["message"]["content"],
        server,
        accepted,
        answer["usage"]["prompt_tokens"],
        answer["headstart"]["cached_tokens"],
        wait_s,
        has_moved=bool(last_server) and server != last_server,
    )


class Stream(threading.Thread):
    """One camera: a window every few seconds, and all its questions about each, one by one."""

    def __init__(
        self,
        name: str,
        router: str,
        clips: Sequence[Clip],
        questions: Sequence[str],
        expected: Mapping[Subject, str],
        first_s: float,
        every_s: float,
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._router, self._clips, self._questions = router, clips, questions
        self._expected = expected
        self._first_s, self._every_s = first_s, every_s
        self._server = ""
        self.asked: list[Asked] = []
        self.stopping = threading.Event()

    def run(self) -> None:
        """Until it is told to stop."""
        headers = {"X-Session-ID": self.name, "Authorization": f"Bearer {self.name}"}
        with httpx.Client(trust_env=False, headers=headers, timeout=LATEST_S) as client:
            self.stopping.wait(self._first_s)
            due_s = time.monotonic()
            window = 0
            while not self.stopping.is_set():
                clip = self._clips[window % len(self._clips)]
                for number, question in enumerate(self._questions):
                    self._ask(client, clip, number, question)
                window += 1
                due_s += self._every_s
                self.stopping.wait(max(0.0, due_s - time.monotonic()))

    def _ask(self, client: httpx.Client, clip: Clip, number: int, question: str) -> None:
        begun_s, repeats = time.monotonic(), Counter[str]()
        body = question_about(clip, question)
        answer = None
        while time.monotonic() - begun_s < LATEST_S:
            try:
                reply = client.post(f"{self._router}{CHAT}", json=body)
            except httpx.TransportError as error:
                repeats[type(error).__name__] += 1
            else:
                if reply.status_code == 200:
                    answer = answered(reply, number, self._server, time.monotonic() - begun_s)
                    self._server = answer.server
                    break
                repeats[str(reply.status_code)] += 1
            time.sleep(PAUSE_S)
        is_wrong = answer is not None and answer.text != self._expected[clip.name, question]
        self.asked.append(Asked(begun_s, answer, is_wrong, repeats))
