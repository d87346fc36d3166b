"""Open workloads: from a bench's plan to its result, on engines that answer one at a time."""

import dataclasses
import itertools
import time
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import pytest

from headstart.answers.answer import Answer
from headstart.answers.timeline import Timeline
from headstart.errors import BenchError
from headstart.media.clip import ClipFiles
from headstart_research.bench import trial
from headstart_research.bench.methods import Method
from headstart_research.bench.open_loop import Arrival, Load
from headstart_research.bench.result import BARE, BenchResult
from headstart_research.bench.run import BenchPlan, Run
from headstart_research.bench.throughput import capacity
from headstart_research.bench.workloads import Item, Workload, closed_loops, lab_workloads

METHODS = [Method(name, name) for name in (BARE, "memory", "cascade")]
LOADS = (Load(0.5), Load(0.9), Load(0.7, burst=2))
NAMES = ["open-2 at 0.5", "open-2 at 0.9", "open-2 in bursts"]


@dataclass
class Engine:
    """Answers one question after the other, each in ``service_s``."""

    name: str
    bench: "Bench"
    turn: Lock = field(default_factory=Lock)

    def session(self, stream: str, tenant: str) -> "Session":
        return Session(self, tenant)

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *exc: object) -> None:
        self.bench.up.remove(self.name)


@dataclass
class Session:
    engine: Engine
    tenant: str

    def ask(self, clip: ClipFiles, question: str, **options: Any) -> Answer:
        bench = self.engine.bench
        bench.asked.append((self.engine.name, self.tenant, question, len(bench.up)))
        with self.engine.turn:
            time.sleep(bench.service_s)  # plays: an engine that takes its time
        tokens = bench.said.get(self.engine.name, (1, 2))
        return Answer("a b", tokens, "stop", 9, 0, Timeline.of(0.0, 1.0, []), (0, 0))


@dataclass
class Bench:
    service_s: float = 0.0
    said: dict[str, tuple[int, ...]] = field(default_factory=dict)
    up: list[str] = field(default_factory=list)
    asked: list[tuple[str, str, str, int]] = field(default_factory=list)

    def start(self, method: Method) -> Any:
        self.up.append(method.name)
        return Engine(method.name, self)


def workload(num_answers: int = 4, loads: tuple[Load, ...] = LOADS) -> Workload:
    def camera(number: int, stream: int) -> list[Item]:
        return [Item(ClipFiles(), f"{number}/{stream}/{index}") for index in range(num_answers)]

    return Workload("open-2", "two cameras", camera, 16, 2, loads=loads)


def result_of(run: Run) -> BenchResult:
    return BenchResult({}, tuple(run.samples), tuple(run.blocks), loads=run.loads)


@pytest.fixture
def at_once(monkeypatch) -> list[list[Arrival]]:
    """Asks without waiting for arrivals, and keeps them."""
    played = []

    def ask_at_once(arriving: list[Arrival], ask: Any) -> list[Any]:
        played.append(arriving)
        return [ask(arrival, time.monotonic()) for arrival in arriving]

    monkeypatch.setattr(trial, "ask_on_arrival", ask_at_once)
    return played


def test_every_load_is_a_workload_of_the_result_with_pairs_of_the_same_questions(at_once):
    bench = Bench()
    run = Run(bench.start, METHODS, [workload()], BenchPlan(rounds=2, warmup=1))
    run.run()
    result = result_of(run)
    summary = result.summary()
    assert list(summary) == NAMES
    for rows in summary.values():
        assert {name: row["answers"] for name, row in rows.items()} == {
            "memory": 2 * 2 * 3,
            "cascade": 2 * 2 * 3,
        }
        assert {row["other_words"] for row in rows.values()} == {0}
        assert all(row["throughput"] > 0 for row in rows.values())
    found = run.capacities["open-2"]
    assert result.rates == pytest.approx(
        dict(zip(NAMES, (0.5 * found, 0.9 * found, 0.7 * found), strict=True))
    )
    assert [load.burst for load in result.loads] == [1, 1, 2]
    assert {load.capacity for load in result.loads} == {found}


def test_both_engines_get_the_same_arrival_times_and_so_does_every_method(at_once):
    run = Run(Bench().start, METHODS, [workload()], BenchPlan(rounds=1, warmup=1))
    run.run()
    assert len(at_once) == 2 * 2 * len(LOADS)
    first_method, second_method = at_once[:6], at_once[6:]
    assert first_method == second_method
    assert first_method[0::2] == first_method[1::2]
    lengths = [arriving[-1].at_s for arriving in first_method[0::2]]
    assert lengths[0] / lengths[1] == pytest.approx(0.9 / 0.5)


def test_another_engine_is_first_at_every_load_and_nothing_is_remembered_from_another(at_once):
    bench = Bench()
    run = Run(bench.start, METHODS[:2], [workload()], BenchPlan(rounds=2, warmup=1))
    run.run()
    played = list(dict.fromkeys((s.round, s.workload, s.method) for s in run.samples))
    first = [method for _, _, method in played[0::2]]
    assert {first.count(name) for name in (BARE, "memory")} == {3}
    assert all(before != after for before, after in itertools.pairwise(first[:3]))
    tenants = {(name, tenant) for name, tenant, *_ in bench.asked if "capacity" not in tenant}
    assert len(tenants) == 2 * 2 * len(LOADS)  # engines, rounds, loads
    asked = [(name, question) for name, tenant, question, _ in bench.asked]
    assert len(set(asked)) == len(asked)  # no clip twice: suffix decoding knows no tenants


def test_answers_in_other_words_are_counted_at_every_load(at_once):
    bench = Bench(said={"memory": (3, 4)})
    run = Run(bench.start, METHODS[:2], [workload()], BenchPlan(rounds=1, warmup=1))
    run.run()
    rows = [of_methods["memory"] for of_methods in result_of(run).summary().values()]
    assert [row["other_words"] for row in rows] == [2 * 3] * len(LOADS)


def test_the_capacity_is_measured_once_on_bare_vllm_over_clips_of_no_round(at_once):
    bench = Bench()
    Run(bench.start, METHODS, [workload()], BenchPlan(rounds=2, warmup=1)).run()
    measured = [asked for asked in bench.asked if "capacity" in asked[1]]
    asked = {(name, question.split("/")[0]) for name, _, question, _ in measured}
    assert asked == {(BARE, str(2 * len(LOADS) + number)) for number in range(3)}
    assert len(measured) == 3 * 2 * 4
    assert {num_up for *_, num_up in bench.asked} == {2}


def test_with_one_engine_the_capacity_is_known_before_a_method_plays(at_once):
    bench = Bench()
    plan = BenchPlan(rounds=1, warmup=1, one_engine=True)
    run = Run(bench.start, METHODS, [workload()], plan)
    run.run()
    assert {num_up for *_, num_up in bench.asked} == {1}
    assert all("capacity" in tenant for _, tenant, *_ in bench.asked[:8])
    assert len({tuple(arriving) for arriving in at_once}) == len(LOADS)
    assert result_of(run).summary()["open-2 at 0.9"]["cascade"]["answers"] == 6


def test_the_capacity_is_what_an_engine_answers_while_all_cameras_ask():
    engine = Bench(service_s=0.05).start(METHODS[0])
    found = capacity(engine, workload(num_answers=8), rounds=[0, 1], warmup=2)
    assert 0.6 / 0.05 < found < 1.15 / 0.05


def test_a_wait_counts_from_the_arrival_and_not_from_when_the_engine_was_free():
    engine = Bench(service_s=0.05).start(METHODS[0])
    samples, blocks = [], []
    one = trial.Trial(BARE, 0, 0, {BARE: engine}, samples, blocks)
    burst = [Arrival(0.0, number % 2, number // 2) for number in range(8)]
    one.play_open(workload().under(LOADS[0]), burst, [BARE])
    waits = sorted(sample.end_to_end_s for sample in samples)
    assert all(wait >= 0.05 * place for place, wait in enumerate(waits, start=1))
    assert waits[-1] < 8 * 0.05 + 1.0
    (block,) = blocks
    assert block.seconds == pytest.approx(waits[-1], abs=1e-4)
    assert block.num_tokens == 16


def test_time_that_a_question_waits_for_its_thread_is_part_of_its_wait(monkeypatch):
    def ask_late(arriving: list[Arrival], ask: Any) -> list[Any]:
        return [ask(arrival, time.monotonic() - 5.0) for arrival in arriving]  # plays: a late one

    monkeypatch.setattr(trial, "ask_on_arrival", ask_late)
    run = Run(Bench().start, METHODS[:2], [workload()], BenchPlan(rounds=1, warmup=1))
    run.run()
    assert all(5.0 < sample.end_to_end_s < 6.0 for sample in run.samples)


def test_no_two_cameras_of_the_lab_see_the_same_second():
    known = {work.name: work for work in lab_workloads(answers=1, max_tokens=96)}
    closed, opened = known["streams-2"], known["open-8"]
    played = [*closed.streams(0), *closed.streams(1)]
    played += [opened.under(load).streams(0)[0] for load in opened.loads[:2]]
    assert len({item.clip.digest() for items in played for item in items}) == 5  # 0 of both is one


def test_open_loops_are_played_only_if_they_are_named():
    known = lab_workloads(answers=4, max_tokens=96)
    loads = {work.name: work.loads for work in known if work.loads}
    assert {name: [load.share for load in of] for name, of in loads.items()} == {
        "open-8": [0.5, 0.7, 0.85, 0.95, 0.7],
        "open-16": [0.5, 0.7, 0.85, 0.95, 0.7],
    }
    assert [of[-1].burst for of in loads.values()] == [4, 8]
    usual = {work.name for work in closed_loops(known)}
    assert not usual & loads.keys()
    assert usual | loads.keys() == {work.name for work in known}


def test_a_live_camera_has_no_loads():
    with pytest.raises(BenchError, match="at its own pace"):
        dataclasses.replace(workload(), frame_s=0.1)
