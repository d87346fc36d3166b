"""Random schedules through our scheduler, each answer compared with vLLM's own scheduler.

    python -m tests.schedule_fuzz --drafted 500000 --seed 101 --slices 10 --parts build/schedules

Chunk sizes, budgets, aborts, preemption, prefix hits of every length, priorities, the longest
context, growing prompts, ways to stop, sliding windows, pictures, grammars, pools as small as vLLM
starts with, rehearsals; drafts right, wrong, hostile and late. No token may be another one, nothing
may be known of a request that is over, and none may wait when vLLM's own scheduler has long been
done. The last line is JSON. `tests/schedule_plans.py` makes the plans, `rig/schedule_harness.py`
plays them.
"""

import argparse
import gc
import json
import logging
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from vllm.v1.core.sched.scheduler import Scheduler

from headstart.engine.options import MAX_VERIFIED_TOKENS
from headstart.engine.prompt_pace import cuts_prompts
from headstart.errors import DraftingError
from rig.measurement import Measurement
from rig.schedule_engine import scheduler
from rig.schedule_harness import AnyPace, AnyRehearsals, Asked, Counts, Player, Said
from tests.request_tables import traces
from tests.schedule_plans import NUM_SPARE_BLOCKS, Plan, plan_of

MAX_STEPS = 6_000  # of one plan through vLLM's own scheduler: with fewer left it has come to a halt
MAX_SHOWN = 5  # findings, in the result
PATIENCE, PACED_PATIENCE = 2.0, 8.0
"""All requests of a plan, and each of them, end in so many times the steps that vLLM's own
scheduler takes."""
SPARE_STEPS = 60
"""And so many more: a few steps of vLLM's may be a few of a neighbour's prompt more."""


@dataclass
class Played:
    """What became of a plan's requests."""

    said: dict[str, Said]
    counts: Counts
    traces: list[str]
    """Where something is still known of them."""
    waiting: list[str]
    """Those that had not ended when time was up."""


@dataclass
class Result:
    """Sums over plans."""

    plans: int = 0
    answers: int = 0
    sampled_answers: int = 0
    refused_plans: int = 0
    plans_with: dict[str, int] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    differences: list[str] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)
    starved: list[str] = field(default_factory=list)
    not_ended_by_vllm: list[str] = field(default_factory=list)
    """Plans with which there is nothing to compare."""
    longest: dict[str, float] = field(default_factory=dict)
    """The largest share of the steps allowed that one took."""

    def took(self, kind: str, share: float) -> None:
        self.longest[kind] = max(self.longest.get(kind, 0.0), round(share, 3))

    @property
    def findings(self) -> list[str]:
        return self.differences + self.leaks + self.starved

    def add(self, counts: Counts) -> None:
        for name, value in vars(counts).items():
            setattr(self.counts, name, getattr(self.counts, name) + value)

    def told(self) -> dict[str, Any]:
        return {
            "drafted": self.counts.drafted,
            "accepted": self.counts.accepted,
            "drafted_with_prompt": self.counts.fused,
            "rehearsed": self.counts.rehearsed,
            "drafted_under_a_grammar": self.counts.constrained,
            "pictures_encoded": self.counts.encoded,
            "answers": self.answers,
            "sampled_answers": self.sampled_answers,
            "preemptions": self.counts.preemptions,
            "steps": self.counts.steps,
            "plans": self.plans,
            "plans_with": dict(sorted(self.plans_with.items())),
            "refused_plans": self.refused_plans,
            "not_ended_by_vllm": self.not_ended_by_vllm,
            "differences": len(self.differences),
            "leaks": len(self.leaks),
            "starved": len(self.starved),
            "longest_share_of_steps": dict(sorted(self.longest.items())),
            "first_findings": self.findings[:MAX_SHOWN],
        }


def play(
    plan: Plan,
    max_draft_tokens: int,
    max_steps: int = MAX_STEPS,
    player: Callable[[Scheduler, int], Player] = Player,
) -> Played:
    """What is said to a plan's requests; with no drafts, by vLLM's own scheduler."""
    with TemporaryDirectory() as directory:
        channel = directory if plan.has_channel and max_draft_tokens else None
        made = scheduler(max_draft_tokens, sources=plan.sources, channel=channel, **plan.engine)
        played = _play(plan, player(made, plan.num_in_flight), bool(max_draft_tokens), max_steps)
        if channel is not None:
            for socket in ("_drafts", "_asks", "_previews"):
                getattr(made._channel, socket).close()
    return played


def _play(plan: Plan, player: Player, is_ours: bool, max_steps: int) -> Played:
    if plan.is_paced and is_ours:
        cuts = cuts_prompts(player.scheduler.vllm_config)
        player.scheduler._paced_steps.pace = AnyPace(plan.seed, cuts_prompts=cuts)
    if plan.rehearsals and is_ours:
        player.scheduler._rehearsals = AnyRehearsals(plan.seed, player.scheduler)
    happenings: list[tuple[int, Callable[[], None]]] = []
    aborts: dict[int, list[str]] = {}
    everybody = (*plan.asked, *(plan.rehearsals if is_ours else ()))
    for asked in everybody:
        for number, turn in enumerate(asked.turns):
            happenings.append((turn.at, lambda a=asked, n=number: player.add(a, n)))
        if len(asked.turns) > 1:
            last = len(asked.turns)
            happenings.append((asked.turns[-1].at, lambda a=asked, n=last: player.add(a, n)))
        if asked.aborted_at is not None and asked.is_aborted_in_a_step:
            aborts.setdefault(asked.aborted_at, []).append(asked.name)
        elif asked.aborted_at is not None:
            happenings.append((asked.aborted_at, lambda a=asked: player.abort(a.name)))
        for at, draft in asked.late:
            happenings.append((at, lambda a=asked, d=draft: player.post(a.name, d)))
    happenings.sort(key=lambda happening: happening[0])
    for number in range(max_steps):
        while happenings and happenings[0][0] <= number:
            happenings.pop(0)[1]()
        if not happenings and not player.scheduler.requests and not player.in_flight:
            break
        ended = aborts.pop(number, [])
        player.step(lambda names=ended: list(map(player.abort, names)))
    waiting = list(player.scheduler.requests)
    player.step()  # vLLM tells its workers what has ended
    names = {asked.name for asked in everybody}
    if plan.rehearsals and is_ours:
        player.counts.rehearsed += player.scheduler._rehearsals.num_said
    return Played(player.said, player.counts, traces(player.scheduler, names), waiting)


def alone(plan: Plan) -> Plan:
    """The plan as vLLM's own scheduler may be asked to play it."""
    if not plan.is_by_priority:
        return plan
    # Short of blocks, and by priority, vLLM itself reads blocks nobody filled.
    return replace(plan, arguments={**plan.arguments, "enable_prefix_caching": False})


def compare(plan: Plan, result: Result) -> None:
    """Play a plan both ways and note what differs."""
    result.plans += 1
    if _is_refused(plan):
        result.refused_plans += 1
        return
    for kind in _kinds(plan):
        result.plans_with[kind] = result.plans_with.get(kind, 0) + 1
    try:
        expected = play(alone(plan), 0)
    except Exception:
        last = traceback.format_exc().strip().splitlines()[-3:]
        result.not_ended_by_vllm.append(f"seed {plan.seed}: {' '.join(last)}")
        return
    if expected.waiting:
        result.not_ended_by_vllm.append(f"seed {plan.seed}: {expected.waiting}")
        return
    patience = PACED_PATIENCE if plan.is_paced else PATIENCE
    max_steps = int(patience * expected.counts.steps) + SPARE_STEPS * (1 + len(plan.rehearsals))
    try:
        ours = play(plan, plan.max_draft_tokens, max_steps)
    except Exception:
        last = traceback.format_exc().strip().splitlines()[-3:]
        result.differences.append(f"seed {plan.seed}: our scheduler ended: {' '.join(last)}")
        return
    result.add(ours.counts)
    kind = "a plan, paced" if plan.is_paced else "a plan"
    result.took(kind, ours.counts.steps / max_steps)
    if ours.waiting:
        result.starved.append(f"seed {plan.seed}: {ours.waiting} after {max_steps} steps")
        return
    places = {place.split(".", 1)[-1] for place in expected.traces}  # which vLLM itself leaves
    leaks = [place for place in ours.traces if place.split(".", 1)[-1] not in places]
    if leaks:
        result.leaks.append(f"seed {plan.seed}: {leaks}")
    for asked in plan.asked:
        found, known = ours.said[asked.name], expected.said[asked.name]
        if asked.aborted_at is not None:
            same = all(
                a[: len(b)] == b[: len(a)] for a, b in zip(found.turns, known.turns, strict=False)
            )
        else:
            same = found == known
            result.answers += len(found.reasons)
            result.sampled_answers += any("seed" in turn.params for turn in asked.turns)
            _compare_wait(plan, asked, found, known, result)
        if not same:
            result.differences.append(f"seed {plan.seed}, {asked}: {found}, alone {known}")


def _compare_wait(plan: Plan, asked: Asked, found: Said, known: Said, result: Result) -> None:
    begun = asked.turns[-1].at
    most = PATIENCE * max(0, known.ended_at - begun) + SPARE_STEPS
    took = found.ended_at - begun
    result.took("a request, paced" if plan.is_paced else "a request", took / most)
    # Short of blocks a request waits for whoever came a step before it, in vLLM as here, and by how
    # much is chance. Held back at random, one that others overtake waits for all of them.
    is_short = plan.num_spare_blocks < NUM_SPARE_BLOCKS
    if took > most and not plan.is_paced and not is_short:
        result.starved.append(
            f"seed {plan.seed}, {asked.name}: {took} steps, alone {known.ended_at - begun}"
        )


def _is_refused(plan: Plan) -> bool:
    if plan.num_in_flight == 1 and plan.max_draft_tokens <= MAX_VERIFIED_TOKENS:
        return False  # if it were, playing would fail
    try:
        scheduler(plan.max_draft_tokens, **plan.engine)
    except DraftingError:
        return True
    return False


def _kinds(plan: Plan) -> list[str]:
    """What is in a plan, for the result."""
    kinds: Mapping[str, bool] = {
        "windows beside full attention": 0 in plan.windows and len(plan.windows) > 1,
        "windows alone": 0 not in plan.windows,
        "the least pool": not plan.num_spare_blocks,
        "pictures": bool(plan.longest_picture),
        "pictures in one piece": "disable_chunked_mm_input" in plan.arguments,
        "prompts in one piece": "enable_chunked_prefill" in plan.arguments,
        "priorities": plan.is_by_priority,
        "grammars": plan.has("structured_outputs"),
        "aborts in a step": any(
            one.aborted_at is not None and one.is_aborted_in_a_step for one in plan.asked
        ),
        "paced prompts": plan.is_paced,
        "a channel": plan.has_channel,
        "rehearsals": bool(plan.rehearsals),
    }
    return [kind for kind, is_there in kinds.items() if is_there]


def fuzz(num_drafted: int, seed: int, on_progress: Callable[[Result], None]) -> Result:
    """Plans until so many tokens were drafted, or until it is interrupted."""
    result = Result()
    try:
        while result.counts.drafted < num_drafted and len(result.findings) < MAX_SHOWN:
            compare(plan_of(seed * 1_000_000 + result.plans), result)
            on_progress(result)
    except KeyboardInterrupt:
        result.plans -= 1  # the last one is not compared
    return result


def summed(slices: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What several runs told, as one."""
    whole: dict[str, Any] = {"seeds": [one["seed"] for one in slices]}
    for name, value in slices[0].items():
        values = [one[name] for one in slices]
        if isinstance(value, list):
            whole[name] = [each for one in values for each in one]
        elif isinstance(value, Mapping):
            join = max if name == "longest_share_of_steps" else sum
            kinds = sorted({kind for each in values for kind in each})
            whole[name] = {kind: join(each.get(kind, 0) for each in values) for kind in kinds}
        elif name != "seed":
            whole[name] = round(sum(values), 1)
    return whole


def _slice(num_drafted: int, seed: int) -> dict[str, Any]:
    begun_s = shown_s = time.monotonic()

    def on_progress(result: Result) -> None:
        nonlocal shown_s
        if time.monotonic() - shown_s > 10:
            shown_s = time.monotonic()
            print(f"{result.counts.drafted} drafted, {result.answers} answers", file=sys.stderr)

    result = fuzz(num_drafted, seed, on_progress)
    for finding in result.findings:
        print(finding)
    return {**result.told(), "seed": seed, "seconds": round(time.monotonic() - begun_s, 1)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--drafted", type=int, default=100_000, help="tokens to draft, in a slice")
    parser.add_argument("--seed", type=int, default=1, help="of the first slice")
    parser.add_argument("--slices", type=int, default=1, help="runs, each with a seed of its own")
    parser.add_argument("--parts", type=Path, help="directory of slices, none of which runs twice")
    parser.add_argument("--output", type=Path, help="directory in which the result is kept")
    options = parser.parse_args()
    logging.getLogger("vllm").setLevel(logging.ERROR)
    gc.freeze()  # or half a million things of vLLM's and torch's are looked at again and again
    slices = []
    for seed in range(options.seed, options.seed + options.slices):
        part = None if options.parts is None else options.parts / f"{seed}.json"
        if part is not None and part.is_file():
            slices.append(json.loads(part.read_text()))
            continue
        slices.append(_slice(options.drafted, seed))
        if part is not None:
            part.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(json.dumps(slices[-1]) + "\n")
    told = summed(slices)
    command = ["python", "-m", "tests.schedule_fuzz", *sys.argv[1:]]
    if options.output is not None:
        Measurement("schedule_fuzz", command, told).write(options.output)
    print(json.dumps(told))
    return bool(told["first_findings"])


if __name__ == "__main__":
    sys.exit(main())
