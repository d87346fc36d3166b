"""Live cameras over sockets beside bare vLLM: equal answers, and sooner?

    python -m benchmarks.serve_live TARGET --cameras 8 --minutes 10

Each camera shows its own held-out drive of the lab in tumbling windows, with a standing question.
Every two seconds (`--every`) the window of one of them ends, so a window has twice as many seconds
as there are cameras. The same frames of the same windows are shown to `headstart serve`, over live
sockets, and to vLLM's own server, as a video of JPEGs that is sent with the window's last frame.
Both servers are started once; one is used at a time, in rounds that alternate, while the other
idles. Waits count from the sending of the last frame to the last word.

Prints a table, then one line of JSON. Fails where a promise is broken: an answer that differs or is
lost, a camera that is left, memory that grows. Never for its speed. The same cameras beside clients
that abuse the server: `tests.soak.live_beside_abusers`.
"""

from typing import Any

from rig.leftovers import Footprint, leftovers
from rig.live_load import Answers, over_http, over_sockets
from rig.live_rounds import (
    ENGINE,
    KEY,
    OPERATOR_KEY,
    SETTINGS,
    Equality,
    Plan,
    measure_from_command_line,
    note,
    ratio,
    show,
    spread,
)
from rig.server_memory import ServerMemory
from rig.serving import Workspace, running

QUANTILES = ("p50", "p95")
FATES = ("asked", "skipped", "dropped", "unread", "lost")


def compare(plan: Plan, here: Workspace) -> tuple[dict[str, Any], list[str]]:
    """The figures, and the promises that were broken."""
    films = plan.films(plan.num_rounds)
    plain, ours = here.start_plain(**ENGINE), here.start_ours(**SETTINGS, vllm=ENGINE)
    bare, live, rounds = Answers(), Answers(), []
    with running(plain, "/health"), running(ours):
        over_http(plain, plan.warmup(films))
        over_sockets(ours, KEY, plan.warmup(films))
        memory, before = ServerMemory(ours), Footprint.of(ours)
        for number in range(plan.num_rounds):
            shown = plan.round(films, number)
            # A B, then B A: what changes with time changes both.
            if number % 2 == 0:
                theirs = over_http(plain, shown)
            with memory.sampled():
                answers = over_sockets(ours, KEY, shown)
            if number % 2 == 1:
                theirs = over_http(plain, shown)
            bare.add(theirs)
            live.add(answers)
            rounds.append(beside(theirs, answers))
            note(f"round {number + 1}: {rounds[-1]}")
        faults = [*memory.faults(), *leftovers(ours, OPERATOR_KEY, before)]
    equality = Equality.of(live.texts, bare.texts)
    faults += [*bare.faults, *live.faults, *equality.faults]
    figures = {
        **plan.figures(),
        **equality.figures(),
        **beside(bare, live),
        "by_round": rounds,
        **{f"ratio_{p}_range": spread([one[f"ratio_{p}"] for one in rounds]) for p in QUANTILES},
        "windows": {fate: live.counts[fate] for fate in FATES},
        "memory": memory.figures(),
    }
    rows = [
        (p, *(figures[who].get(f"{p}_ms") for who in ("bare", "headstart")), figures[f"ratio_{p}"],
         figures[f"ratio_{p}_range"])
        for p in QUANTILES
    ]  # fmt: skip
    show(("", "bare vLLM, ms", "headstart, ms", "ratio", "by round: least, median, most"), rows)
    return figures, faults


def beside(bare: Answers, live: Answers) -> dict[str, Any]:
    """The waits of both, and bare vLLM's over the live ones."""
    told = {"bare": bare.waits.told(), "headstart": live.waits.told()}
    ratios = {
        f"ratio_{p}": ratio(*(told[who].get(f"{p}_ms") for who in ("bare", "headstart")))
        for p in QUANTILES
    }
    return {**told, **ratios}


if __name__ == "__main__":
    measure_from_command_line(
        (__doc__ or "").splitlines()[0], compare, Plan(8, 2.0, 4, 1), minutes=10.0
    )
