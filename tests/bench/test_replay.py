"""The accounting of a replay, and its agreement with an independent one on real logs."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from headstart.drafters.memory import Memory
from headstart.errors import ReplayError
from headstart.speculation.drafter import DraftRequest, StreamKey
from headstart_research.bench.automaton import SubstringIndex
from headstart_research.bench.baselines import PastOracle, RecentSuffix
from headstart_research.bench.log import LoggedAnswer, cut, model_tokens, read_log
from headstart_research.bench.replay import DraftLimits, OwnMemory, methods, replay
from tests.speculation.scripted import Script, Scripted

LIMITS = DraftLimits()
TRACES = Path(__file__).parents[3] / "shared" / "traces"


def log_of(answers, question="q", drafted=()):
    return [
        LoggedAnswer(
            DraftRequest(str(i), StreamKey("", ""), question), tuple(answer), tuple(drafted)
        )
        for i, answer in enumerate(answers)
    ]


def random_log(seed, num_answers=40):
    rng = Random(seed)
    answers = [rng.choices(range(8), k=rng.randrange(1, 40)) for _ in range(num_answers)]
    return log_of(answers, drafted=rng.choices(range(8), k=10))


@pytest.mark.parametrize("seed", range(5))
def test_every_method_reproduces_the_targets_tokens_exactly(seed):
    log = random_log(seed)
    for make in methods(log):
        result = replay(log, make(), LIMITS)
        assert [answer.tokens for answer in result.answers] == [row.tokens for row in log]


def test_a_perfect_draft_needs_one_pass():
    log = log_of([range(50)])
    result = replay(log, Scripted({"0": range(50)}), LIMITS)
    assert (result.tokens_per_pass, result.first_block, result.passes(0.5)) == (50, 50, 1)


def test_no_draft_yields_one_token_a_pass():
    result = replay(log_of([range(50)]), Scripted({}), LIMITS)
    assert (result.tokens_per_pass, result.first_block, result.passes(0.95)) == (1, 0, 50)


def test_each_pass_adds_one_token_of_the_targets_own():
    result = replay(log_of([range(50)]), Scripted({"0": range(50)}), DraftLimits(9, 4))
    assert len(result.answers[0].verdicts) == 1 + 8  # 10 tokens, then 5 a pass
    assert result.by_position(10) == [0.9, 0.8, 0.8, 0.8, 0.8]


def test_nothing_is_learnt_before_it_was_said():
    log = log_of([[1, 2, 3, 4]])
    assert replay(log, Memory(), LIMITS).first_block == 0
    assert replay([*log, *log_of([[1, 2, 3, 4]])], Memory(), LIMITS).first_block == 2


def test_scripted_acceptance_gives_the_tokens_per_pass_of_the_formula():
    rng = Random(1)
    answers = {str(i): rng.choices(range(99), k=400) for i in range(40)}
    script = Script(acceptance=0.8)
    result = replay(log_of(answers.values()), Scripted(answers, script), DraftLimits(8, 8))
    assert result.tokens_per_pass == pytest.approx((1 - 0.8**9) / (1 - 0.8), rel=0.06)


def test_the_oracle_is_never_beaten_by_a_quotation():
    for seed in range(5):
        log = random_log(seed)
        oracle = replay(log, PastOracle({row.request.id: row.tokens for row in log}), LIMITS)
        assert oracle.cheats
        assert oracle.tokens_per_pass >= replay(log, RecentSuffix(), LIMITS).tokens_per_pass


def test_the_substring_index_finds_what_occurs_and_nothing_else():
    rng = Random(2)
    texts = [rng.choices(range(3), k=rng.randrange(1, 15)) for _ in range(30)]
    index = SubstringIndex()
    for number, text in enumerate(texts):
        index.add(text)
        known = {
            tuple(t[i:j])
            for t in texts[: number + 1]
            for i in range(len(t))
            for j in range(i + 1, len(t) + 1)
        }
        for _ in range(20):
            asked = rng.choices(range(3), k=8)
            most = max((n for n in range(1, 9) if tuple(asked[:n]) in known), default=0)
            assert index.num_known(asked) == most


def test_the_parts_of_a_log_are_in_the_order_of_time():
    log = log_of([range(20)] * 8)
    assert replay(log, Memory(), LIMITS).by_time(4) == [40 / 21, 20, 20, 20]


def test_text_is_split_into_words_where_there_are_no_tokens(tmp_path):
    file = tmp_path / "log.jsonl"
    rows = [
        {"clip": 0, "question": "q", "target_text": "A car, a tree."},
        {"clip": 1, "question": "q", "target_text": "A tree, a car."},
    ]
    file.write_text("\n".join(map(json.dumps, rows)))
    assert [row.tokens for row in read_log(file)] == [(0, 1, 2, 3, 4, 5), (0, 4, 2, 3, 1, 5)]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "no answers"),
        ("{\n", "line 1"),
        ("[1]", "line 1"),
        ('{"question": "q"}', "target_text"),
        ('{"target_tokens": [1]}', "question"),
        ('{"question": "q", "target_tokens": ["x"]}', "line 1"),
        ('{"question": "q", "target_tokens": [-1]}', "no id"),
        ('{"question": "q", "target_tokens": []}', "empty"),
    ],
)
def test_a_broken_log_says_where_and_what_a_row_holds(tmp_path, content, said):
    file = tmp_path / "log.jsonl"
    file.write_text(content)
    with pytest.raises(ReplayError, match=said):
        read_log(file)


def test_negative_limits_are_refused():
    with pytest.raises(ReplayError):
        DraftLimits(-1, 4)


def real_log(name):
    if not (TRACES / name).exists():
        pytest.skip("the traces of the real pair are not on this machine")
    return read_log(TRACES / name)


def test_real_answers_give_the_figures_of_an_independent_count():
    log = real_log("dsec-1s-50tok.jsonl")
    by_name = {make().name: make for make in methods(log)}
    raw = replay(log, by_name["drafter raw"](), LIMITS)
    previous = replay(log, by_name["previous answer"](), LIMITS)
    oracle = replay(log, by_name["oracle over the past"](), LIMITS)
    plain = replay(log, by_name["recent suffix"](), DraftLimits(64, 16))
    assert raw.first_block == pytest.approx(0.007, abs=0.001)
    assert previous.first_block == pytest.approx(19.8, abs=0.1)
    assert oracle.first_block == pytest.approx(28.8, abs=0.1)
    assert plain.tokens_per_pass == pytest.approx(5.9, abs=0.15)
    assert (plain.passes(0.5), plain.passes(0.95)) == (7, 20)


def test_memory_is_no_worse_than_the_plain_one_on_real_answers():
    for name, floor in (("dsec-1s-50tok.jsonl", 6.3), ("dsec-1s-10questions.jsonl", 7.0)):
        log = real_log(name)
        memory = replay(log, Memory(), LIMITS)
        assert memory.tokens_per_pass >= floor
        assert memory.tokens_per_pass > replay(log, RecentSuffix(), LIMITS).tokens_per_pass


def test_a_young_stream_is_drafted_for_by_its_tenants_others_on_real_answers():
    log = real_log("dsec-1s-50tok.jsonl")
    for num_answers, own_alone, floor in ((10, 2.98, 6.0), (22, 3.76, 6.1), (110, 5.19, 6.29)):
        streams = cut(log, num_answers)
        own = replay(streams, OwnMemory(), LIMITS)
        assert own.tokens_per_pass == pytest.approx(own_alone, abs=0.01)
        warm = replay(streams, Memory(), LIMITS)
        assert warm.tokens_per_pass >= floor
        for age, value in own.by_age().items():
            assert warm.by_age()[age] > value


def test_a_log_of_one_stream_is_drafted_for_as_without_the_others():
    log = random_log(7)
    warm, own = replay(log, Memory(), LIMITS), replay(log, OwnMemory(), LIMITS)
    for answer, alone in zip(warm.answers, own.answers, strict=True):
        drafts = [verdict.draft.tokens for verdict in answer.verdicts]
        assert drafts == [verdict.draft.tokens for verdict in alone.verdicts]
    assert own.tokens_per_pass > 1


def test_a_cut_log_is_the_same_answers_as_those_of_short_streams_in_their_order():
    log = random_log(3, num_answers=43)
    streams = cut(log, 10)
    assert sorted(int(row.request.id) for row in streams) == list(range(43))
    assert [row.request.id for row in streams] != [row.request.id for row in log]
    assert cut(log, 10) == streams
    by_stream = {}
    for row in streams:
        by_stream.setdefault(row.request.stream, []).append(int(row.request.id))
    assert sorted(by_stream.values()) == [
        *(list(range(start, start + 10)) for start in (0, 10, 20, 30)),
        [40, 41, 42],
    ]
    # They are under way at the same time.
    assert {row.request.stream for row in streams[:20]} == set(by_stream)


def test_a_cut_log_keeps_to_the_streams_and_tenants_that_it_had():
    rows = log_of([[1, 2]] * 8)
    keys = [StreamKey("north", "front"), StreamKey("north", "back"), StreamKey("south", "front")]
    mixed = [
        replace(row, request=replace(row.request, stream=keys[number % 3]))
        for number, row in enumerate(rows)
    ]
    streams = Counter(row.request.stream for row in cut(mixed, 2))
    assert sorted(streams.values()) == [1, 1, 2, 2, 2]
    assert Counter(stream.tenant for stream in streams) == {"north": 4, "south": 1}


def test_the_age_of_a_stream_is_counted_in_its_own_answers():
    log = cut(log_of([range(20)] * 12), 4)
    own = replay(log, OwnMemory(), LIMITS)
    assert own.by_age() == {"1": 1.0, "2": 20.0, "3-5": 20.0}
    # Of the three streams, the first to speak has nobody to quote.
    assert replay(log, Memory(), LIMITS).by_age() == {"1": 60 / 22, "2": 20.0, "3-5": 20.0}


def test_the_oracle_quotes_a_tenants_streams_and_no_other_tenants():
    rows = log_of([range(20)] * 3)
    streams = StreamKey("north", "a"), StreamKey("south", "a"), StreamKey("north", "b")
    log = [
        replace(row, request=replace(row.request, stream=stream))
        for row, stream in zip(rows, streams, strict=True)
    ]
    oracle = PastOracle({row.request.id: row.tokens for row in log})
    passes = [len(answer.verdicts) for answer in replay(log, oracle, LIMITS).answers]
    assert passes == [20, 20, 1]


def test_the_stream_is_read_from_the_field_that_is_named(tmp_path):
    file = tmp_path / "log.jsonl"
    rows = [
        {"question": "q", "target_tokens": [1], "stream": "a", "camera": "front"},
        {"question": "q", "target_tokens": [1], "stream": "b", "camera": 7},
    ]
    file.write_text("\n".join(map(json.dumps, rows)))
    assert [row.request.stream.stream for row in read_log(file)] == ["a", "b"]
    named = read_log(file, stream_field="camera")
    assert [row.request.stream.stream for row in named] == ["front", "7"]


def test_a_models_tokenizer_splits_text_into_its_own_tokens(tmp_path):
    pytest.importorskip("transformers")
    from headstart_lab.tokenizer import train_tokenizer

    tokenizer = train_tokenizer(["the car and the road"] * 4, 400, added_tokens=[])
    tokenizer.save_pretrained(tmp_path)
    expected = tokenizer("the car", add_special_tokens=False)["input_ids"]
    assert model_tokens(tmp_path)("the car") == expected


def test_a_directory_without_a_tokenizer_says_so(tmp_path):
    pytest.importorskip("transformers")
    with pytest.raises(ReplayError, match="no tokenizer"):
        model_tokens(tmp_path)
