"""What a request asks for, and what vLLM is handed of it.

vLLM gets its own request, without what it does not know: the events, the ``headstart`` object and
the prediction. Into it goes what only the server may say: whose cache, whose memory.
"""

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any

from headstart.engine.asking import FIELD, AskDetails
from headstart.serve.bodies.bounds import BodyBounds, clips_of
from headstart.serve.bodies.routes import ChatBody, CompletionBody, content_of, read_body
from headstart.serve.bodies.sampling import Wishes
from headstart.serve.fetching import EventPart, MediaPart
from headstart.serve.guard import CHAT, COMPLETIONS
from headstart.serve.prediction import Spelling
from headstart.serve.refusal import bad_request
from headstart.serve.settings import Limits

MAX_HEADER_LENGTH = 128


@dataclass(frozen=True)
class Asked:
    """One request, checked. Its media are not yet fetched."""

    content: dict[str, Any]
    """For vLLM. Whoever fetches `media` changes their parts in it."""
    media: tuple[MediaPart, ...] = ()
    details: AskDetails | None = None
    """What the drafters are told; none leaves the request to vLLM alone."""
    wishes: Wishes | None = None
    events: EventPart | None = None
    max_tokens: int = 256
    prediction: tuple[int, ...] | None = None
    """The tokens of the answer that the client expects; none if it sent no prediction."""
    grammar: str | None = None
    """What binds the answer: JSON of one field of vLLM's ``structured_outputs``."""

    def plain(self) -> bytes:
        """The body for vLLM, as it is when called."""
        return json.dumps(self.content).encode()

    def told(self, details: AskDetails, ask: str) -> bytes:
        """The same, with what the drafters are told and the name they know it by."""
        details = replace(details, ask=ask, preview=bool(self.wishes and self.wishes.preview))
        # vLLM's field takes text and numbers, no objects.
        told = json.dumps(details.extra_args()[FIELD])
        xargs = {**(self.content.get("vllm_xargs") or {}), FIELD: told}
        return json.dumps({**self.content, "vllm_xargs": xargs}).encode()


class Reading:
    """Reads requests' bodies. Safe to use from several threads."""

    def __init__(
        self,
        limits: Limits,
        spelling: Spelling,
        vocabulary: int,
        names_all_tokens: bool = True,
        closes_seed: bool = False,
    ) -> None:
        """See `BodyBounds` for what the served model is said to be."""
        self._bounds = BodyBounds(limits, vocabulary, names_all_tokens, closes_seed)
        self._spelling = spelling

    def read(self, body: bytes, tenant: str, path: str = CHAT, session: str = "") -> Asked:
        """Check a body; raises a `RefusedError` with what the client can mend.

        ``session`` is the header in which clients of vLLM name a session.
        """
        given = read_body(path, body)
        content = content_of(given)
        self._bounds.check(given, content)
        events = _take_events(content)
        media = tuple(_media_part(part) for part in clips_of(content))
        if path not in (CHAT, COMPLETIONS) or not isinstance(given, ChatBody | CompletionBody):
            return Asked(content, media)  # tokens are counted, and nothing is drafted
        if tenant:
            content["cache_salt"] = _salt(tenant, given.cache_salt)
        name = _session(given, session)
        if name is not None:
            content["session_id"] = name
        grammar = self._bounds.grammar(given)
        expected = None
        if isinstance(given, ChatBody) and given.prediction is not None:
            expected = self._spelling.tokens(given.prediction.text(), grammar is not None)
        wishes = given.headstart
        stream = wishes.stream if wishes is not None and wishes.stream is not None else name
        details = None
        if any(said is not None for said in (wishes, events, stream, expected)):
            details = AskDetails(stream, tenant, _question(content), draft=expected or ())
        most = _most_tokens(given)
        return Asked(content, media, details, wishes, events, most, expected, grammar)


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
    """Nobody's blocks are another tenant's. The client's own salt counts within its tenant."""
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
