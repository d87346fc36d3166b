"""What memory takes is measured, bounded, and one tenant's to lose."""

import gc
import tracemalloc
from random import Random

import pytest

from headstart.drafters.memory import Memory
from headstart.speculation.drafter import DraftRequest, StreamKey


def tell(memory, tenant, stream, answer):
    memory.begin(DraftRequest("told", StreamKey(tenant, stream), "what?"))
    memory.finish("told", answer)


def drafted(memory, tenant, stream):
    memory.begin(DraftRequest("asked", StreamKey(tenant, stream), "what?"))
    proposed = list(memory.propose("asked", (), 64))
    memory.finish("asked", ())
    return proposed


def words(rng, count=50):
    return rng.choices(range(300, 32_000), k=count)


@pytest.mark.parametrize(
    ("num_tenants", "num_streams", "num_answers", "num_tokens"),
    [(1, 1, 600, 50), (2, 3, 10, 1024), (3, 60, 2, 20), (60, 1, 5, 50), (1, 500, 1, 5)],
)
def test_the_count_of_bytes_is_what_python_allocates(
    num_tenants, num_streams, num_answers, num_tokens
):
    rng = Random(0)
    tell(Memory(), "warm", "up", words(rng))  # numpy loads some things when first used
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        memory = Memory()
        for tenant in range(num_tenants):
            for stream in range(num_streams):
                for _ in range(num_answers):
                    tell(memory, f"tenant {tenant}", f"stream {stream}", words(rng, num_tokens))
        gc.collect()
        allocated = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert memory.num_bytes == pytest.approx(allocated, rel=0.15)
    assert memory.num_answers == num_tenants * num_streams * min(num_answers, 512)


def test_an_answer_costs_what_is_documented():
    rng = Random(1)
    memory = Memory()
    for _ in range(2000):
        tell(memory, "t", "s", words(rng))
    assert memory.num_answers == 512
    assert memory.num_bytes / 512 < 4000
    long = Memory()
    for _ in range(50):
        tell(long, "t", "s", words(rng, 1024))
    assert long.num_bytes / 50 < 80_000


@pytest.mark.parametrize("warm", [False, True])
def test_a_tenant_over_its_share_loses_its_own_oldest_streams(warm):
    rng = Random(2)
    memory = Memory(max_tenant_bytes=200_000, warm=warm)
    tell(memory, "quiet", "camera", [1, 2, 3])
    answers = [words(rng) for _ in range(500)]
    for number, answer in enumerate(answers):
        tell(memory, "loud", f"camera {number}", answer)
        assert memory.num_bytes < 220_000
    assert drafted(memory, "quiet", "camera") == [1, 2, 3]
    assert drafted(memory, "loud", "camera 0") == (answers[-1] if warm else [])
    assert drafted(memory, "loud", "camera 499") == answers[-1]


def test_a_site_in_a_small_share_leaves_room_for_the_streams():
    rng = Random(6)
    memory = Memory(max_tenant_bytes=100_000)
    for _ in range(200):
        for stream in ("front", "back"):
            tell(memory, "t", stream, words(rng))
            assert memory.num_bytes <= 100_000
    assert len(memory) == 2
    assert memory.num_answers > 5


def test_a_single_stream_is_not_held_twice():
    rng = Random(7)
    alone, cold = Memory(), Memory(warm=False)
    for _ in range(50):
        answer = words(rng)
        tell(alone, "t", "camera", answer)
        tell(cold, "t", "camera", answer)
    assert alone.num_bytes == cold.num_bytes


def test_a_seeded_tenant_is_held_to_its_share_before_it_asks_anything():
    rng = Random(8)
    memory = Memory(max_tenant_bytes=50_000)
    answers = [words(rng) for _ in range(100)]
    for answer in answers:
        memory.seed("t", "what?", answer)
        assert 0 < memory.num_bytes <= 50_000
    assert drafted(memory, "t", "camera") == answers[-1]
    tiny = Memory(max_tenant_bytes=2000)
    tiny.seed("t", "what?", words(rng, 1000))
    assert tiny.num_bytes == 0


def test_a_single_stream_over_the_share_loses_its_oldest_answers():
    rng = Random(3)
    memory = Memory(max_tenant_bytes=50_000)
    answers = [words(rng) for _ in range(100)]
    for answer in answers:
        tell(memory, "t", "camera", answer)
        assert memory.num_bytes <= 50_000
    assert 2 < memory.num_answers < 60
    assert drafted(memory, "t", "camera") == answers[-1]


def test_an_answer_larger_than_the_share_is_not_kept():
    memory = Memory(max_tenant_bytes=3000)
    tell(memory, "t", "camera", words(Random(4), 1000))
    assert memory.num_bytes <= 3000
    assert memory.num_answers == 0
    tell(memory, "t", "x" * 100_000, [1])
    assert memory.num_answers == 0


def test_over_the_total_whoever_holds_most_loses_first():
    rng = Random(5)
    memory = Memory(max_bytes=400_000, max_tenant_bytes=300_000)
    for stream in range(60):
        tell(memory, "large", f"camera {stream}", words(rng))
    for tenant in range(20):
        tell(memory, f"small {tenant}", "camera", [tenant, 101, 102])
    for stream in range(500):
        tell(memory, "larger", f"camera {stream}", words(rng))
        assert memory.num_bytes <= 400_000
    for tenant in range(20):
        assert drafted(memory, f"small {tenant}", "camera") == [tenant, 101, 102]


def test_a_tenants_streams_are_bounded_in_number_and_nobody_elses():
    memory = Memory(max_streams=3)
    tell(memory, "quiet", "camera", [1, 2])
    for stream in range(10):
        tell(memory, "loud", str(stream), [3, 4])
    assert len(memory) == 4
    assert drafted(memory, "quiet", "camera") == [1, 2]


def test_tenants_are_bounded_in_number():
    memory = Memory(max_tenants=4)
    for tenant in range(10):
        tell(memory, str(tenant), "camera", [1, 2])
    assert len(memory) == 4
    assert drafted(memory, "9", "camera") == [1, 2]


def test_what_is_forgotten_is_not_counted():
    memory = Memory()
    for stream in range(5):
        tell(memory, "t", str(stream), [1, 2])
    for stream in range(5):
        memory.forget(StreamKey("t", str(stream)))
    memory.forget(StreamKey("t", "never heard of"))
    assert memory.num_bytes == memory.num_answers == len(memory) == 0
