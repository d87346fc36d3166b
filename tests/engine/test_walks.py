"""How many files of ours somebody reads to follow a question, a live window, or one drafted token.

Counted by a profiler: a file is on the way if one of its functions runs. The numbers only fall: who
makes a walk shorter lowers its cap in tests/sizes.toml, and who must make it longer says why there.
"""

import os

import pytest

pytest.importorskip("vllm")
from headstart.engine.options import Sources
from headstart.engine.request_record import Report, RequestRecord
from rig.forked_command import ForkedCommand
from rig.schedule_engine import scheduler
from rig.schedule_harness import Asked, Player, Turn
from tests.engine.walks import FIRST_WINDOW, walk_of, walks_in
from tests.golden.clock import CLOCK, turned
from tests.sizes import CAPS

pytestmark = pytest.mark.engine

PROMPT = tuple(range(5, 25))


@pytest.fixture(scope="module")
def walks(tmp_path_factory, tiny_target):
    """The files of the last question, and of the last window."""
    home = tmp_path_factory.mktemp("walks")
    seen, log = home / "seen", home / "log"
    command = ["-m", "tests.engine.walks", str(tiny_target), str(seen)]
    ended = ForkedCommand(command, os.environ, log).wait(500)
    assert ended == 0, log.read_text()[-3000:]
    found = walks_in(seen)
    return found[max(number for number in found if number < FIRST_WINDOW)], found[max(found)]


def held(walk, name):
    """All files of a walk, once it is found within its cap."""
    print(name, {process: len(files) for process, files in walk.items()})
    files = set().union(*walk.values())
    assert len(files) <= CAPS["walks"][name], "\n".join(sorted(files))
    return files


def test_a_warm_question_walks_through_no_more_files(walks):
    question, _ = walks
    held(question, "ask")
    assert "engine/session.py" in question["caller"]
    assert {"engine/scheduler.py", "drafters/memory.py"} <= question["engine"]


def test_a_live_window_walks_through_no_more_files(walks):
    _, window = walks
    files = held(window, "live window")
    assert {"live/session.py", "live/windows.py", "engine/window_prefiller.py"} <= window["caller"]
    assert {"engine/scheduler.py", "drafters/memory.py"} <= files


class ReportedPlayer(Player):
    """Passes take time, and what a request's end reports is kept."""

    def _execute(self, step):
        CLOCK.now_s += 0.02 + 0.0005 * step.total_num_scheduled_tokens
        return super()._execute(step)

    def _take(self, step, output):
        for outputs in self.scheduler.update_from_output(step, output).values():
            for one in outputs.outputs:
                self.report = one.kv_transfer_params


def asked(name, **told):
    return Asked(name, (Turn(PROMPT, {"max_tokens": 80, "ignore_eos": True, **told}),))


def test_a_drafted_token_walks_through_no_more_files():
    with turned():
        player = ReportedPlayer(scheduler(16, sources=Sources()))

        def passes():
            """Of one request: the functions that run for each pass, and whether it had a draft."""
            while player.scheduler.requests:
                step, functions = walk_of(player.step)
                yield functions, bool(step.scheduled_spec_decode_tokens)

        ours = {"extra_args": {"headstart": {"stream": "front"}}}
        for number in range(3):
            player.add(asked(f"cold-{number}", **ours))
            list(passes())
        player.add(asked("plain"))
        plain, drafted = set(), set()
        for functions, has_draft in passes():
            assert not has_draft
            plain |= functions
        player.add(asked("warm", **ours))
        *before_the_end, _ = passes()
        for functions, has_draft in before_the_end:
            drafted |= functions if has_draft else set()
        record = RequestRecord("warm", 0.0, 0.0)

        def read_report():
            record.report = Report.parse(player.report)
            return record.by_source()

        sources, reported = walk_of(read_report)
    assert sources.keys() == {"memory"}
    walk = {file for file, _ in (drafted - plain) | reported}
    print(len(walk))
    assert {"drafters/memory.py", "engine/scheduler.py", "engine/request_record.py"} <= walk
    assert len(walk) <= CAPS["walks"]["drafted token"], "\n".join(sorted(walk))
