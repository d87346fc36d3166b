"""Answers that the engines of a bench know from the start, whoever gave them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from headstart.drafters.memory_log import read_memory_log, write_memory_log
from headstart_research.bench.cameras import TENANT as CAMERAS
from headstart_research.bench.trial import tenant_of
from headstart_research.bench.workloads import Workload

FILE = "memory_log.jsonl"


def write_known_answers(
    log: Path, file: Path, workloads: Sequence[Workload], methods: Iterable[str], rounds: int
) -> None:
    """A memory log that every camera of the bench may quote.

    An answer belongs to a tenant, and each trial is a tenant of its own.
    """
    tenants = [
        CAMERAS,
        *(
            tenant_of(played.name, method, number)
            for work in workloads
            for played in work.played()
            for method in methods
            for number in range(rounds)
        ),
    ]
    answers = read_memory_log(log)
    write_memory_log(file, (replace(one, tenant=name) for name in tenants for one in answers))
