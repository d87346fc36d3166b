"""A model by name: its config and its view, checked before any engine starts."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from headstart.doctor.findings import computes_on_cpu
from headstart.engine.model_name import check_name
from headstart.errors import EngineStartError, ModelConfigError
from headstart.models.chat import ChatView
from headstart.models.view import View, view_of
from headstart.speculation.board import TextVocabulary

# vLLM's own default on a CPU is nearly all of the machine's memory.
CPU_KV_CACHE_BYTES = 4 * 2**30
# Of vLLM's 128 tokens on a CPU, most of the newest frame would never be in a full block.
_CPU_BLOCK_SIZE = 32


@dataclass(frozen=True)
class Model:
    """A checkpoint that an engine can be started on."""

    name: str
    view: View

    @classmethod
    def checked(cls, name: str | Path, num_frames: int | None = None) -> Self:
        """Read its config; of a local directory, compare the weights with it too.

        ``num_frames`` are shown of a clip, where the model leaves it to the caller how many.
        """
        from transformers import AutoConfig
        from vllm.plugins import load_general_plugins

        check_name(str(name))
        load_general_plugins()  # a package may bring a model with a config that is its own
        try:
            config = AutoConfig.from_pretrained(name)
        except (OSError, ValueError) as error:
            raise EngineStartError(
                f"the config of {name} cannot be read ({str(error).splitlines()[0]}). Check its"
                " config.json."
            ) from error
        view = view_of(config)
        if Path(name).is_dir() and getattr(config, "quantization_config", None) is None:
            view.check_checkpoint(Path(name))
        return cls(str(name), view if num_frames is None else _showing(view, num_frames))


def text_vocabulary(hf_config: Any) -> TextVocabulary:
    """Everything in the vocabulary but the ids the config names as placeholders or marks.

    Configs name them ``image_token_index``, ``video_token_id``, ``bos_token_id`` and the like.
    The token that ends an answer is as good a draft as any.
    """
    text_config = hf_config.get_text_config()
    named = {
        value
        for config in (hf_config, text_config)
        for name, value in config.to_dict().items()
        if name.endswith(("_token_id", "_token_index"))
        and not name.startswith("eos_")
        and isinstance(value, int)
    }
    return TextVocabulary.of(text_config.vocab_size, named)


def _showing(view: View, num_frames: int) -> View:
    if num_frames < 1:
        raise ModelConfigError(f"{num_frames} frames of a clip: show the target one at least")
    if isinstance(view, ChatView):
        return replace(view, num_frames=num_frames)
    if view.num_frames == num_frames:
        return view
    raise ModelConfigError(
        f"the target is shown {view.num_frames or 'no'} frames, as in its training: leave the"
        " number of frames out"
    )


def engine_defaults() -> dict[str, Any]:
    """What we ask of vLLM where the caller does not say."""
    defaults: dict[str, Any] = {"enable_mm_processor_stats": True}
    if computes_on_cpu():
        defaults["kv_cache_memory_bytes"] = CPU_KV_CACHE_BYTES
        defaults["block_size"] = _CPU_BLOCK_SIZE
    return defaults
