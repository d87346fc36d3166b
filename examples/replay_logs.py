"""Replay answers that you have logged: what would drafting be worth on your cameras?

    python examples/replay_logs.py answers.jsonl

No model is needed. The log has a line of JSON for each answer, in any order, as `headstart watch
--record` and a server's `answer_log` write it, or by hand:

    {"time": 17.0, "stream": "front", "question": "What is there?", "target_text": "A car turns."}

`headstart replay` does the same, and prints more, for rows that are in the order of their answers.
"""

import argparse
import json
from pathlib import Path

from headstart.speculation.drafter import DraftRequest, StreamKey
from headstart_research.bench.log import LoggedAnswer, WordTokens
from headstart_research.bench.replay import DraftLimits, methods, replay


def read(file: Path) -> list[LoggedAnswer]:
    """Your log's answers in the order they were given. Change this to fit your log."""
    rows = sorted(map(json.loads, file.read_text().splitlines()), key=lambda row: row["time"])
    words = WordTokens()  # where a log has no tokens, words are counted in their place
    return [
        LoggedAnswer(
            DraftRequest(str(number), StreamKey("", row["stream"]), row["question"]),
            tuple(row.get("target_tokens") or words(row["target_text"])),
        )
        for number, row in enumerate(rows)
    ]


def main() -> None:
    """Print how many tokens of an answer each way of drafting gets out of one pass of the model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log", type=Path, help="answers, a line of JSON each")
    log = read(parser.parse_args().log)

    for make in methods(log):
        played = replay(log, make(), DraftLimits())
        bound = " (knows the answer: an upper bound)" if played.cheats else ""
        print(f"{played.tokens_per_pass:6.2f} a pass  {played.method}{bound}")


if __name__ == "__main__":
    main()
