"""Streams on a server of several engines: does each find its own memory again?

    python -m benchmarks.data_parallel TARGET --ranks 2 --streams 8

Starts `headstart serve` with vLLM's data parallelism, asks every stream the same question twice
and looks at what became of the second answer's drafts. vLLM's own metrics say which rank answered.
The last line is JSON: `answers`, `remembered` (streams whose second answer was drafted from the
first), `ranks` (how many answers each gave), `differences`.
"""

import argparse
import contextlib
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from tests.serve.servers import ENGINE, MODEL, Server, free_port, running, serve_command, start

from headstart.engine.affinity import rank_of
from headstart.speculation.drafter import StreamKey

_FINISHED = re.compile(r'^vllm:request_success_total\{.*?engine="(\d+)".*\} (\S+)$', re.MULTILINE)


def main() -> None:
    """Print a line a stream, then the JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--streams", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, started(options, Path(home)) as server:
        found = measured(server.client(), options.streams, options.ranks)
    print(json.dumps(found))
    everybody = found["remembered"] == options.streams and len(found["ranks"]) == options.ranks
    expected = found["ranks"] == found["expected_ranks"] and found["differences"] == 0
    sys.exit(0 if everybody and expected else 1)


@contextlib.contextmanager
def started(options: argparse.Namespace, home: Path) -> Iterator[Server]:
    """The server, until the block is left."""
    port = free_port()
    arguments = {**ENGINE, "served_model_name": MODEL, "data_parallel_size": options.ranks}
    words = ["--target", str(options.target), "--port", str(port), "--log", str(home / "log")]
    words.append("--open")
    for name, value in arguments.items():
        words += ["--vllm", f"{name}={json.dumps(value) if isinstance(value, bool) else value}"]
    with running(start(serve_command(*words), port, home / "server.log")) as server:
        yield server


def measured(client: httpx.Client, num_streams: int, num_ranks: int) -> dict[str, Any]:
    """Every stream asked twice, in turn."""
    names = [f"camera-{number}" for number in range(num_streams)]
    texts, remembered, differences = dict[str, str](), 0, 0
    expected: Counter[str] = Counter()
    before = finished(client)
    # The second time in the other order: vLLM's own choice, each rank in turn, then finds the
    # other rank for every stream.
    for turn, order in enumerate((names, names[::-1])):
        for name in order:
            text, accepted = asked(client, name)
            rank = rank_of(StreamKey("", name), num_ranks)
            expected[str(rank)] += 1
            print(f"{name} turn {turn}: rank {rank} expected, {accepted} tokens from memory")
            differences += text != texts.setdefault(name, text)
            remembered += turn == 1 and accepted > 0
    ranks = finished(client) - before
    return {
        "answers": 2 * num_streams,
        "remembered": remembered,
        "ranks": dict(sorted(ranks.items())),
        "expected_ranks": dict(sorted(expected.items())),
        "differences": differences,
    }


def asked(client: httpx.Client, stream: str) -> tuple[str, int]:
    """The answer, and how many of its tokens the stream's memory drafted."""
    body = {
        "model": MODEL,
        "messages": [{"role": "user", "content": f"What does {stream} see?"}],
        "max_tokens": 24,
        "temperature": 0,
        "headstart": {"stream": stream},
    }
    reply = client.post("/v1/chat/completions", json=body)
    reply.raise_for_status()
    answer = reply.json()
    memory = answer["headstart"]["sources"].get("memory", {})
    return answer["choices"][0]["message"]["content"], memory.get("accepted_tokens", 0)


def finished(client: httpx.Client) -> Counter[str]:
    """Answers that each rank has finished, by vLLM's count."""
    counts: Counter[str] = Counter()
    for rank, count in _FINISHED.findall(client.get("/metrics").text):
        counts[rank] += int(float(count))
    return counts


if __name__ == "__main__":
    main()
