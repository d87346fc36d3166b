"""The order in which a bench asks its engines, on engines that answer at once."""

from dataclasses import dataclass, field
from threading import Semaphore
from typing import Any

import pytest

from headstart.answers.answer import Answer
from headstart.answers.timeline import Timeline
from headstart.errors import BenchError, EngineStartError
from headstart.media.clip import ClipFiles
from headstart_research.bench.methods import Method
from headstart_research.bench.result import BARE
from headstart_research.bench.run import BenchPlan, Run
from headstart_research.bench.workloads import Item, Workload

METHODS = [Method(name, name) for name in (BARE, "memory", "cascade")]


@dataclass
class Engine:
    """Keeps who was asked what, and how many engines were up at that time."""

    name: str
    bench: "Bench"

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
        if len(bench.asked) == bench.interrupted_at:
            raise KeyboardInterrupt
        return Answer("a b", (1, 2), "stop", 9, 0, Timeline.of(0.0, 1.0, []), (0, 0))


@dataclass
class Bench:
    broken: str = ""
    interrupted_at: int = -1
    up: list[str] = field(default_factory=list)
    asked: list[tuple[str, str, str, int]] = field(default_factory=list)

    def start(self, method: Method) -> Any:
        if method.name == self.broken:
            raise EngineStartError("out of\nmemory")
        self.up.append(method.name)
        return Engine(method.name, self)


def workload(num_streams: int = 1, num_answers: int = 4) -> Workload:
    def camera(number: int, stream: int) -> list[Item]:
        return [Item(ClipFiles(), f"{number}/{stream}/{index}") for index in range(num_answers)]

    return Workload(f"streams-{num_streams}", "", camera, 16, num_streams)


def test_two_engines_are_asked_the_same_question_in_turn():
    bench = Bench()
    run = Run(bench.start, METHODS, [workload()], BenchPlan(rounds=2, warmup=1))
    run.run()
    names = [name for name, *_ in bench.asked]
    questions = [question for *_, question, _ in bench.asked]
    assert questions[0::2] == questions[1::2]
    assert all(
        set(pair) == {BARE, beside}
        for *pair, beside in zip(
            names[0::2], names[1::2], ["memory"] * 4 + ["cascade"] * 8 + ["memory"] * 4, strict=True
        )
    )
    # Each of the two is asked first as often as the other, in every trial.
    assert {names[start : start + 8 : 2].count(BARE) for start in range(0, 32, 8)} == {2}
    assert {num_up for *_, num_up in bench.asked} == {2}
    assert not bench.up
    # No trial uses what an engine remembers of another.
    assert len({(name, tenant) for name, tenant, *_ in bench.asked}) == 2 * 2 * 2
    assert [sample.settled for sample in run.samples[:4]] == [False, True, True, True]
    assert [(block.num_tokens, block.beside) for block in run.blocks[:2]] == [(6, "memory")] * 2


@pytest.mark.parametrize(("one_engine", "num_rests"), [(False, 2 * 4), (True, 0)])
def test_an_engine_is_asked_once_the_other_one_rests(monkeypatch, one_engine, num_rests):
    bench, rests = Bench(), []

    def sleep(seconds: float) -> None:
        rests.append((seconds, len(bench.asked)))

    monkeypatch.setattr("headstart_research.bench.trial.time.sleep", sleep)
    plan = BenchPlan(rounds=1, warmup=1, one_engine=one_engine, rest_s=1.1)
    Run(bench.start, METHODS[:2], [workload()], plan).run()
    assert rests == [(1.1, number) for number in range(num_rests)]


def test_streams_ask_at_once_in_long_turns_and_the_warm_up_is_a_turn_of_its_own():
    bench = Bench()
    run = Run(bench.start, METHODS[:2], [workload(2, 9)], BenchPlan(rounds=1, warmup=2))
    run.run()
    turns = [[name for name, *_ in bench.asked][i : i + 4] for i in (0, 4)]
    assert [set(turn) for turn in turns] in ([{BARE}, {"memory"}], [{"memory"}, {BARE}])
    # Two streams of seven answers that count, in two turns: bare, ours, ours, bare or otherwise.
    counted = bench.asked[8:]
    engines = [
        {name for name, *_ in counted[i:j]} for i, j in ((0, 8), (8, 16), (16, 22), (22, 28))
    ]
    assert engines[0] == engines[3] != engines[1] == engines[2]
    assert all(len(names) == 1 for names in engines)
    indices = [sorted(int(question[-1]) for *_, question, _ in counted[i : i + 8]) for i in (0, 8)]
    assert indices == [[2, 2, 3, 3, 4, 4, 5, 5]] * 2
    assert [block.beside for block in run.blocks] == ["memory"] * 2
    assert all(0 < block.num_tokens <= 2 * 7 * 2 for block in run.blocks)
    assert len(run.samples) == 2 * 2 * 9


def test_within_a_turn_no_stream_waits_for_another():
    """One stream is held up until the other has gone through its whole turn."""
    bench, others = Bench(), Semaphore(0)
    usual = Session.ask

    def ask(session: Session, clip: ClipFiles, question: str, **options: Any) -> Answer:
        _, stream, index = question.split("/")
        if stream == "1":
            others.release()
        elif index == "0":
            assert all(others.acquire(timeout=20) for _ in range(4))
        return usual(session, clip, question, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "ask", ask)
        run = Run(bench.start, METHODS[:2], [workload(2, 8)], BenchPlan(rounds=1, warmup=0))
        run.run()
    assert len(run.samples) == 2 * 2 * 8


def test_with_one_engine_bare_vllm_is_started_again_for_every_method():
    bench = Bench()
    run = Run(bench.start, METHODS, [workload()], BenchPlan(1, 1, one_engine=True))
    run.run()
    assert {num_up for *_, num_up in bench.asked} == {1}
    order = list(dict.fromkeys((sample.beside, sample.method) for sample in run.samples))
    assert order == [
        ("memory", "memory"),
        ("memory", BARE),
        ("cascade", "cascade"),
        ("cascade", BARE),
    ]


@pytest.mark.parametrize("one_engine", [False, True])
def test_a_method_that_does_not_start_is_named_and_the_others_are_measured(one_engine):
    bench = Bench(broken="memory")
    run = Run(bench.start, METHODS, [workload()], BenchPlan(2, 1, one_engine))
    run.run()
    assert run.unmeasured == {"memory": "out of memory"}
    assert {sample.beside for sample in run.samples} == {"cascade"}
    with pytest.raises(BenchError, match=r"no method could be started\. memory: out of memory"):
        Run(bench.start, METHODS[:2], [workload()], BenchPlan()).run()


def test_what_was_measured_before_an_interruption_is_kept():
    bench = Bench(interrupted_at=6)
    run = Run(bench.start, METHODS, [workload()], BenchPlan(rounds=1, warmup=1))
    with pytest.raises(KeyboardInterrupt):
        run.run()
    assert len(run.samples) == 5
    assert sorted(block.num_tokens for block in run.blocks) == [2, 4]
    assert not bench.up


def test_a_plan_that_counts_nothing_is_refused():
    with pytest.raises(BenchError, match="lower warmup"):
        Run(Bench().start, METHODS, [workload(num_answers=4)], BenchPlan(warmup=4)).run()
    with pytest.raises(BenchError, match="at least one method"):
        Run(Bench().start, METHODS[:1], [workload()], BenchPlan()).run()
