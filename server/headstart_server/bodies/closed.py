"""Fields of vLLM's or OpenAI's interface that are refused here, each with the reason."""

_ENGINE = "it steers the engine"
_MEDIA = "it changes how media are read and prepared; the operator sets that"
_TEMPLATE = "the operator sets the chat template"
_RENDER = "it belongs to vLLM's render routes, which are not open"
_EMBEDDED = "embeddings are not taken; send the video or the picture"
_SILENT = "the model neither hears nor speaks"
_STRUCTURED = "use structured_outputs"

CLOSED: dict[str, str] = {
    "mm_processor_kwargs": _MEDIA,
    "media_io_kwargs": _MEDIA,
    "chat_template": _TEMPLATE,
    "documents": "put what the model shall read into messages",
    "kv_transfer_params": _ENGINE,
    "ec_transfer_params": _ENGINE,
    "priority": _ENGINE,
    "watermarking": _ENGINE,
    "routed_experts_prompt_start": _ENGINE,
    "logits_processors": _ENGINE,
    "request_id": "the server names requests; its name is in the answer's X-Request-Id",
    "use_beam_search": "it looks up the names of tokens outside the answer; use n",
    "length_penalty": "it belongs to use_beam_search, which is closed",
    "early_stopping": "it belongs to use_beam_search, which is closed",
    "best_of": "vLLM has no such field any more; use n",
    "suffix": "the model continues texts and fills no gaps",
    "prompt_embeds": "send text, token ids or a video",
    "return_token_offsets": _RENDER,
    "mm_payload": _RENDER,
    "return_mm_kwargs": _RENDER,
    "uuid": "media are named by their content",
    "functions": "use tools",
    "function_call": "use tool_choice",
    "audio": _SILENT,
    "web_search_options": "nothing is searched here",
    "defer_loading": "give the tools the model shall know",
    "disable_any_whitespace": "the operator sets it for all requests",
    "disable_additional_properties": "the operator sets it for all requests",
    "whitespace_pattern": "the operator sets it for all requests",
    "tools": "give tools beside messages, on routes that take them",
    "task": "say it in a text",
    "image_pil": "send an image_url",
    "image_embeds": _EMBEDDED,
    "audio_embeds": _EMBEDDED,
    "video_embeds": _EMBEDDED,
    "audio_url": _SILENT,
    "input_audio": _SILENT,
    "guided_json": _STRUCTURED,
    "guided_regex": _STRUCTURED,
    "guided_choice": _STRUCTURED,
    "guided_grammar": _STRUCTURED,
}
