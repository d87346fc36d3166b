"""A long fuzz of the live protocol over real sockets: does anything break, leak or hang?

    headstart lab tiny build/tiny
    python -m tests.soak.live_fuzz build/tiny/target --messages 20000

Clients of two tenants send valid values of every field of every message, and rubbish; pictures and
events that can be read, and others; messages in and out of order; questions by the dozen; tokens of
their own, old ones and those of the other tenant; frames that are no WebSocket's. They leave at
every moment: politely, by a close, by a reset, in the middle of a frame. Beside them a camera of a
third tenant shows its windows, and all its answers must be right.

Prints how many messages of each kind were sent, and what the server said, as one line of JSON last.
Fails over an error of the server's own (5xx, 1011), a secret in a message, a silence, a traceback
in the log, an answer that differs, and over cameras, blocks, threads, processes or memory left.
`--seed` makes the same messages again; a finding names the client's seed and its connection.
"""

import argparse
import contextlib
import json
import logging
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rig.leftovers import Footprint, leftovers
from rig.live_camera import WINDOW_S, LiveCamera, jpegs, said_over_http
from rig.server_memory import ServerMemory
from rig.servers import Server
from rig.serving import Workspace, running
from tests.soak.live_fuzz_client import PATIENCE_S, FuzzClient
from tests.soak.live_fuzz_tally import Tally

KEYS, NEIGHBOUR_KEY, OPERATOR_KEY = ("key-east", "key-west"), "key-neighbour", "key-operator"
CLIENTS_OF_TENANT = 4
NUM_WINDOWS = 3
NUM_FRAMES = 8
NUM_WARMUP = 300
"""Messages before threads and processes are counted for the first time."""
PROGRESS_S = 10.0
SETTINGS: dict[str, dict[str, Any]] = {
    "tenants": {"east": [KEYS[0]], "west": [KEYS[1]], "neighbour": [NEIGHBOUR_KEY]},
    "operators": {"operator": [OPERATOR_KEY]},
    "limits": {"live_resume_s": 1.0},  # broken cameras make room soon
    "vllm": {"mm_processor_cache_gb": 0.0625},
}


@dataclass
class Neighbour:
    """A camera that behaves, and knows what its answers must be."""

    server: Server
    key: str
    num_answers: int = 0
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._shown = [jpegs(NUM_FRAMES, seed=1000 + number) for number in range(NUM_WINDOWS)]
        self._right = [said_over_http(self.server, pictures) for pictures in self._shown]

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Until the block is left; at least one window is asked about."""
        stop = threading.Event()
        with LiveCamera(self.server, self.key) as camera:
            camera.start(stream="neighbour")  # before there is no room left
            thread = threading.Thread(target=self._watch, args=(camera, stop), daemon=True)
            thread.start()
            try:
                yield
            finally:
                stop.set()
                thread.join(PATIENCE_S)
            if thread.is_alive():
                self.wrong.append(f"no answer for {PATIENCE_S:g} s")

    def _watch(self, camera: LiveCamera, stop: threading.Event) -> None:
        number = 0
        try:
            while not number or not stop.is_set():
                camera.show_window(self._shown[number % NUM_WINDOWS], number)
                answer = camera.wait_for("answer")
                camera.ack(answer)
                stop.wait(WINDOW_S)  # windows faster than the clock are lost
                right, number = self._right[number % NUM_WINDOWS], number + 1
                self.num_answers += 1
                if (answer["text"], answer["number"]) != (right, number):
                    self.wrong.append(f"window {number}: {answer}, not {right!r}")
        except Exception as error:
            self.wrong.append(f"after {number} answers: {error!r}")


def fuzz(
    server: Server,
    keys: Sequence[str],
    num_messages: int,
    seed: int,
    note: Callable[[str], None] = lambda what: None,
) -> Tally:
    """Send so many messages, from several connections at a time of each of these keys."""
    tally = Tally()
    clients = [
        FuzzClient(server, keys[number % len(keys)], seed * 1000 + number, tally)
        for number in range(CLIENTS_OF_TENANT * len(keys))
    ]
    threads = [
        threading.Thread(target=client.run, args=(num_messages,), daemon=True) for client in clients
    ]
    for thread in threads:
        thread.start()
    told_s = time.monotonic()
    for thread in threads:
        while thread.is_alive():
            thread.join(1.0)
            if time.monotonic() > told_s + PROGRESS_S:
                told_s = time.monotonic()
                note(f"{tally.num_sent} of {num_messages} messages, {len(tally.found)} found")
    return tally


def main() -> None:
    """Fuzz and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", type=Path, help="a Video-LLaVA; an untrained one is quick")
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    # The clients' library logs what it cannot make sense of after a connection was cut.
    logging.getLogger("websockets").setLevel(logging.CRITICAL)

    def note(what: str) -> None:
        print(what, file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="headstart-bench-") as made:
        here = Workspace(Path(made), options.target.absolute(), None, Path(made), "float32")
        with running(here.start_ours(**SETTINGS)) as server:
            server.key = NEIGHBOUR_KEY
            neighbour, memory = Neighbour(server, NEIGHBOUR_KEY), ServerMemory(server)
            warmup = fuzz(server, (*KEYS, NEIGHBOUR_KEY), NUM_WARMUP, options.seed - 1)
            before = replace(Footprint.of(server), num_tracebacks=0)  # nor may it have left one
            began_s = time.monotonic()
            with memory.sampled(), neighbour.watching():
                tally = fuzz(server, KEYS, options.messages, options.seed, note)
            took_s = time.monotonic() - began_s
            left = list(leftovers(server, OPERATOR_KEY, before))
            after = None if server.process.poll() is not None else Footprint.of(server)
    found = {**warmup.found, **tally.found}
    faults = [*found.values(), *neighbour.wrong, *left, *memory.faults()]
    figures = {
        "messages": tally.num_sent,
        "seed": options.seed,
        "clients": CLIENTS_OF_TENANT * len(KEYS),
        "minutes": round(took_s / 60, 1),
        "sent": dict(tally.sent.most_common()),
        "said": dict(tally.said.most_common()),
        "found": len(found),
        "neighbour": {"answers": neighbour.num_answers, "wrong": len(neighbour.wrong)},
        "left": left,
        "before": vars(before),
        "after": None if after is None else vars(after),
        "memory": memory.figures(),
        "faults": faults,
    }
    print(json.dumps(figures))
    sys.exit("\n".join(faults) or None)


if __name__ == "__main__":
    main()
