"""Does a draft change a token, whatever is asked? Settings of requests against bare vLLM.

    python -m tests.soak.promise [--answers 200]

A random Llama answers each question on bare vLLM and on vLLM with drafts verified whether they pay
or not: right ones, right ones without the end, short ones, partly wrong ones, the answers to other
questions, and what memory has of the stream. Between the questions, and first of all, are requests
of people who have no drafts. Both engines have the same settings. Tokens, text, the reason of the
end and logprobs (within 1e-3) are compared, of everybody. A cell without an accepted draft fails,
or with one where drafts are to be withheld, and so does one whose settings change no answer: it
would show nothing. On a CPU no draft is verified while a request samples: there seeded draws are
compared, and `tests/soak/sampling_law.py` counts the law. vLLM refuses n > 1 at temperature 0, so
n = 4 is among these. `tests/engine/promise_fields.py` says which fields of requests have no cell,
and why.

Prints a row a cell, and a JSON line last, which is also kept in benchmarks/results: as far as it
has come, after every engine. Ends with status 1 where a cell fails.
"""

import argparse
import os
import sys
import tempfile
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

# Before anything imports vLLM. Engines follow one another in this very process.
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"

from rich.console import Console
from rich.table import Table

from rig.measurement import RESULTS, Measurement
from tests.engine.promise_cells import GREEDY, SETUPS, STRUCTURED, Setup
from tests.engine.promise_engine import Engine
from tests.engine.promise_fields import ANOTHER_RUNNER, NOT_WORDS, REFUSED, fields_with_cells
from tests.engine.promise_grid import NUM_ANSWERS_A_PROMPT, Result, run_setup
from tests.engine.promise_model import save_adapter, save_model
from tests.soak.promise_ranks import Ranks

DATA_PARALLEL = Setup("data parallel 2", (GREEDY, STRUCTURED[0]), {"data_parallel_size": 2})
COLUMNS = ("answers", "drafted", "accepted", "remembered", "preemptions", "changed", "differences")


def main() -> None:
    """Compare and print."""
    options = _options()
    num_prompts = -(-options.answers // NUM_ANSWERS_A_PROMPT)
    results: list[Result] = []
    summary: dict[str, Any] = {}
    measurement = Measurement(
        "promise", ["python", "-m", "tests.soak.promise", *sys.argv[1:]], summary
    )
    with tempfile.TemporaryDirectory() as directory:
        model, adapter = Path(directory, "model"), Path(directory, "adapter")
        save_model(model)
        save_adapter(adapter)
        for setup in (*SETUPS, DATA_PARALLEL):
            if options.setups and setup.name not in options.setups:
                continue
            one, two = partial(Engine, model, adapter), partial(Ranks, model)
            start = two if setup is DATA_PARALLEL else one
            for result in run_setup(setup, start, num_prompts):
                results.append(result)
                remark = result.problem or result.withheld
                print(f"{setup.name}, {result.cell}: {remark}", file=sys.stderr, flush=True)
            summary.update(_summary(results))
            measurement.write(options.output)
    Console().print(_table(results))
    print(measurement.line())
    sys.exit(1 if summary["problems"] else 0)


def _summary(results: list[Result]) -> dict[str, Any]:
    totals = {name: sum(getattr(result, name) for result in results) for name in COLUMNS}
    problems = [
        f"{result.setup}, {result.cell}: {result.problem}" for result in results if result.problem
    ]
    return {
        "cells": len(results),
        "withheld": sum(bool(result.withheld) for result in results),
        "fields_with_cells": len(fields_with_cells()),
        "fields_refused": len({*REFUSED, *ANOTHER_RUNNER}),
        "fields_not_of_words": len(NOT_WORDS),
        **totals,
        "problems": problems,
        "grid": [asdict(result) for result in results],
    }


def _table(results: list[Result]) -> Table:
    table = Table("engine", "cell", *COLUMNS, "")
    for result in results:
        figures = [f"{getattr(result, name):,}" for name in COLUMNS]
        remark = result.problem or result.withheld
        table.add_row(result.setup, result.cell, *figures, remark)
    return table


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--answers", type=int, default=200, help="compared in each cell, at least")
    names = [setup.name for setup in (*SETUPS, DATA_PARALLEL)]
    parser.add_argument("--setups", nargs="+", choices=names, help="only these engines")
    parser.add_argument("--output", type=Path, default=RESULTS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
