"""What an answer waits for around each pass of the target, and what is done while it computes.

    python -m benchmarks.engine_waits lab/headstart_lab/pair/target \
        --bridge lab/headstart_lab/pair/bridge --workload rotating --method memory --method bridge

One camera of the lab asks bare vLLM and each method in turn. The scheduler's calls are timed in the
engine's own process, by a drafter that drafts nothing. All times are wall time in milliseconds,
medians over the answers after the warm-up. Prints a table, and one line of JSON last.
"""

import argparse
import contextlib
import json
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from headstart.bench.asker import Asker, FrameByFrame, WholeClip
from headstart.bench.methods import Method, Rig
from headstart.bench.result import BARE
from headstart.bench.run import REST_S
from headstart.bench.sample import Sample
from headstart.bench.workloads import Workload, lab_workloads
from headstart.engine.headstart import Headstart

FILE = "HEADSTART_WAITS"
"""The variable that names the file to which an engine's process writes."""
TIMER = "benchmarks.engine_waits:Timer"
LAY_OUT, DRAFT, MEANWHILE, TAKE = "lay out", "draft", "meanwhile", "take"
ENGINE = {
    "dtype": "float32",
    "enforce_eager": True,
    "kv_cache_memory_bytes": 2**29,
    "use_tqdm_on_load": False,
}


class Call(NamedTuple):
    """One call in the engine's process, on the clock that all processes share."""

    name: str
    begun_s: float
    ended_s: float

    @property
    def ms(self) -> float:
        """How long it took."""
        return 1e3 * (self.ended_s - self.begun_s)


class Timer:
    """A drafter that drafts nothing. Where it is made, the scheduler's calls are timed."""

    name = "timer"

    def __init__(self) -> None:
        from headstart.engine.scheduler import HeadstartScheduler
        from headstart.speculation.cascade import Cascade

        file = Path(os.environ[FILE]).open("a", buffering=1)  # noqa: SIM115 - open until the end
        for owner, method, name in (
            (HeadstartScheduler, "schedule", LAY_OUT),
            (Cascade, "propose", DRAFT),
            (HeadstartScheduler, "get_grammar_bitmask", MEANWHILE),
            (HeadstartScheduler, "update_from_output", TAKE),
        ):
            setattr(owner, method, _timed(getattr(owner, method), name, file))

    def begin(self, request: Any) -> None:
        """Note nothing."""

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        """Nothing."""
        return ()

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        """Note nothing."""


def _timed(call: Callable[..., Any], name: str, file: Any) -> Callable[..., Any]:
    def timed(*args: Any, **kwargs: Any) -> Any:
        begun_s = time.monotonic()
        done = call(*args, **kwargs)
        file.write(json.dumps([name, begun_s, time.monotonic()]) + "\n")
        return done

    return timed


def parts(calls: Iterable[Call]) -> dict[str, list[float]]:
    """What the passes of one answer consist of, by the calls during it.

    Its first pass is the first one that is drafted for: frames that are fed get no drafts.
    """
    spent: dict[str, list[float]] = defaultdict(list)
    laid_out: Call | None = None
    drafting = meanwhile = 0.0
    which = "prompt"
    for call in sorted(calls, key=lambda call: call.ended_s):
        if call.name == DRAFT:
            drafting += call.ms
        elif call.name == LAY_OUT:
            laid_out = call
        elif call.name == MEANWHILE:
            meanwhile = call.ms
        elif laid_out is not None and (drafting or which == "later"):
            spent[f"{which}: laid out"].append(laid_out.ms)
            spent[f"{which}: of it drafting"].append(drafting)
            spent[f"{which}: computed"].append(1e3 * (call.begun_s - laid_out.ended_s))
            spent[f"{which}: meanwhile"].append(meanwhile)
            spent[f"{which}: taken in"].append(call.ms)
            which, laid_out, drafting, meanwhile = "later", None, 0.0, 0.0
    return spent


def watched(method: Method) -> Method:
    """The same with a `Timer`; bare vLLM as it is."""
    if method.sources is None:
        return method
    drafters = (*method.sources.drafters, TIMER)
    return replace(method, sources=replace(method.sources, drafters=drafters))


def measure(
    work: Workload, engines: dict[str, Headstart], methods: dict[str, Method], warmup: int
) -> dict[str, dict[str, float]]:
    """Ask every engine in turn; figures by method."""
    askers: dict[str, Asker] = {}
    for name, engine in engines.items():
        if work.site is not None and name != BARE:
            other = WholeClip(engine.session("another camera"), work)
            for item in work.site(0):
                other.ask(item)
        session = engine.session("camera")
        is_fed = work.is_live and methods[name].is_fed
        askers[name] = FrameByFrame(session, work) if is_fed else WholeClip(session, work)
    spent: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in engines}
    for number, item in enumerate(work.streams(0)[0]):
        for name in list(askers)[:: 1 if number % 2 else -1]:
            time.sleep(REST_S)
            asked = askers[name].ask(item)
            if number < warmup:
                continue
            sample = Sample.of(
                asked.answer,
                asked.asked_s,
                asked.answered_s,
                workload=work.name,
                method=name,
                beside=name,
                round=0,
                stream=0,
                index=number,
                settled=True,
            )
            found = spent[name]
            found["first token"].append(1e3 * sample.first_token_s)
            found["last word"].append(1e3 * sample.end_to_end_s)
            found["passes"].append(sample.num_passes)
            if name != BARE:
                during = (c for c in read_calls(name) if asked.asked_s < c.ended_s)
                for part, ms in parts(c for c in during if c.begun_s < asked.answered_s).items():
                    found[part] += ms
    return {
        name: {part: round(median(ms), 2) for part, ms in found.items()}
        for name, found in spent.items()
    }


def file_of(method: str) -> Path:
    """Where the engine of a method writes."""
    return Path(os.environ[FILE]).with_name(method.replace(" ", "_"))


def read_calls(method: str) -> list[Call]:
    """What it has written so far, but for a line that is not complete."""
    lines = file_of(method).read_text().split("\n")[:-1]
    return [Call(*json.loads(line)) for line in lines]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target")
    parser.add_argument("--bridge", type=Path)
    parser.add_argument("--workload", default="fixed", help="fixed, rotating or live")
    parser.add_argument("--method", action="append", required=True)
    parser.add_argument("--answers", type=int, default=24)
    parser.add_argument("--warmup", type=int, default=4)
    options = parser.parse_args()
    bridge = options.bridge.absolute() if options.bridge else None
    rig = Rig(str(Path(options.target).resolve()), vllm=ENGINE, bridge=bridge)
    methods = {method.name: method for method in rig.methods()[0]}
    works = {work.name: work for work in lab_workloads(options.answers, max_tokens=96)}
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as running:
        engines = {}
        for name in (BARE, *options.method):
            os.environ[FILE] = str(Path(directory) / name.replace(" ", "_"))
            engines[name] = running.enter_context(rig.start(watched(methods[name])))
        figures = measure(works[options.workload], engines, methods, options.warmup)
    names = sorted({part for found in figures.values() for part in found})
    print(f"{'':28}" + "".join(f"{name:>16}" for name in figures))
    for part in names:
        row = (f"{found.get(part, float('nan')):16.2f}" for found in figures.values())
        print(f"{part:28}" + "".join(row))
    print(json.dumps({options.workload: figures}))


if __name__ == "__main__":
    main()
