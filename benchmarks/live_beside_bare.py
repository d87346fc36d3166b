"""Live cameras on `headstart serve` beside the same windows on vLLM's own server, in turn."""

from typing import Any

from benchmarks.leftovers import Footprint, leftovers
from benchmarks.live_load import Answers, over_http, over_sockets
from benchmarks.live_rounds import (
    ENGINE,
    KEY,
    OPERATOR_KEY,
    SETTINGS,
    Equality,
    Plan,
    note,
    ratio,
    show,
    spread,
)
from benchmarks.server_memory import ServerMemory
from benchmarks.serving import Workspace, running

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
