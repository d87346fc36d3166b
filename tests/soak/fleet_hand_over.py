"""Memories of streams, taken from one server to another over HTTP."""

import time
from collections.abc import Sequence
from statistics import fmean, median
from typing import Any

import httpx

from rig.servers import CHAT, Server
from rig.serving import QUESTIONS, Clip
from tests.soak.fleet_streams import Answered, answered, question_about

MEMORY = "/v1/headstart/memory"
NUM_BEFORE = 4
"""Windows that a stream asks about before it moves."""


def hand_over(old: Server, new: Server, clips: Sequence[Clip], num_streams: int) -> dict[str, Any]:
    """Ask on one server, take the memory along, and ask about the next window on the other.

    The next window is also asked about on the old server, as if the stream had stayed, and on the
    new one by a stream that brings nothing.
    """
    before, moved, cold, sizes, times_ms = [], [], [], [], []
    for number in range(num_streams):
        name = f"travelling-{number}"
        here, there = (server.client("travelling") for server in (old, new))
        question = QUESTIONS[number % len(QUESTIONS)]

        def ask(
            client: httpx.Client, stream: str, window: int, question: str = question
        ) -> Answered:
            body = question_about(clips[window], question)
            reply = client.post(CHAT, json=body, headers={"X-Session-ID": stream})
            return answered(reply.raise_for_status(), 0, "", 0.0)

        for window in range(NUM_BEFORE):
            ask(here, name, window)
        begun_s = time.monotonic()
        sealed = here.get(f"{MEMORY}/export", params={"stream": name}).raise_for_status().content
        taken = there.post(f"{MEMORY}/import", params={"stream": name}, content=sealed)
        times_ms.append((time.monotonic() - begun_s) * 1e3)
        taken.raise_for_status()
        sizes.append(len(sealed))
        before.append(ask(here, name, NUM_BEFORE))
        moved.append(ask(there, name, NUM_BEFORE))
        cold.append(ask(there, f"cold-{number}", NUM_BEFORE))
    return {
        "streams": num_streams,
        "answers_a_stream": NUM_BEFORE,
        "bytes_a_stream": round(fmean(sizes)),
        "median_ms_a_stream": round(median(times_ms), 1),
        "all_ms": round(sum(times_ms), 1),
        "accepted_tokens_where_it_was": round(fmean(each.accepted for each in before), 2),
        "accepted_tokens_after_the_move": round(fmean(each.accepted for each in moved), 2),
        "accepted_tokens_without_memory": round(fmean(each.accepted for each in cold), 2),
        "same_text": sum(
            one.text == two.text == three.text
            for one, two, three in zip(before, moved, cold, strict=True)
        ),
    }
