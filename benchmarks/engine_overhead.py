"""Does headstart's engine, without any head start, cost anything over plain vLLM?

Two engines on the same untrained model of the published geometry, the same prompts, asked in
turn: `vllm.LLM` and `Headstart`. Wall time of whole answers, prefill included, prefix cache
emptied by asking about fresh frames each time.

    python -m benchmarks.engine_overhead

Prints a table, then one line of JSON.
"""

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from contextlib import ExitStack
from datetime import date
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")

import numpy as np
from rich.console import Console
from rich.table import Table

QUESTION = "What is happening in this scene?"
ARGUMENTS = {"dtype": "bfloat16", "enforce_eager": True, "kv_cache_memory_bytes": 2**30}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--warm-up", type=int, default=3)
    parser.add_argument(
        "--headstart-first",
        action="store_true",
        help="build headstart's engine first: on a small machine the order of building matters",
    )
    parser.add_argument(
        "--max-draft-tokens",
        type=int,
        default=0,
        help="install the hooks in vLLM's scheduler, though nothing is drafted: what idling costs",
    )
    options = parser.parse_args()

    from vllm import LLM, SamplingParams

    from headstart import Headstart, Video
    from headstart.models.video_llava.view import video_prompt
    from headstart_lab.tiny import TinyVideoLlava
    from headstart_research.bench.run import REST_S

    with tempfile.TemporaryDirectory() as directory, ExitStack() as engines:
        target = Path(directory) / "target"
        TinyVideoLlava.real_geometry().save(target)
        if options.headstart_first:
            headstart = engines.enter_context(
                Headstart(target, max_draft_tokens=options.max_draft_tokens, vllm=ARGUMENTS)
            )
        plain = LLM(str(target), **ARGUMENTS)
        engines.callback(plain.llm_engine.engine_core.shutdown)
        if not options.headstart_first:
            headstart = engines.enter_context(
                Headstart(target, max_draft_tokens=options.max_draft_tokens, vllm=ARGUMENTS)
            )
        params = SamplingParams(temperature=0.0, max_tokens=options.tokens, ignore_eos=False)
        rng = np.random.default_rng(0)
        seconds: dict[str, list[float]] = {"vllm.LLM": [], "Headstart": []}

        def ask_plain(frames: np.ndarray) -> tuple[int, ...]:
            prompt = {
                "prompt": video_prompt(QUESTION),
                "multi_modal_data": {"video": frames},
            }
            (output,) = plain.generate(prompt, params, use_tqdm=False)
            return tuple(output.outputs[0].token_ids)

        def ask_headstart(frames: np.ndarray) -> tuple[int, ...]:
            video = Video.from_frames(frames, fps=8)
            return headstart.ask(video, QUESTION, max_tokens=options.tokens).token_ids

        asks = {"vllm.LLM": ask_plain, "Headstart": ask_headstart}
        for repeat in range(options.warm_up + options.repeats):
            frames = rng.integers(0, 256, (8, 224, 224, 3), dtype=np.uint8)
            answers = {}
            # Whoever goes first changes every time.
            for name in sorted(asks, reverse=bool(repeat % 2)):
                time.sleep(REST_S)
                start = time.perf_counter()
                answers[name] = asks[name](frames)
                if repeat >= options.warm_up:
                    seconds[name].append(time.perf_counter() - start)
            assert answers["vllm.LLM"] == answers["Headstart"], "the words differ"

    report(seconds, options)


def ratio_of_medians(bare: list[float], ours: list[float]) -> tuple[float, float, float]:
    """Above one where ours is faster; with a bootstrap interval over the pairs."""
    pairs = np.array([bare, ours])
    chosen = np.random.default_rng(0).integers(0, len(bare), (2000, len(bare)))
    medians = np.median(pairs[:, chosen], axis=2)
    low, high = np.quantile(medians[0] / medians[1], [0.025, 0.975])
    return statistics.median(bare) / statistics.median(ours), float(low), float(high)


def report(seconds: dict[str, list[float]], options: argparse.Namespace) -> None:
    """The table for a person, then the line for a program."""
    table = Table("engine", "median ms", "p10", "p90")
    for name, values in seconds.items():
        deciles = [value * 1e3 for value in statistics.quantiles(values, n=10)]
        median = statistics.median(values) * 1e3
        table.add_row(name, f"{median:.1f}", f"{deciles[0]:.1f}", f"{deciles[-1]:.1f}")
    Console().print(table)
    ratio, low, high = ratio_of_medians(seconds["vllm.LLM"], seconds["Headstart"])
    print(
        json.dumps(
            {
                "benchmark": "engine_overhead",
                "date": date.today().isoformat(),
                "machine": f"{platform.machine()}, {os.cpu_count()} cores",
                "model": "untrained Video-LLaVA, published geometry, 2 layers of 128",
                "headstart_first": options.headstart_first,
                "max_draft_tokens": options.max_draft_tokens,
                "tokens": options.tokens,
                "repeats": options.repeats,
                "ratio_of_medians": round(ratio, 4),
                "interval_95": [round(low, 4), round(high, 4)],
                "seconds": {k: [round(v, 5) for v in vs] for k, vs in seconds.items()},
            }
        )
    )


if __name__ == "__main__":
    main()
