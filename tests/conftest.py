"""Shared ground of the tests: small real models, the engines many tests share, random clips."""

import gc
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from rig.browser import browser
from rig.engine_starts import start_by_fork_server
from tests.live.paced import paced

if TYPE_CHECKING:
    from headstart import Headstart
    from tests.models.oracle import Oracle

__all__ = ["browser", "paced"]  # fixtures of every test

# Before anything imports vLLM or transformers.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
# Importing vLLM takes 12 s of a core, in each process. So `LLM` computes in the test's own
# process, and `Headstart` in one beside it instead of two. README's Python runs without this.
os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
QUICK_STARTS = str(Path(__file__).parent / "quick_starts")
if QUICK_STARTS not in os.environ.get("PYTHONPATH", ""):
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [QUICK_STARTS, os.environ.get("PYTHONPATH")])
    )
if "PYTEST_XDIST_WORKER" in os.environ:
    # One of several test processes: a thread each, on whichever core is free.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")

HAS_ENGINE = importlib.util.find_spec("vllm") is not None
# Files whose tests share engines, the longest first. They run in one process, one after the
# other, so that each engine starts once. The last share what is built of a release.
SHARED_ENGINES = (
    (
        "tests/serve/test_events.py",
        "tests/serve/test_live.py",
        "tests/serve/test_live_encoded.py",
        "tests/serve/test_live_record.py",
        "tests/serve/test_live_pace.py",
        "tests/serve/test_cameras.py",
        "tests/serve/test_live_fuzz.py",
        "tests/serve/test_memory_routes.py",
        "tests/serve/test_metrics.py",
        "tests/serve/test_openai_client.py",
        "tests/serve/test_page.py",
        "tests/serve/test_red_team.py",
        "tests/serve/test_refusals.py",
        "tests/serve/test_cache_miss_retry.py",
        "tests/serve/test_bytes.py",
        "tests/serve/test_sessions.py",
        "tests/serve/test_tenant_logs.py",
        "tests/serve/test_tenants.py",
    ),
    (
        "tests/serve/test_equal_to_vllm.py",
        "tests/serve/test_live_load.py",
        "tests/serve/test_own_pages.py",
        "tests/serve/test_prediction.py",
    ),
    ("tests/lab/test_on_engines.py", "tests/engine/test_asking_eventgpt.py"),
    (
        "tests/engine/test_headstart.py",
        "tests/engine/test_front_end.py",
        "tests/engine/test_session.py",
        "tests/engine/test_schema.py",
        "tests/engine/test_walks.py",
        "tests/bench/test_workload_json.py",
        "tests/bench/test_live_workload.py",
        "tests/bench/test_equality.py",
        "tests/bench/test_gpu_parts.py",
        "tests/live/test_live_session.py",
        "tests/live/test_standing.py",
        "tests/live/test_watching.py",
    ),
    ("tests/release/",),
)
WITHOUT_CACHE = {
    "dtype": "float32",
    "enforce_eager": True,
    "enable_prefix_caching": False,
    "kv_cache_memory_bytes": 2**28,
}


def group_of(file: str) -> str:
    """The first of the files that share engines with this one; itself if it shares none."""
    return next((files[0] for files in SHARED_ENGINES if file.startswith(files)), file)


def length_of(members: list[pytest.Item]) -> tuple[int, int, bool, bool]:
    """Sorts long groups first, so that none of them runs alone at the end."""
    longest, group = [files[0] for files in SHARED_ENGINES], group_of(members[0].location[0])
    limits = [mark.args[0] for item in members for mark in item.iter_markers("timeout")]
    return (
        longest.index(group) if group in longest else len(longest),
        -max(limits, default=0),
        not any(item.get_closest_marker("engine") for item in members),
        not any(item.get_closest_marker("slow") for item in members),
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("engine") and not HAS_ENGINE:
            item.add_marker(pytest.mark.skip(reason="vLLM is not installed: headstart[cpu]"))
        if item.get_closest_marker("nightly") and item.config.option.markexpr != "nightly":
            item.add_marker(pytest.mark.skip(reason="make nightly PARTS=tests, or -m nightly"))
        groups.setdefault(group_of(item.location[0]), []).append(item)
    for members in groups.values():
        members.sort(key=lambda item: item.get_closest_marker("last") is not None)
    items[:] = [item for members in sorted(groups.values(), key=length_of) for item in members]


def pytest_collection_finish() -> None:
    """What the tests' own process has imported is no garbage: see `rig/frozen_heap.py`."""
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("engine") and HAS_ENGINE:
        start_by_fork_server()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Of several test processes, each takes the next group as it has finished one."""
    from xdist.scheduler import LoadFileScheduling

    class LoadGroups(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(super()._split_scope(nodeid))

    return LoadGroups(config, log)


@pytest.fixture(scope="session")
def tiny_target(tmp_path_factory) -> Path:
    """An untrained Video-LLaVA of 17 tokens a frame."""
    from headstart_lab.tiny import TinyVideoLlava

    directory = tmp_path_factory.mktemp("tiny") / "target"
    TinyVideoLlava().save(directory)
    return directory


@pytest.fixture(scope="session")
def tiny_drafter(tmp_path_factory) -> Path:
    """An untrained EventGPT that spells as `tiny_target` does."""
    from headstart_lab.tiny import TinyEventGpt

    directory = tmp_path_factory.mktemp("tiny") / "drafter"
    TinyEventGpt().save(directory)
    return directory


@pytest.fixture(scope="session")
def real_geometry_target(tmp_path_factory) -> Path:
    """An untrained Video-LLaVA with the published frames: 257 tokens each, 8 of them."""
    from headstart_lab.tiny import TinyVideoLlava

    directory = tmp_path_factory.mktemp("real") / "target"
    TinyVideoLlava.real_geometry().save(directory)
    return directory


@pytest.fixture(scope="session")
def oracle(tiny_target) -> "Oracle":
    """transformers' own answers of `tiny_target`."""
    from tests.models.oracle import Oracle

    return Oracle(tiny_target)


@pytest.fixture(scope="session")
def headstart(tiny_target) -> "Iterator[Headstart]":
    """`tiny_target` with drafts from memory, verified whether they pay here or not."""
    from headstart import Headstart, Sources

    with Headstart(
        tiny_target,
        sources=Sources(abstain=False),
        max_draft_tokens=16,
        vllm={"dtype": "float32", "enforce_eager": True, "block_size": 32},
    ) as running:
        yield running


@pytest.fixture(scope="session")
def eventgpt_engine(tiny_drafter) -> "Iterator[Headstart]":
    """`tiny_drafter` asked as a model of its own, without drafts; nothing is cached."""
    from headstart import Headstart

    with Headstart(tiny_drafter, max_draft_tokens=0, vllm=WITHOUT_CACHE) as running:
        yield running


@pytest.fixture(scope="session")
def trained_pair():
    """The lab's trained pair of this checkout: models that say something true."""
    from headstart_lab.pair import Pair

    directory = Path(__file__).parents[1] / "lab" / "headstart_lab" / "pair"
    if not (directory / "target").is_dir() or not (directory / "drafter").is_dir():
        pytest.skip(f"no trained weights in {directory}: headstart lab train, see docs/lab.md")
    return Pair.at(directory)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261115)
