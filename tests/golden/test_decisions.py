"""The scheduler drafts what it drafted: each pass, each source, each token."""

import pytest

pytest.importorskip("vllm")
from tests.golden.clock import CLOCK, turned
from tests.golden.decisions import KEPT, SEEDS, decisions, first_difference

pytestmark = pytest.mark.engine

KNOWN = KEPT.read_text().splitlines()


def test_the_same_is_drafted_as_ever():
    made = [line for seed in SEEDS for line in decisions(seed)]
    difference = first_difference(KNOWN, made)
    assert not difference, f"{difference}\nif it is meant: python -m tests.golden.decisions"


def test_every_kind_of_source_is_in_what_is_kept():
    sources = {line.split()[2] for line in KNOWN if not line.startswith("seed")}
    assert sources == {"memory", "ngram", "caller", "late", "guesser"}


def test_whoever_looks_at_a_clock_sees_the_one_that_is_turned():
    from headstart.drafters import memory
    from headstart.engine import pass_clock, scheduler
    from headstart.speculation import cascade

    with turned() as places:
        assert {f"{module.__name__}.time" for module in (cascade, scheduler)} <= set(places)
        CLOCK.now_s = 5000.0
        assert pass_clock.PassClock()._clock() == memory.Memory()._clock() == 5000.0
        assert scheduler.time.monotonic() == 5000.0
    assert pass_clock.PassClock()._clock() != 5000.0


def test_the_first_difference_is_shown_with_what_comes_before_it():
    kept = ["seed 0", "1 0 memory ab", "2 0 memory cd", "seed 2", "1 4 ngram e", "1 5 caller fg"]
    assert first_difference(kept, list(kept)) == ""
    said = first_difference(kept, [*kept[:5], "1 5 caller f"])
    assert said.splitlines() == [
        "seed 2, step request source draft:",
        "       2 0 memory cd",
        "       seed 2",
        "       1 4 ngram e",
        "  kept 1 5 caller fg",
        "  now  1 5 caller f",
    ]
    assert "now  None" in first_difference(kept, kept[:5])
