"""Options on their way into vLLM's engine process, and what is refused there."""

from pathlib import Path

import pytest

from headstart.drafters.registry import MemoryLimits
from headstart.engine.options import SchedulerOptions, Sources
from headstart.errors import DraftingError


@pytest.mark.parametrize(
    "options",
    [
        SchedulerOptions(),
        SchedulerOptions(Sources(("ngram", "wrong"), resync=False), "/tmp/channel"),
        SchedulerOptions(memory=MemoryLimits(1 << 20, 1 << 18)),
        SchedulerOptions(Sources(("memory", "headstart.drafters.ngram:Ngram"))),
        SchedulerOptions(Sources(warm=False)),
        SchedulerOptions(Sources(memory_log=Path("/srv/site.jsonl"))),
    ],
)
def test_they_arrive_as_they_were_sent(options):
    assert SchedulerOptions.parse(options.additional_config()) == options


@pytest.mark.parametrize("absent", [{}, {"other": 1}, None, {"headstart": None}])
def test_absent_means_all_as_usual(absent):
    assert SchedulerOptions.parse(absent) == SchedulerOptions()


def test_a_person_may_name_one_alone():
    options = SchedulerOptions.parse({"headstart": {"sources": {"ngram": False}}})
    assert options == SchedulerOptions(Sources(("memory",)))


def test_what_a_drafter_takes_is_given_by_its_name_too():
    sources = Sources.parse({"bridge": "my-bridge", "ngram": False})
    assert sources.drafters == ("memory", "bridge=my-bridge")
    assert Sources.parse(sources.as_json()) == sources
    assert Sources.parse({"bridge": None}) == Sources()
    with pytest.raises(DraftingError, match="name it as bridge=DIRECTORY"):
        Sources.parse({"bridge": True})
    with pytest.raises(DraftingError, match="name it as ranker"):
        Sources.parse({"ranker": "much"})


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"warp": 1}, "It knows: channel, memory_bytes, memory_tenant_bytes, sources"),
        ({"sources": {"memroy": True}}, "memory"),
        ({"sources": {"memory": "no"}}, "say true or false"),
        ({"sources": {"warm": 1}}, "say true or false"),
        ({"sources": {"memory_log": 7}}, "give a path"),
        ({"sources": {"memory_log": "site.jsonl", "warm": False}}, "switch warm on"),
        ({"channel": 7}, "path of a directory"),
        ({"sources": {"drafters": "memory"}}, "list of names"),
        ({"sources": {"drafters": ["nowhere:Drafter"]}}, "package.module:Class"),
        ({"memory_bytes": 0}, "number of bytes"),
        ({"memory_tenant_bytes": True}, "number of bytes"),
        ({"memory_tenant_bytes": "1 GB"}, "number of bytes"),
        ([], "It knows"),
    ],
)
def test_what_nobody_knows_is_refused_by_name(given, named):
    with pytest.raises(DraftingError, match=named):
        SchedulerOptions.parse({"headstart": given})


def test_a_memory_log_is_looked_at_before_an_engine_starts(tmp_path):
    file = tmp_path / "site.jsonl"
    Sources().check_files()
    with pytest.raises(DraftingError, match=r"site\.jsonl cannot be read"):
        Sources(memory_log=file).check_files()
    file.write_text('{"question": "what?", "target_tokens": [1, 2]}\n')
    Sources(memory_log=file).check_files()
    file.write_text('{"question": "what?", "target_tokens": [1, 2]}\n{"question": "what?"}\n')
    with pytest.raises(DraftingError, match="line 2"):
        Sources(memory_log=file).check_files()
