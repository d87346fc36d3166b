"""Engines for parity, and a vLLM model without an engine, memory or weights."""

import pytest


@pytest.fixture(scope="module")
def engine(checkpoint):
    """A float32 engine on the module's checkpoint that gives whole logits."""
    from vllm import LLM

    from tests.models.oracle import BLOCK_SIZE

    llm = LLM(
        str(checkpoint),
        dtype="float32",
        enforce_eager=True,
        block_size=BLOCK_SIZE,
        max_num_seqs=8,
        max_logprobs=-1,
        logprobs_mode="raw_logits",
    )
    yield llm
    llm.llm_engine.engine_core.shutdown()


@pytest.fixture(scope="module")  # an engine in this process has its own, and ends it
def vllm_process_group(tmp_path_factory):
    """What vLLM's layers ask for when they are built: one process, one rank."""
    pytest.importorskip("vllm")
    from vllm.config import VllmConfig, set_current_vllm_config
    from vllm.distributed import (
        cleanup_dist_env_and_memory,
        ensure_model_parallel_initialized,
        init_distributed_environment,
    )

    rendezvous = tmp_path_factory.mktemp("rendezvous") / "file"
    with set_current_vllm_config(VllmConfig()):
        init_distributed_environment(1, 0, f"file://{rendezvous}", 0, "gloo")
        ensure_model_parallel_initialized(1, 1)
        yield
        cleanup_dist_env_and_memory()


@pytest.fixture
def meta_vllm_model(vllm_process_group, tmp_path):
    """Builds the vLLM model of a config on the meta device."""
    import torch
    from vllm.config import set_current_vllm_config
    from vllm.engine.arg_utils import EngineArgs
    from vllm.model_executor.model_loader.utils import initialize_model

    def build(config):
        config.save_pretrained(tmp_path)
        arguments = EngineArgs(
            str(tmp_path), dtype="float32", enforce_eager=True, skip_tokenizer_init=True
        )
        vllm_config = arguments.create_engine_config()
        with set_current_vllm_config(vllm_config), torch.device("meta"):
            return initialize_model(vllm_config)

    return build
