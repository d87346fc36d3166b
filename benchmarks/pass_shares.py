"""What the target computes under load: the vision tower, prompts, answers, drafts.

    python -m benchmarks.pass_shares passes

Reads what `benchmarks.pass_timer` wrote, which says how to make it. The tower is timed by itself. A
straight line through all other time, over the answers, the drafted tokens and the prompts' tokens
of each pass, gives the rest. Prints a table, and one line of JSON last.
"""

import argparse
import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np
from benchmarks.pass_timer import Pass

LONGEST_GAP_S = 0.1  # between two passes: after a longer one the engine had nothing to do


def shares(passes: Sequence[Pass]) -> dict[str, float]:
    """Of the time in passes; and what a pass and what is in it take, in milliseconds."""
    parts = np.array([(1, p.answers, p.drafted_tokens, p.prompt_tokens) for p in passes], float)
    took = np.array([p.ended_s - p.begun_s for p in passes])
    tower = np.array([p.tower_s for p in passes])
    costs = np.linalg.lstsq(parts, took - tower, rcond=None)[0]
    spent, whole = (parts * costs).sum(axis=0), took.sum()
    gaps = [after.begun_s - before.ended_s for before, after in pairwise(passes)]
    return {
        "passes": len(passes),
        "tower": tower.sum() / whole,
        "prompts": spent[3] / whole,
        "answers": (spent[0] + spent[1]) / whole,
        "drafts": spent[2] / whole,
        "pass_ms": 1e3 * costs[0],
        "answer_ms": 1e3 * costs[1],
        "drafted_token_ms": 1e3 * costs[2],
        "prompt_token_ms": 1e3 * costs[3],
        "between_passes_ms": 1e3 * median(gap for gap in gaps if gap < LONGEST_GAP_S),
    }


def read(file: Path) -> list[Pass]:
    """What one worker wrote, but for a line that is not complete."""
    lines = file.read_text().split("\n")[:-1]
    return [Pass(*json.loads(line)) for line in lines]


def main() -> None:
    """Read and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    found = {
        file.name.removesuffix(".jsonl"): {
            name: round(float(value), 4) for name, value in shares(read(file)).items()
        }
        for file in sorted(parser.parse_args().directory.glob("*.jsonl"))
    }
    if not found:
        parser.error("no file of passes is there; see benchmarks/pass_timer.py")
    print(f"{'':20}" + "".join(f"{name:>24}" for name in found))
    for part in next(iter(found.values())):
        print(f"{part:20}" + "".join(f"{row[part]:24.3f}" for row in found.values()))
    print(json.dumps({"benchmark": "pass_shares", "workers": found}))


if __name__ == "__main__":
    main()
