"""Bounds that the pydantic models cannot hold: the operator's limits, the served model's size."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from headstart_server.bodies.kinds import Body
from headstart_server.bodies.routes import (
    ChatBody,
    CompletionBody,
    DetokenizeBody,
    TokenizeChatBody,
    constraint_of,
)
from headstart_server.bodies.sampling import Sampling
from headstart_server.limits import Limits
from headstart_server.refusal import RefusedError, bad_request

CLIPS = ("image_url", "video_url")
_ADDRESSED = (*CLIPS, "event_url")
# Fields for which vLLM looks up the text of tokens that are not in the answer.
_NAMING_TOKENS = ("logprobs", "top_logprobs", "prompt_logprobs", "logprob_token_ids")


@dataclass(frozen=True)
class BodyBounds:
    """Checks bodies. Safe to use from several threads."""

    limits: Limits
    vocabulary: int
    """Number of token ids."""
    names_all_tokens: bool = True
    """Whether the tokenizer has a text for every id that the model can produce."""
    closes_seed: bool = False
    """Whether sampled requests may have no seed: vLLM 0.32's engine crashes over one on CPUs where
    prompts are computed in chunks."""

    def check(self, body: Body, content: dict[str, Any]) -> None:
        """Raise a refusal unless a body, and the content vLLM gets of it, are within bounds."""
        limits = self.limits
        if isinstance(body, Sampling) and not isinstance(body, TokenizeChatBody):
            self._check_sampling(body)
        if isinstance(body, ChatBody):
            if len(body.messages) > limits.max_messages:
                raise bad_request(f"messages must be at most {limits.max_messages}")
            if sum(1 for _ in clips_of(content)) > limits.max_clips:
                raise bad_request(
                    f"a request may show {limits.max_clips} videos and pictures; send fewer"
                )
        if isinstance(body, CompletionBody) and body.n * num_prompts(body) > limits.max_messages:
            raise bad_request(
                f"a request may ask for {limits.max_messages} answers: prompts, times n; send fewer"
            )
        if _num_characters(content) > limits.max_text_characters:
            raise bad_request(
                f"all texts of a request may have {limits.max_text_characters} characters together"
            )
        for name, token in _tokens_of(body):
            if token >= self.vocabulary:
                raise bad_request(f"{name} must hold token ids below {self.vocabulary}")

    def _check_sampling(self, body: Sampling) -> None:
        if (body.n or 1) > self.limits.max_choices:
            raise bad_request(f"n must be at most {self.limits.max_choices}")
        if self.closes_seed and body.temperature != 0 and body.seed is not None:
            raise bad_request(
                "seed is closed where temperature is not 0: on this engine vLLM 0.32 crashes when a"
                " long prompt is sampled with a seed; leave seed out, or set temperature to 0"
            )
        if self.names_all_tokens:
            return
        # In a chat, echo asks for the prompt's log probabilities.
        naming = (*_NAMING_TOKENS, "echo") if isinstance(body, ChatBody) else _NAMING_TOKENS
        for name in naming:
            if (value := getattr(body, name, None)) is not None and value is not False:
                raise _nameless(name)

    def grammar(self, body: Body) -> str | None:
        """The constraint on the answer as JSON text, if any; raises a refusal if it is too long."""
        constraint = constraint_of(body)
        if constraint is None:
            return None
        grammar = json.dumps(constraint)
        if len(grammar.encode()) > self.limits.max_grammar_bytes:
            raise bad_request(
                f"the answer's grammar may have {self.limits.max_grammar_bytes} bytes; shorten it"
            )
        return grammar


def _nameless(name: str) -> RefusedError:
    return bad_request(
        f"{name} is closed: this model's vocabulary is larger than its tokenizer's,"
        " and vLLM 0.32 crashes when it has to tell the names of tokens without one"
    )


def clips_of(content: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for message in content.get("messages", ()):
        parts = message.get("content")
        for part in parts if isinstance(parts, list) else ():
            if part["type"] in CLIPS:
                yield part


def num_prompts(body: CompletionBody) -> int:
    prompt = body.prompt
    if isinstance(prompt, list) and not all(isinstance(item, int) for item in prompt):
        return len(prompt)
    return 1


def _num_characters(content: dict[str, Any]) -> int:
    """Characters of all texts and names except addresses of media; other values count as one."""
    count = 0
    waiting: list[Any] = [content]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            count += sum(map(len, item))
            waiting += (value for name, value in item.items() if name not in _ADDRESSED)
        elif isinstance(item, list):
            waiting += item
        else:
            count += len(item) if isinstance(item, str) else 1
    return count


def _tokens_of(body: Body) -> Iterator[tuple[str, int]]:
    """The largest token id of each field that has any."""
    found: dict[str, Any] = {}
    if isinstance(body, Sampling):
        found["logit_bias"] = [int(key) for key in body.logit_bias or ()]
        for name in ("allowed_token_ids", "stop_token_ids", "logprob_token_ids"):
            found[name] = getattr(body, name)
    if isinstance(body, CompletionBody):
        found["prompt"] = _prompt_ids(body.prompt)
    if isinstance(body, DetokenizeBody):
        found["tokens"] = body.tokens
    yield from ((name, max(ids)) for name, ids in found.items() if ids)


def _prompt_ids(prompt: Any) -> list[int]:
    if not isinstance(prompt, list):
        return []
    lists = prompt if prompt and isinstance(prompt[0], list) else [prompt]
    return [id for ids in lists for id in ids if isinstance(id, int)]
