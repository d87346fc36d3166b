"""What a request asks for, and what vLLM is handed of it.

vLLM gets its own request, without what it does not know: the events, the ``headstart`` object and
the prediction. Into it goes what only the server may say: whose cache, whose memory, whose frames.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from headstart.engine.asking import FIELD, AskDetails
from headstart.models.ownership import owned_id
from headstart.serve import prediction
from headstart.serve.fetching import EventPart, Fetching
from headstart.serve.guard import CHAT, COMPLETIONS
from headstart.serve.prediction import Spelling, predicted_text
from headstart.serve.refusal import bad_request
from headstart.serve.settings import Limits

MAX_STREAM_LENGTH = 128
# Fields that reach into the engine, or into the memory of other requests.
_TAKEN_AWAY = ("kv_transfer_params", "ec_transfer_params", "request_id", "priority")
# Fields for which vLLM looks up the names of tokens that were not said.
_NAMING_TOKENS = (
    "logprobs",
    "top_logprobs",
    "prompt_logprobs",
    "logprob_token_ids",
    "prompt_logprob_token_ids",
    "use_beam_search",
)
_WISHES = {"stream": str, "preview": bool, "timeline": bool}


@dataclass(frozen=True)
class Wishes:
    """The ``headstart`` object of a request."""

    stream: str | None = None
    """Whose memory: one camera's, one conversation's. Each tenant's streams are its own."""
    preview: bool = False
    """Whether drafts are shown while the answer is on its way."""
    timeline: bool = False
    """Whether the answer says where its time went."""

    @classmethod
    def parse(cls, given: object) -> "Wishes | None":
        """What the client wrote; nothing at all is none."""
        if given is None:
            return None
        if not isinstance(given, dict):
            raise bad_request('headstart must be an object, e.g. {"stream": "camera-7"}')
        for name, value in given.items():
            if name not in _WISHES:
                raise bad_request(
                    f"headstart knows no {name[:64]!r}; it knows {', '.join(_WISHES)}"
                )
            if not isinstance(value, _WISHES[name]):
                raise bad_request(f"headstart.{name} must be {_WISHES[name].__name__}")
        if (stream := given.get("stream")) is not None:
            _check_name("headstart.stream", stream)
        return cls(**given)


@dataclass(frozen=True)
class Asked:
    """One request, checked."""

    body: bytes
    """For vLLM, as far as no drafts are looked for; see `told`."""
    content: dict[str, Any] | None = None
    """The same, parsed; none if it is not ours to understand: vLLM says what is wrong with it."""
    details: AskDetails | None = None
    """What the drafters are told; none leaves the request to vLLM alone."""
    wishes: Wishes | None = None
    events: EventPart | None = None
    max_tokens: int = 256
    prediction: tuple[int, ...] | None = None
    """The tokens of the answer that the client expects; none if it sent no prediction."""

    def told(self, details: AskDetails, ask: str) -> bytes:
        """The body for vLLM, with what the drafters are told and the name they know it by."""
        details = replace(details, ask=ask, preview=bool(self.wishes and self.wishes.preview))
        # vLLM's field takes text and numbers, no objects.
        told = json.dumps(details.extra_args()[FIELD])
        content = self.content or {}
        xargs = {**(content.get("vllm_xargs") or {}), FIELD: told}
        return json.dumps({**content, "vllm_xargs": xargs}).encode()


class Reading:
    """Reads requests' bodies. Safe to use from several threads: pure but for file look-ups."""

    def __init__(
        self,
        fetching: Fetching,
        limits: Limits,
        spelling: Spelling,
        names_all_tokens: bool = True,
    ) -> None:
        """``names_all_tokens``: whether the tokenizer knows every id the model can say."""
        self._fetching = fetching
        self._limits = limits
        self._spelling = spelling
        self._names_all_tokens = names_all_tokens

    def read(self, body: bytes, tenant: str, path: str = CHAT, session: str = "") -> Asked:
        """Check a body; raises a `RefusedError` with what the client can mend.

        ``session`` is the header in which clients of vLLM name a session.
        """
        content = _parsed(body)
        if not isinstance(content, dict):
            return Asked(body)
        given = content.pop(FIELD, None)
        wishes = Wishes.parse(given)
        self._check_size(content)
        for name in _TAKEN_AWAY:
            content.pop(name, None)
        events = self._take_events(content)
        self._check_addresses(content)
        if (xargs := content.get("vllm_xargs")) is not None:
            if not isinstance(xargs, dict):
                raise bad_request("vllm_xargs must be an object")
            for name in (FIELD, *_TAKEN_AWAY):
                xargs.pop(name, None)
        if tenant:
            _keep_apart(content, tenant)
        expected = self._take_prediction(content) if path == CHAT else None
        stream = wishes.stream if wishes else None
        if stream is None and path in (CHAT, COMPLETIONS):
            stream = _session(content, session)
        details = None
        if any(given is not None for given in (wishes, events, stream, expected)):
            details = AskDetails(stream, tenant, _question(content), draft=expected or ())
        most = content.get("max_completion_tokens") or content.get("max_tokens")
        max_tokens = most if isinstance(most, int) and 0 < most < 4096 else 256
        told = json.dumps(content).encode()
        return Asked(told, content, details, wishes, events, max_tokens, expected)

    def _check_size(self, content: dict[str, Any]) -> None:
        for name in ("n", "best_of"):
            count = content.get(name)
            if isinstance(count, int) and count > self._limits.max_choices:
                raise bad_request(f"{name} may be {self._limits.max_choices} at most")
        if not self._names_all_tokens:
            for name in _NAMING_TOKENS:
                if content.get(name) is not None and content[name] is not False:
                    raise bad_request(
                        f"{name} is closed: this model's vocabulary is larger than its tokenizer's,"
                        " and vLLM 0.32 ends when it has to tell the names of tokens without one"
                    )
        for name in ("messages", "prompt"):
            many = content.get(name)
            # A prompt may also be a list of token ids, of any length the model takes.
            if not isinstance(many, list) or all(isinstance(item, int) for item in many):
                continue
            if len(many) > self._limits.max_messages:
                raise bad_request(f"{name} may be {self._limits.max_messages} at most")

    def _take_prediction(self, content: dict[str, Any]) -> tuple[int, ...] | None:
        text = predicted_text(content.pop(prediction.FIELD, None))
        if text is None:
            return None
        if content.get("n") not in (None, 1):
            raise bad_request("a prediction is for one answer: leave n out, or the prediction")
        return self._spelling.tokens(text, _is_structured(content))

    def _take_events(self, content: dict[str, Any]) -> EventPart | None:
        found: list[EventPart] = []
        for message in _messages(content):
            parts = message.get("content")
            if not isinstance(parts, list):
                continue
            ours = [part for part in parts if _is_event_part(part)]
            if ours:
                found += [EventPart.parse(part) for part in ours]
                message["content"] = [part for part in parts if not _is_event_part(part)]
        if len(found) > 1:
            raise bad_request(
                "a request takes one event_url; cut the window to what is asked about"
            )
        return found[0] if found else None

    def _check_addresses(self, content: dict[str, Any]) -> None:
        for message in _messages(content):
            for name, value in _fields(message.get("content")):
                if name.endswith("_embeds"):
                    raise bad_request("embeddings are not taken from clients; send the video")
                if (name == "url" or name.endswith("_url")) and not isinstance(value, dict):
                    self._fetching.check_address(value)


def _parsed(body: bytes) -> Any:
    """What the body holds; none if it is no JSON, of which vLLM tells in its own words."""

    def refuse(name: str) -> None:
        raise bad_request(f"{name} is no number in JSON")

    try:
        content = json.loads(body, parse_constant=refuse)
        if b"\\ud" in body.lower():
            # Half a character cannot be said back to anybody.
            json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise bad_request("a text holds half a surrogate pair, which is no character") from error
    except RecursionError as error:
        raise bad_request("the JSON is nested too deeply") from error
    except ValueError:
        return None
    return content


def _messages(content: dict[str, Any]) -> Iterator[dict[str, Any]]:
    messages = content.get("messages")
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict):
            yield message


def _is_event_part(part: object) -> bool:
    return isinstance(part, dict) and (part.get("type") == "event_url" or "event_url" in part)


def _fields(value: object) -> Iterator[tuple[str, Any]]:
    """Every named value in what a message holds, however deep."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield from item.items()
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item


def _keep_apart(content: dict[str, Any], tenant: str) -> None:
    """Nobody's blocks, frames or memory are another tenant's."""
    owner = hashlib.sha256(tenant.encode()).hexdigest()
    salt = content.get("cache_salt")
    if salt is None or isinstance(salt, str):
        # The client's own salt counts within its tenant.
        content["cache_salt"] = hashlib.sha256(f"{owner}/{salt or ''}".encode()).hexdigest()
    for message in _messages(content):
        parts = message.get("content")
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict) and any(name.endswith("_url") for name in part):
                shown = json.dumps([part.get(name) for name in ("video_url", "image_url")])
                digest = hashlib.sha256(shown.encode()).hexdigest()
                part["uuid"] = owned_id(owner, digest)


def _is_structured(content: dict[str, Any]) -> bool:
    """Whether a grammar binds the answer."""
    free = content.get("response_format") in (None, {"type": "text"})
    return not free or content.get("structured_outputs") is not None


def _session(content: dict[str, Any], header: str) -> str | None:
    """The session's name in vLLM's own fields, in vLLM's order; it names the stream too.

    What is not text is left to vLLM, which refuses it.
    """
    xargs = content.get("vllm_xargs") or {}
    for field, name in (
        ("session_id", content.get("session_id")),
        ("the header X-Session-ID", header),
        ("vllm_xargs.session_id", xargs.get("session_id")),
    ):
        if isinstance(name, str) and name:
            _check_name(field, name)
            return name
    return None


def _check_name(field: str, name: str) -> None:
    if not 0 < len(name) <= MAX_STREAM_LENGTH:
        raise bad_request(f"{field} must have 1 to {MAX_STREAM_LENGTH} characters")


def _question(content: dict[str, Any]) -> str:
    """The words of the last message, or the prompt; they name the question to the memory."""
    prompt = content.get("prompt")
    words = prompt if isinstance(prompt, str) else ""
    for message in _messages(content):
        said = message.get("content")
        if isinstance(said, str):
            words = said
        elif isinstance(said, list):
            texts = [part.get("text") for part in said if isinstance(part, dict)]
            words = "\n".join(text for text in texts if isinstance(text, str))
    return words
