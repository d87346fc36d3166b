"""The messages for invalid bodies: which field is wrong, and what would be right."""

from typing import Any

from pydantic import ValidationError

from headstart_server.refusal import RefusedError, bad_request

MOST_ECHOED = 64
_WORDS = {
    "missing": "is missing",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "string_type": "must be a text",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "none_required": "must be null or left out",
    "literal_error": "must be {expected}",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match {pattern}",
    "too_short": "must have at least {min_length} items",
    "too_long": "must have at most {max_length} items",
    "rule": "{said}",
}

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
"""Fields of vLLM's or OpenAI's interface that are refused here, each with the reason."""


def refusal_of(error: ValidationError) -> RefusedError:
    """A refusal that names the first error."""
    first = error.errors(include_url=False, include_input=False)[0]
    context = {name: _short(value) for name, value in first.get("ctx", {}).items()}
    path = _path(first["loc"])
    if first["type"] == "closed_field":
        return bad_request(_closed(path, str(context["name"])))
    said = _WORDS.get(first["type"], "is not right: {msg}").format(
        **{"said": first["msg"], "msg": first["msg"], **context}
    )
    if first["type"] == "rule" and not path:
        return bad_request(said)
    return bad_request(f"{path or 'the body'} {said}")


def _short(value: Any) -> Any:
    """A whole number without its decimal point."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _closed(path: str, name: str) -> str:
    shown = name[:MOST_ECHOED]
    where = f"{path}.{shown}" if path else shown
    reason = CLOSED.get(name)
    if reason is None:
        return f"{where} is not a field that is taken here; /openapi.json lists those that are"
    return f"{where} is not taken from clients: {reason}"


def _path(places: tuple[int | str, ...]) -> str:
    """The field's path, like ``messages[0].content``; tags in parentheses are left out."""
    path = ""
    for place in places:
        if isinstance(place, int):
            path += f"[{place}]"
        elif not place.startswith("(") and place != "[key]":
            path += f".{place[:MOST_ECHOED]}"
    return path.removeprefix(".")
