"""A request's body, checked: what vLLM is handed of it, and the question for the front end.

vLLM gets its own request, without what it does not know: the events, the ``headstart`` object and
the prediction. The server adds what only it may say: whose cache, whose memory.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from headstart.engine.question import Question
from headstart.engine.request_tags import FIELD, RequestTags
from headstart.speculation.drafter import StreamKey
from headstart_server.bodies.bounds import BodyBounds, clips_of
from headstart_server.bodies.routes import ChatBody, CompletionBody, content_of, read_body
from headstart_server.bodies.sampling import HeadstartOptions
from headstart_server.media.fetcher import EventPart, MediaPart
from headstart_server.prediction import Tokenizing
from headstart_server.refusal import bad_request
from headstart_server.routes import CHAT, COMPLETIONS

MAX_HEADER_LENGTH = 128


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
