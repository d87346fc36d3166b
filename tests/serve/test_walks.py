"""How many files of ours somebody reads to follow one HTTP chat with a video and a preview."""

import json

import pytest

from rig.servers import CHAT, ENGINE, asking, chunks_of, free_port, running, start, toml
from tests.engine.walks import MAX_ASKED, NUM_COLD, Turn, walks_in
from tests.sizes import CAPS

pytestmark = pytest.mark.engine
ALIKE = 3
"""Only what runs for each of so many requests is theirs: a heartbeat may run beside one."""


@pytest.fixture
def watched(tmp_path, tiny_target):
    """A server, and the file of what runs in it."""
    seen, port = tmp_path / "seen", free_port()
    tables = {"server": {"target": tiny_target, "port": port, "open": True}, "vllm": ENGINE}
    (tmp_path / "headstart.toml").write_text(toml(tables))
    serve = ["serve", "--config", str(tmp_path / "headstart.toml")]
    command = ["-m", "tests.serve.watched_server", str(seen), *serve]
    with running(start(command, port, tmp_path / "log")) as server:
        yield server, seen


def test_a_chat_with_a_preview_walks_through_no_more_files(watched, clips):
    server, seen = watched
    client, turn, alike = server.client(), Turn(seen), []
    body = asking(clips / "street.mp4", "What is previewed?", max_tokens=60, ignore_eos=True)
    wishes = {"preview": True, "stream": "front"}
    for number in range(1, MAX_ASKED + 1):
        turn.to(number)
        reply = client.post(CHAT, json={**body, "stream": True, "headstart": wishes})
        turn.to(0)
        told = [chunk["headstart"] for chunk in chunks_of(reply.text) if "headstart" in chunk]
        is_previewed = "memory" in {each.get("source") for each in told}
        if number > NUM_COLD and is_previewed and told[-1]["accepted_tokens"]:
            alike.append(number)
        if len(alike) == ALIKE:
            break
    assert len(alike) == ALIKE, json.dumps(told)
    walks = [walks_in(seen)[number] for number in alike]
    walk = {name: set.intersection(*(one[name] for one in walks)) for name in walks[0]}
    print({process: len(files) for process, files in walk.items()})
    server_files = {"headstart_server/gateway.py", "headstart_server/response.py"}
    assert server_files <= walk["caller"]
    assert {"engine/scheduler.py", "drafters/memory.py"} <= walk["engine"]
    files = set().union(*walk.values())
    assert len(files) <= CAPS["walks"]["HTTP chat"], "\n".join(sorted(files))
