"""The waits of cameras that behave, without and with a client of another tenant that does not.

    python -m tests.soak.live_beside_abusers TARGET --cameras 4 --minutes 3 --rounds 3

The cameras of `benchmarks.serve_live` are shown to `headstart serve` alone, in rounds without and
with a client of another tenant: one that behaves, is killed, freezes, sends rubbish, sends too
fast, or uses one name twice. Afterwards vLLM's own server is asked about all their windows.

Prints a table, then one line of JSON. Fails where an answer differs or is lost, a camera is left,
or memory grows.
"""

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rig.film import Pictures
from rig.leftovers import Footprint, leftovers
from rig.live_load import Answers, over_http_at_once, over_sockets
from rig.live_rounds import (
    ABUSER_KEY,
    ENGINE,
    KEY,
    OPERATOR_KEY,
    QUESTION,
    SETTINGS,
    Equality,
    Plan,
    measure_from_command_line,
    note,
    ratio,
    show,
)
from rig.server_memory import ServerMemory
from rig.servers import metric, wait_until
from rig.serving import Server, Workspace, running
from tests.soak.live_abuser import ABUSES

END_S = 90.0
"""How long an abuser may take to end, and the cameras that it leaves behind."""
CAMERAS = "headstart_live_cameras"


@dataclass
class Abused:
    """What the cameras were told without an abuser and with it."""

    without: Answers = field(default_factory=Answers)
    beside: Answers = field(default_factory=Answers)
    ratios: list[float | None] = field(default_factory=list)
    """Of the 95th percentiles, round by round."""
    done: list[dict[str, int]] = field(default_factory=list)
    """By the abuser, round by round."""

    def add(self, without: Answers, beside: Answers, done: dict[str, int]) -> None:
        """Add a pair of rounds."""
        p95s = (answers.waits.told().get("p95_ms") for answers in (beside, without))
        self.ratios.append(ratio(*p95s))
        self.without.add(without)
        self.beside.add(beside)
        self.done.append(done)

    def figures(self) -> dict[str, Any]:
        """For a result."""
        told = {"without": self.without.waits.told(), "with": self.beside.waits.told()}
        return {
            **told,
            "windows_without": dict(self.without.counts),
            "windows_with": dict(self.beside.counts),
            "ratio_p95": ratio(*(told[which].get("p95_ms") for which in ("with", "without"))),
            "ratio_p95_by_round": self.ratios,
            "abuser": self.done,
        }


def abuse(plan: Plan, here: Workspace) -> tuple[dict[str, Any], list[str]]:
    """The figures, and the promises that were broken."""
    num_rounds = 2 * plan.num_rounds * len(ABUSES)
    films = plan.films(num_rounds)
    rounds = (plan.round(films, number) for number in range(num_rounds))
    abuses = {name: Abused() for name in ABUSES}
    with running(here.start_ours(**SETTINGS, vllm=ENGINE)) as ours:
        over_sockets(ours, KEY, plan.warmup(films))
        operator = ours.client(OPERATOR_KEY)
        memory, before = ServerMemory(ours), Footprint.of(ours)
        with memory.sampled():
            for name, abused in abuses.items():
                for number in range(plan.num_rounds):
                    if number % 2 == 0:
                        without = over_sockets(ours, KEY, next(rounds))
                    with abuser(name, ours, ABUSER_KEY, films[0].windows[0], plan.window_s) as done:
                        beside = over_sockets(ours, KEY, next(rounds))
                    wait_until(lambda: metric(operator, CAMERAS) == 0, CAMERAS, END_S)
                    if number % 2 == 1:
                        without = over_sockets(ours, KEY, next(rounds))
                    abused.add(without, beside, done)
                    note(f"{name}, round {number + 1}: ratio {abused.ratios[-1]}, {done}")
        faults = [*memory.faults(), *leftovers(ours, OPERATOR_KEY, before)]
    answers = Answers()
    for abused in abuses.values():
        answers.add(abused.without)
        answers.add(abused.beside)
    with running(here.start_plain(**ENGINE), "/health") as plain:
        bare = over_http_at_once(plain, films, QUESTION, sorted(answers.texts))
    equality = Equality.of(answers.texts, bare)
    figures = {
        **plan.figures(),
        **equality.figures(),
        "abuses": {name: abused.figures() for name, abused in abuses.items()},
        "memory": memory.figures(),
    }
    rows = [
        (name, *(one[which].get("p95_ms") for which in ("without", "with")), one["ratio_p95"],
         one["ratio_p95_by_round"])
        for name, one in figures["abuses"].items()
    ]  # fmt: skip
    show(("beside one that", "p95 without, ms", "p95 with, ms", "ratio", "by round"), rows)
    return figures, [*faults, *answers.faults, *equality.faults]


@contextlib.contextmanager
def abuser(
    name: str, server: Server, key: str, pictures: Pictures, window_s: float
) -> Iterator[dict[str, int]]:
    """A process that abuses the server until the block is left, and says then what it did."""
    folder = server.log.parent / "abuser"
    folder.mkdir(exist_ok=True)
    for number, picture in enumerate(pictures):
        (folder / f"{number}.jpg").write_bytes(picture)
    command = [name, server.url, str(folder), str(window_s)]
    done: dict[str, int] = {}
    with subprocess.Popen(
        [sys.executable, "-m", "tests.soak.live_abuser", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{key}\n")  # no argument: those are for all to see
        process.stdin.flush()
        if process.stdout.readline() != "under way\n":
            raise RuntimeError(f"the abuser {name!r} did not begin; its error is above")
        try:
            yield done
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                told, _ = process.communicate(timeout=END_S)
            finally:
                process.kill()
        done |= json.loads(told)


if __name__ == "__main__":
    measure_from_command_line(
        (__doc__ or "").splitlines()[0], abuse, Plan(4, 2.0, 3, 1), minutes=3.0
    )
