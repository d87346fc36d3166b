"""A server's parts end with it, also those of one that cannot start."""

import asyncio
import threading
from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.slow
pytest.importorskip("vllm")
from transformers import LlamaConfig

from headstart.engine.startup import SCHEDULER
from headstart_server.memory.store import MemorySettings
from headstart_server.middleware import HeadstartMiddleware
from headstart_server.settings import Settings


def state_of(settings: Settings, vocabulary) -> SimpleNamespace:
    """What vLLM's application has at hand when its own parts are made."""
    engine = SimpleNamespace(
        model_config=SimpleNamespace(multimodal_config=None, hf_config=LlamaConfig()),
        renderer=SimpleNamespace(tokenizer=SimpleNamespace(get_vocab=vocabulary)),
        vllm_config=SimpleNamespace(scheduler_config=SimpleNamespace(scheduler_cls=SCHEDULER)),
    )
    args = SimpleNamespace(headstart=settings, additional_config=None)
    return SimpleNamespace(args=args, engine_client=engine)


async def app(scope, receive, send) -> None:
    await send({"type": "lifespan.startup.complete"})


def broken() -> dict:
    raise RuntimeError("no vocabulary")


@pytest.mark.parametrize("vocabulary", [lambda: {"a": 0}, broken], ids=["ours", "unforeseen"])
def test_a_server_that_cannot_start_leaves_no_process_no_thread_and_no_task(tmp_path, vocabulary):
    """Its store of memories cannot be made, when decoders and logs are there already."""
    (tmp_path / "file").write_bytes(b"")
    memory = MemorySettings(keys=(b"k" * 16,), store=str(tmp_path / "file" / "store"))
    settings = Settings(
        open=True, log=tmp_path / "log", answer_log=tmp_path / "answers", memory=memory
    )
    scope = {"type": "lifespan", "app": SimpleNamespace(state=state_of(settings, vocabulary))}
    sent, threads = [], set(threading.enumerate())

    async def send(message) -> None:
        sent.append(message)

    async def run() -> set[asyncio.Task]:
        if vocabulary is broken:
            with pytest.raises(RuntimeError, match="no vocabulary"):
                await HeadstartMiddleware(app)(scope, None, send)
        else:
            await HeadstartMiddleware(app)(scope, None, send)
        await asyncio.sleep(0)  # what was cancelled ends in its next turn
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(run()) == set()
    assert {one.name for one in set(threading.enumerate()) - threads} == set()
    if vocabulary is not broken:
        (failed,) = sent
        assert failed["type"] == "lifespan.startup.failed"
        assert "no memories can be kept" in failed["message"]
