"""What engines of a bench know from the start is known to every camera that asks them."""

from headstart.drafters.memory_log import RememberedAnswer, write_memory_log
from headstart.drafters.registry import Ingredients, MemoryOptions, registration
from headstart.speculation.drafter import DraftRequest, StreamKey
from headstart_research.bench.known_answers import write_known_answers
from headstart_research.bench.run import BenchPlan, Run
from tests.bench.test_run import METHODS, Bench, workload

SAID = (5, 6, 7)


def test_every_camera_of_every_trial_may_quote_them(tmp_path):
    log, file = tmp_path / "site.jsonl", tmp_path / "out.jsonl"
    write_memory_log(log, [RememberedAnswer("north", "why?", SAID)])
    bench, works = Bench(), [workload(), workload(2)]
    Run(bench.start, METHODS, works, BenchPlan(rounds=2, warmup=1)).run()
    write_known_answers(log, file, works, ["memory"], rounds=2)
    memory = registration("memory").built(Ingredients(MemoryOptions(log=file)))
    tenants = {tenant for name, tenant, *_ in bench.asked if name == "memory"}
    assert len(tenants) == 2 * 2  # workloads, rounds
    for tenant in tenants:
        memory.begin(DraftRequest(tenant, StreamKey(tenant, "stream-0"), "why?"))
        assert tuple(memory.propose(tenant, (), 8)) == SAID
