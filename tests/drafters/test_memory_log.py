"""Files of answers that memory knows from the start."""

import json

import pytest

from headstart.drafters.memory_log import RememberedAnswer, read_memory_log, write_memory_log
from headstart.drafters.registry import MemoryOptions, build_cascade
from headstart.drafters.tenant_memory import MAX_SITE_ANSWERS
from headstart.errors import DraftingError
from headstart.speculation.board import TextVocabulary
from headstart.speculation.drafter import DraftRequest, StreamKey


def test_what_is_written_is_read(tmp_path):
    file = tmp_path / "site.jsonl"
    answers = [
        RememberedAnswer("north", "Was ist los, \U0001f697?", (1, 2, 3)),
        RememberedAnswer("", "what?", (2**31 - 1,)),
    ]
    assert write_memory_log(file, answers) == answers
    assert read_memory_log(file) == answers


def test_of_each_tenant_the_newest_answers_are_kept(tmp_path):
    file = tmp_path / "site.jsonl"
    answers = [RememberedAnswer("loud", "what?", (n,)) for n in range(MAX_SITE_ANSWERS + 5)]
    write_memory_log(file, [RememberedAnswer("quiet", "what?", (7,)), *answers])
    kept = read_memory_log(file)
    assert [answer for answer in kept if answer.tenant == "loud"] == answers[5:]
    assert kept[0].tenant == "quiet"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("{", "line 2"),
        ("[" * 100_000, "line 2"),
        ("[1]", "not an object"),
        ('{"question": "q"}', "target_tokens"),
        ('{"target_tokens": [1]}', "question"),
        ('{"question": 7, "target_tokens": [1]}', "texts"),
        ('{"question": "q", "target_tokens": [1], "tenant": null}', "texts"),
        ('{"question": "q", "target_tokens": []}', "list of ids"),
        ('{"question": "q", "target_tokens": "ids"}', "list of ids"),
        ('{"question": "q", "target_tokens": [-1]}', "no id"),
        ('{"question": "q", "target_tokens": [2147483648]}', "no id"),
        ('{"question": "q", "target_tokens": [true]}', "no id"),
        ('{"question": "q", "target_tokens": [1.0]}', "no id"),
    ],
)
def test_a_broken_row_is_named_by_its_line(tmp_path, row, said):
    file = tmp_path / "site.jsonl"
    file.write_text(json.dumps({"question": "q", "target_tokens": [1]}) + "\n" + row + "\n")
    with pytest.raises(DraftingError, match=said) as error:
        read_memory_log(file)
    assert "line 2" in str(error.value)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xff\xfe"])
def test_a_file_without_answers_is_refused(tmp_path, content):
    file = tmp_path / "site.jsonl"
    file.write_bytes(content)
    with pytest.raises(DraftingError, match=r"site\.jsonl"):
        read_memory_log(file)


def test_an_id_that_is_no_text_is_never_drafted_from_a_log(tmp_path):
    file = tmp_path / "site.jsonl"
    write_memory_log(file, [RememberedAnswer("north", "what?", (5, 6, 40_000, 7))])
    cascade = build_cascade(("memory",), TextVocabulary(32_000), MemoryOptions(log=file))
    north = cascade.begin(DraftRequest("a", StreamKey("north", "front"), "what?"))
    assert cascade.propose(north, (), 8).tokens == (5, 6)
    south = cascade.begin(DraftRequest("b", StreamKey("south", "front"), "what?"))
    assert cascade.propose(south, (), 8).tokens == ()
