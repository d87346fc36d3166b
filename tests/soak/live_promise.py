"""Do live answers have the tokens of bare vLLM? Windows of rough cameras, beside whole clips.

    python -m tests.soak.live_promise TARGET [--drafter DRAFTER] [--windows 1000]

Held-out lab drives are fed frame by frame: jittered, late, doubled, out of order, lost, cut. Each
window's answer is compared with the one that bare vLLM, an engine of its own in the same run, gives
to the window's frames as a whole clip. The cells: tumbling and stepping windows; prose and JSON;
the drafter up, killed (SIGKILL while answers are under way), alone (without memory's drafts, which
mostly come first) and lying (a source that is always wrong, and drafts of random tokens on the
channel). Frames come as fast as the target takes them;
most wait until those before them are computed, the others do not.

A steady camera comes first, in real time: how many tokens of the prompt are computed after the
last frame of a stepping window? One step's worth is the tokens of the frames that land in one step,
and those of the question.

A row for each cell, and one line of JSON last. The run fails where a token differs, where a cell
fed or drafted nothing, and where a steady question computed more than one step's worth.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count, product

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")

import numpy as np

from headstart import Answer, Headstart, Sources, Video
from headstart.live import session as session_module
from headstart.live.session import LiveSession
from headstart.live.sources.source import Arrival
from headstart.live.window_question import WindowAnswer
from headstart.models.video_llava.view import video_geometry
from headstart_events.beside.event_model import EventDraftModel
from headstart_lab.language.questions import Question
from headstart_research.bench.methods import TIGHT_JSON
from rig.rough_camera import RoughCamera, taken
from tests.soak.bad_drafters import kill_drafter, lying
from tests.soak.live_cells import KINDS, SHAPES, STEADY_WINDOWS, Cell, Steady, faults

SMALL = {"dtype": "float32", "enforce_eager": True, "kv_cache_memory_bytes": 2**29}
ENGINE = {
    **SMALL,
    "block_size": 32,
    "enable_mm_processor_stats": False,
    "structured_outputs_config": TIGHT_JSON,
}
HONEST, LYING = Sources(abstain=False), Sources(("wrong", "memory"), abstain=False)
NOTHING_ELSE = Sources(drafters=(), abstain=False)
NUM_AT_ONCE = 8
SHARE_WAITED_FOR = 0.7
"""Frames that are computed before the next one lands."""
MAX_KILLS = 2
"""Of a cell: a drafter takes a while to come back."""
PATIENCE_S = 600.0
SHARE_STEADY = 0.2

Given = list[tuple[WindowAnswer, Video]]
"""Answers, each with the frames that its window must have had."""


class Bare:
    """vLLM alone, asked about whole clips, several at once."""

    def __init__(self, target: str) -> None:
        arguments = {**ENGINE, "enable_prefix_caching": False}
        self._headstart = Headstart(target, max_draft_tokens=0, vllm=arguments)
        self._threads = ThreadPoolExecutor(NUM_AT_ONCE)

    def compare(self, cell: Cell, given: Given) -> None:
        """Count the answers of a cell that are the same, and print its row."""

        def ask(answer: WindowAnswer, video: Video) -> Answer:
            return self._headstart.ask(video, answer.question, **cell.asked)

        asked = [self._threads.submit(ask, *each) for each in given]
        for each, beside in zip(given, asked, strict=True):
            tokens = each[0].answer.token_ids
            is_equal = tokens == beside.result().token_ids
            if not is_equal:
                is_equal = tokens == ask(*each).token_ids
                cell.unsettled += is_equal
            cell.equal += is_equal
        print(cell, flush=True)

    def close(self) -> None:
        """End the engine."""
        self._threads.shutdown()
        self._headstart.close()


def watch(headstart: Headstart, camera: RoughCamera, cell: Cell, num_windows: int) -> Given:
    """Ask about so many windows of a rough camera."""
    dice, feeder = random.Random(cell.name), headstart.target.feeder
    live = LiveSession(headstart.session("rough", cell.name), SHAPES[cell.shape])
    standing = live.standing(dice.choice(list(Question)).usual, **cell.asked)
    given, arrived, fed_before = [], [], feeder.counts.frames

    async def landed(is_waited_for: bool) -> None:
        while is_waited_for and not feeder.is_idle:
            await asyncio.sleep(0.002)

    is_lying = cell.drafter == "lying"
    with lying(headstart, dice) if is_lying else contextlib.nullcontext() as lies:
        for arrival in camera.arrivals(dice):
            arrived.append(arrival)
            live.feed(arrival.frame, arrival.time_us, arrival.events)
            is_waited_for = dice.random() < SHARE_WAITED_FOR
            headstart.loop.submit(landed(is_waited_for)).result(PATIENCE_S)
            while live.counts.asked > cell.windows:
                if cell.drafter == "killed" and cell.kills < MAX_KILLS:
                    cell.kills += kill_drafter(headstart)
                answer = next(standing)
                cell.note(answer.answer)
                given.append((answer, clip_of(answer, arrived, headstart)))
            if cell.windows >= num_windows:
                break
    cell.lies = lies.num_sent if lies is not None else 0
    cell.end(live, feeder.counts.frames - fed_before)
    return given


def clip_of(answer: WindowAnswer, arrived: Sequence[Arrival], headstart: Headstart) -> Video:
    """The frames that a window must have had."""
    num_slots = headstart.target.view.num_frames or 0
    found = taken(arrived, answer.start_us, answer.stop_us, num_slots)
    if len(found) != answer.num_frames:
        sys.exit(f"a window had {answer.num_frames} frames, and by the rule {len(found)}")
    return Video(np.stack([one.frame for one in found]), np.array([one.time_us for one in found]))


def watch_steadily(
    headstart: Headstart, camera: RoughCamera, cell: Cell, num_windows: int
) -> tuple[Given, Steady]:
    """Ask about so many windows of a camera that delivers a frame in each slot, in real time."""
    windows, view, feeder = STEADY_WINDOWS, headstart.target.view, headstart.target.feeder
    num_slots = view.num_frames or 0
    slot_us = round(windows.seconds * 1e6 / num_slots)
    live = LiveSession(headstart.session("steady", cell.name), windows)
    standing = live.standing(Question.DESCRIBE.usual, **cell.asked)
    answers: list[WindowAnswer] = []
    reader = threading.Thread(target=lambda: answers.extend(standing))
    reader.start()
    arrived, fed_before, began_s = [], feeder.counts.frames, time.monotonic()
    for number in count():
        arrival = Arrival(camera.frame(number * slot_us), number * slot_us)
        arrived.append(arrival)
        time.sleep(max(0.0, began_s + arrival.time_us / 1e6 - time.monotonic()))
        live.feed(arrival.frame, arrival.time_us)
        if live.counts.asked > num_windows:
            break
    cell.end(live, feeder.counts.frames - fed_before)
    reader.join()
    steady, per_frame = Steady(), video_geometry(view.config).tokens_per_picture
    num_step_frames = round(num_slots * windows.step_s / windows.seconds)
    for answer in answers:
        cell.note(answer.answer)
        steady.note(answer.answer, answer.num_frames, num_step_frames, per_frame)
    return [(answer, clip_of(answer, arrived, headstart)) for answer in answers], steady


def main() -> None:
    """Compare and print."""
    options = _options()
    session_module.PATIENCE_S = PATIENCE_S  # windows end by their frames, however slow the machine
    engines = (
        [
            (HONEST, options.drafter, ("up", "killed")),
            (NOTHING_ELSE, options.drafter, ("alone",)),
            (LYING, None, ("lying",)),
        ]
        if options.drafter
        else [(HONEST, None, ("memory",)), (LYING, None, ("lying",))]
    )
    num_steady = round(options.windows * SHARE_STEADY)
    num_cells = sum(len(states) for *_, states in engines) * len(SHAPES) * len(KINDS)
    per_cell = -(-(options.windows - num_steady) // num_cells)
    cells = [Cell("steady", "stepping", "prose")]
    compared: list[Future[None]] = []
    began_s = time.monotonic()
    with contextlib.closing(Bare(options.target)) as bare, ThreadPoolExecutor(1) as comparing:
        steady = None
        for sources, drafter, states in engines:
            beside = None if drafter is None else EventDraftModel(drafter, SMALL)
            with Headstart(
                options.target, draft_model=beside, sources=sources, vllm=ENGINE
            ) as headstart:
                if steady is None:
                    given, steady = watch_steadily(headstart, RoughCamera(0), cells[0], num_steady)
                    # Now, since it would have disturbed a steady camera.
                    bare.compare(cells[0], given)
                compared += _watch_all(headstart, states, per_cell, cells, bare, comparing)
        for each in compared:
            each.result()
    print(f"steady: {steady.figures()}")
    figures = {
        "windows": sum(cell.windows for cell in cells),
        "equal": sum(cell.equal for cell in cells),
        "minutes": round((time.monotonic() - began_s) / 60, 1),
        "steady": steady.figures(),
        "cells": [vars(cell) for cell in cells],
    }
    print(json.dumps(figures))
    sys.exit("\n".join([*faults(cells), *steady.faults()]) or None)


def _watch_all(
    headstart: Headstart,
    states: Sequence[str],
    per_cell: int,
    cells: list[Cell],
    bare: Bare,
    comparing: ThreadPoolExecutor,
) -> Iterator[Future[None]]:
    """Every shape and kind; bare vLLM is asked while the next cell is watched."""
    for state in states:
        camera = RoughCamera(len(cells))
        for shape, kind in product(SHAPES, KINDS):
            cells.append(cell := Cell(state, shape, kind))
            given = watch(headstart, camera, cell, per_cell)
            yield comparing.submit(bare.compare, cell, given)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", help="a Video-LLaVA")
    parser.add_argument("--drafter", help="an EventGPT of the same words")
    parser.add_argument("--windows", type=int, default=1000, help="at least so many in all")
    return parser.parse_args()


if __name__ == "__main__":
    main()
