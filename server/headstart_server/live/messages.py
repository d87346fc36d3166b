"""The messages of live cameras: those of clients, checked, and those of the server.

docs/live-protocol.md describes them; docs/reference/websocket.md lists their fields.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, Tag, TypeAdapter, model_validator

from headstart.answers.preview import Preview, Shown
from headstart.errors import LiveError, MediaError
from headstart.live.window_question import WindowAnswer
from headstart.live.windows import Windows
from headstart.media.annex_b import Codec
from headstart.media.events import SensorSize
from headstart_client.wire import WINDOW_S
from headstart_server.bodies.kinds import (
    Body,
    Count,
    FreeJson,
    Name,
    Read,
    SensorText,
    read_json,
    rule,
    tagged_by,
)
from headstart_server.limits import Limits
from headstart_server.refusal import RefusedError, bad_request

MAX_TOKENS = 4096
"""Of one answer."""
Message = dict[str, object]
Question = Annotated[str, Field(min_length=1)]
AddressText = Annotated[str, Field(pattern=r"^[!-~]{1,2048}$")]
"""Printable ASCII without spaces."""


class CameraRequest(Body):
    """What is wanted of a camera, whoever brings its pictures."""

    stream: Name
    """The camera's name; its answers draft its next ones."""
    window_s: Annotated[float, Field(ge=0.01, le=86_400)] = WINDOW_S
    """Length of a window, s."""
    step_s: Annotated[float, Field(gt=0, le=86_400)] | None = None
    """From the start of a window to that of the next, at least an eighth of ``window_s``; else
    ``window_s``."""
    question: Question | None = None
    """Asked about every window."""
    json_schema: FreeJson | None = Field(default=None, alias="schema")
    """A JSON schema that the answers follow."""
    system: str = ""
    """A system prompt."""
    max_tokens: Annotated[int, Field(ge=1, le=MAX_TOKENS)] = 256
    """Of one answer."""
    when: Literal["always", "changed"] = "always"
    """``"changed"`` asks only where events show a change; it needs events."""
    at_least_s: Annotated[float, Field(gt=0, le=86_400)] | None = None
    """With ``"changed"``: ask at least so often."""
    simulate_events: bool = False
    """Whether events are computed from the pictures."""
    previews: bool = False
    """Whether words are sent as they come, drafted ones before they are certain."""
    compare: bool = False
    """Whether vLLM alone is asked about each window too; the server must have been started with
    ``compare``."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.at_least_s is not None and self.when != "changed":
            raise rule('at_least_s goes with "when": "changed"; leave it out, or say so')
        if self.question is None and (self.json_schema or self.previews or self.compare):
            raise rule("schema, previews and compare go with a standing question; add question")
        if self.when == "changed" and not self._has_events:
            raise rule(
                '"when": "changed" needs events: set simulate_events, or on a socket name the'
                " sensor whose events you send"
            )
        try:
            _ = self.windows
        except LiveError as error:
            raise rule(str(error)) from error
        return self

    @property
    def windows(self) -> Windows:
        """The windows that are asked for."""
        return Windows(self.window_s, self.step_s)

    @property
    def _has_events(self) -> bool:
        return self.simulate_events


class Start(CameraRequest):
    """Begin a camera whose pictures come over this socket."""

    type: Literal["start"]
    sensor: SensorText | None = None
    """Size of the event camera whose events are sent."""
    codec: Annotated[Codec, Field(strict=False)] | None = None
    """Of the encoded video that the camera sends in place of pictures."""

    @model_validator(mode="after")
    def _sensor_fits(self) -> Self:
        if self.simulate_events and self.sensor is not None:
            raise rule("sensor is for events that you send; leave it or simulate_events out")
        try:
            _ = self.sensor_size
        except MediaError as error:
            raise rule(str(error)) from error
        return self

    @property
    def _has_events(self) -> bool:
        return self.simulate_events or self.sensor is not None

    @property
    def sensor_size(self) -> SensorSize | None:
        """Of the events that the client sends; none if it sends none."""
        return None if self.sensor is None else SensorSize.parse(self.sensor)


class Registration(CameraRequest):
    """Watch a camera that the server reads itself: the body of ``POST /v1/cameras``."""

    source: AddressText
    """Its address: ``rtsp://``, ``rtsps://``, ``http://`` or ``https://``; it may hold a name and a
    password."""
    question: Question
    """Asked about every window."""
    hook: AddressText | None = None
    """An address that answers are posted to, or an MQTT broker that they are published to."""


class Resume(Body):
    """Go on with a camera whose connection broke."""

    type: Literal["resume"]
    token: Annotated[str, Field(min_length=1, max_length=128)]
    """From ``started``."""
    number: Count
    """The last answer that has arrived; 0 if none has."""


class Ask(Body):
    """Ask about the current window."""

    type: Literal["ask"]
    id: Name
    """Of your choice; the answer has it too."""
    question: Question
    """What to ask."""
    json_schema: FreeJson | None = Field(default=None, alias="schema")
    """A JSON schema that the answer follows."""
    max_tokens: Annotated[int, Field(ge=1, le=MAX_TOKENS)] = 256
    """Of the answer."""


class Ack(Body):
    """All answers up to this number have arrived."""

    type: Literal["ack"]
    number: Count


class End(Body):
    """No more frames come."""

    type: Literal["end"]


FromClient = Start | Resume | Ask | Ack | End
_MESSAGES: TypeAdapter[FromClient] = TypeAdapter(
    Annotated[
        Annotated[Start, Tag("(start)")]
        | Annotated[Resume, Tag("(resume)")]
        | Annotated[Ask, Tag("(ask)")]
        | Annotated[Ack, Tag("(ack)")]
        | Annotated[End, Tag("(end)")],
        tagged_by("type", 'an object of type "start", "resume", "ask", "ack" or "end"'),
    ]
)
_REGISTRATION = TypeAdapter(Registration)


def read_message(text: str, limits: Limits) -> FromClient:
    """Check a client's message; raises a refusal that says what to change."""
    return _read(_MESSAGES, text, limits)


def read_registration(body: bytes, limits: Limits) -> Registration:
    """Check the body of a registration; raises a refusal that says what to change."""
    return _read(_REGISTRATION, body, limits)


def _read(kind: TypeAdapter[Read], content: str | bytes, limits: Limits) -> Read:
    # A character of JSON is at least one of a text: a longer one is over the limit in any case.
    if len(content) > 2 * (limits.max_text_characters + limits.max_grammar_bytes):
        raise bad_request("the message is too long; shorten its question, system or schema")
    message = read_json(kind, content, "message")
    if isinstance(message, CameraRequest | Ask):
        _check_texts(message, limits)
    return message


def _check_texts(message: CameraRequest | Ask, limits: Limits) -> None:
    system = message.system if isinstance(message, CameraRequest) else ""
    if len(message.question or "") + len(system) > limits.max_text_characters:
        most = limits.max_text_characters
        raise bad_request(f"question and system may have {most} characters together")
    grammar_of(message.json_schema, limits)


def grammar_of(schema: Mapping[str, Any] | None, limits: Limits) -> str | None:
    """A schema as the decoders check it; raises a refusal if it is too long."""
    if schema is None:
        return None
    grammar = json.dumps({"json": schema})
    if len(grammar.encode()) > limits.max_grammar_bytes:
        raise bad_request(f"schema may have {limits.max_grammar_bytes} bytes; shorten it")
    return grammar


def answer_message(answer: WindowAnswer) -> Message:
    """An answer, without its number or the id of its question."""
    said = answer.answer
    return {
        "type": "answer",
        "start_us": answer.start_us,
        "stop_us": answer.stop_us,
        "num_frames": answer.num_frames,
        "text": said.text,
        "finish_reason": said.finish_reason,
        "first_token_s": round(answer.first_token_s, 4),
        "wait_s": round(answer.wait_s, 4),
        "num_passes": said.num_passes,
        "num_tokens": len(said.token_ids),
        "accepted": said.num_accepted_tokens,
    }


def words_message(shown: Shown, number: int) -> Message:
    """Words of the answer that will have this number."""
    kind = type(shown).__name__.lower()
    message: Message = {"type": kind, "number": number, "text": shown.text}
    return {**message, "source": shown.source} if isinstance(shown, Preview) else message


def error_message(refusal: RefusedError, *, is_last: bool, id: str | None = None) -> Message:
    """A refusal. After the last one the server closes the socket."""
    message: Message = {
        "type": "error",
        "code": refusal.status.name.lower(),
        "message": refusal.message,
        "is_last": is_last,
    }
    more = {"id": id, "retry_after_s": refusal.retry_after_s}
    return message | {name: value for name, value in more.items() if value is not None}
