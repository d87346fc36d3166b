"""A request's body, checked: what vLLM is handed of it, and the question for the front end.

The models of `bodies` have checked each field. Here a body is held to what they cannot know: the
operator's limits, and the served model's size.

vLLM gets its own request, without what it does not know: the events, the ``headstart`` object and
the prediction. The server adds what only it may say: whose cache, whose memory.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from headstart.engine.question import Question
from headstart.engine.request_tags import FIELD, RequestTags
from headstart.speculation.drafter import StreamKey
from headstart_server.bodies.kinds import Body
from headstart_server.bodies.routes import (
    ChatBody,
    CompletionBody,
    DetokenizeBody,
    TokenizeChatBody,
    constraint_of,
    content_of,
    read_body,
)
from headstart_server.bodies.sampling import HeadstartOptions, Sampling
from headstart_server.limits import Limits
from headstart_server.media.fetcher import EventPart, MediaPart
from headstart_server.prediction import Tokenizing
from headstart_server.refusal import bad_request
from headstart_server.routes import CHAT, COMPLETIONS

MAX_HEADER_LENGTH = 128
CLIPS = ("image_url", "video_url")
_ADDRESSED = (*CLIPS, "event_url")
# Fields for which vLLM looks up the text of tokens that are not in the answer.
_NAMING_TOKENS = ("logprobs", "top_logprobs", "prompt_logprobs", "logprob_token_ids")


@dataclass(frozen=True)
class ParsedRequest:
    """One request, checked. Its media are not yet fetched."""

    content: dict[str, Any]
    """For vLLM. The media loader changes the parts of `media` in it."""
    question: Question
    media: tuple[MediaPart, ...] = ()
    options: HeadstartOptions | None = None
    events: EventPart | None = None
    grammar: str | None = None
    """What binds the answer: JSON of one field of vLLM's ``structured_outputs``."""

    def body(self, tags: RequestTags | None) -> bytes:
        """The body for vLLM, as it is when called, with what the drafters are told."""
        if tags is None:
            return json.dumps(self.content).encode()
        # vLLM's field takes text and numbers, no objects.
        told = json.dumps(tags.extra_args()[FIELD])
        xargs = {**(self.content.get("vllm_xargs") or {}), FIELD: told}
        return json.dumps({**self.content, "vllm_xargs": xargs}).encode()


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
                raise bad_request(
                    f"{name} is closed: this model's vocabulary is larger than its tokenizer's, and"
                    " vLLM 0.32 crashes when it has to tell the names of tokens without one"
                )

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


class RequestParser:
    """Parses requests' bodies. Safe to use from several threads."""

    def __init__(self, bounds: BodyBounds, tokenizing: Tokenizing) -> None:
        self._bounds, self._tokenizing = bounds, tokenizing

    def parse(self, body: bytes, tenant: str, path: str = CHAT, session: str = "") -> ParsedRequest:
        """Check a body; raises a `RefusedError` that says what the client can change.

        ``session`` is the header in which clients of vLLM name a session.
        """
        given = read_body(path, body)
        content = content_of(given)
        self._bounds.check(given, content)
        events = _take_events(content)
        media = tuple(_media_part(part) for part in clips_of(content))
        if path not in (CHAT, COMPLETIONS) or not isinstance(given, ChatBody | CompletionBody):
            # Tokens are counted, and nothing is drafted.
            return ParsedRequest(content, Question("", is_drafted=False), media)
        if tenant:
            content["cache_salt"] = _salt(tenant, given.cache_salt)
        name = _session(given, session)
        if name is not None:
            content["session_id"] = name
        grammar = self._bounds.grammar(given)
        prediction = None
        if isinstance(given, ChatBody) and given.prediction is not None:
            prediction = self._tokenizing.tokens(given.prediction.text(), grammar is not None)
        options = given.headstart
        stream = options.stream if options is not None and options.stream is not None else name
        question = Question(
            _question(content),
            max_tokens=_most_tokens(given),
            stream=None if stream is None else StreamKey(tenant, stream),
            tenant=tenant,
            is_free=grammar is None,
            prediction=prediction,
            is_drafted=any(said is not None for said in (options, events, stream, prediction)),
            previews=options is not None and options.preview,
            # Who asks for a cache of its own shares nothing, also not with who learns from answers.
            is_private=given.cache_salt is not None,
        )
        return ParsedRequest(content, question, media, options, events, grammar)


def _take_events(content: dict[str, Any]) -> EventPart | None:
    """The window of events, which vLLM does not know."""
    found: list[EventPart] = []
    for message in content.get("messages", ()):
        parts = message.get("content")
        if isinstance(parts, list):
            ours = [part for part in parts if part["type"] == "event_url"]
            found += map(EventPart.parse, ours)
            message["content"] = [part for part in parts if part["type"] != "event_url"]
    if len(found) > 1:
        raise bad_request("a request takes one event_url; cut the window to what is asked about")
    return found[0] if found else None


def _media_part(part: dict[str, Any]) -> MediaPart:
    if part["type"] == "image_url":
        return MediaPart("image", part["image_url"]["url"], part)
    return MediaPart("video", part["video_url"]["url"], part)


def _salt(tenant: str, given: str | None) -> str:
    """Keeps the tenants' cached blocks apart. The client's own salt counts within its tenant."""
    owner = hashlib.sha256(tenant.encode()).hexdigest()
    return hashlib.sha256(f"{owner}/{given or ''}".encode()).hexdigest()


def _session(given: ChatBody | CompletionBody, header: str) -> str | None:
    """The session's name in vLLM's own fields, in vLLM's order; it names the stream too."""
    if given.session_id:
        return given.session_id
    if header:
        if len(header) > MAX_HEADER_LENGTH:
            raise bad_request(
                f"the header X-Session-ID must have 1 to {MAX_HEADER_LENGTH} characters"
            )
        return header
    return (given.vllm_xargs.session_id if given.vllm_xargs else None) or None


def _most_tokens(given: ChatBody | CompletionBody) -> int:
    """How long a draft may be; long answers are drafted piece by piece."""
    most = given.max_tokens
    if isinstance(given, ChatBody):
        most = given.max_completion_tokens or most
    return most if most is not None and 0 < most < 4096 else 256


def _question(content: dict[str, Any]) -> str:
    """The words of the last message, or the prompt; they name the question to the memory."""
    prompt = content.get("prompt")
    words = prompt if isinstance(prompt, str) else ""
    for message in content.get("messages", ()):
        said = message.get("content")
        if isinstance(said, str):
            words = said
        elif isinstance(said, list):
            words = "\n".join(part["text"] for part in said if part["type"] == "text")
    return words


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
