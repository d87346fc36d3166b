"""The messages of a conversation, with their texts, pictures, videos and events."""

from typing import Annotated, Literal

from pydantic import Field, Tag

from headstart_server.bodies.kinds import (
    Body,
    Dropped,
    FunctionName,
    Int64,
    JsonText,
    Name,
    SensorText,
    tagged_by,
    tagged_by_kind,
)

# Clients send null for an empty field; vLLM refuses null in these.
_NOT_NULL = Field(exclude_if=lambda value: value is None)
SpeakerName = Annotated[Name | None, _NOT_NULL]


class TextPart(Body):
    """Text of a message."""

    type: Literal["text"]
    text: str


class ImageAddress(Body):
    """The address of a picture."""

    url: str = Field(min_length=1, description="A data URL, or another where the operator allows.")
    detail: Annotated[Literal["auto", "low", "high"] | None, Field(exclude=True)] = None


class ImagePart(Body):
    """A picture."""

    type: Literal["image_url"]
    image_url: ImageAddress


class VideoAddress(Body):
    """The address of a video."""

    url: str = Field(min_length=1, description="A data URL, or another where the operator allows.")


class VideoPart(Body):
    """A video."""

    type: Literal["video_url"]
    video_url: VideoAddress


class EventWindow(Body):
    """A window of an event camera's recording, on the recording's clock."""

    url: str = Field(
        min_length=1,
        description="A data URL, the id of an upload, or a file URL where the operator allows.",
    )
    start_us: Int64 | None = None
    stop_us: Int64 | None = None
    sensor: SensorText | None = None
    format: Literal["npy", "npz", "h5", "hdf5", "aedat4", "raw", "dat", "csv"] | None = None


class EventsPart(Body):
    """Events, for the drafter. The target does not see them."""

    type: Literal["event_url"]
    event_url: EventWindow


Part = Annotated[
    Annotated[TextPart, Tag("(text)")]
    | Annotated[ImagePart, Tag("(image_url)")]
    | Annotated[VideoPart, Tag("(video_url)")]
    | Annotated[EventsPart, Tag("(event_url)")],
    tagged_by("type", 'an object of type "text", "image_url", "video_url" or "event_url"'),
]
Content = Annotated[
    Annotated[str, Tag("(text)")] | Annotated[list[Part], Field(fail_fast=True), Tag("(list)")],
    tagged_by_kind("a text or a list of parts"),
]
TextContent = Annotated[
    Annotated[str, Tag("(text)")] | Annotated[list[TextPart], Field(fail_fast=True), Tag("(list)")],
    tagged_by_kind('a text or a list of parts {"type": "text", "text": "..."}'),
]


class CalledFunction(Body):
    """A function that the model called, with its arguments."""

    name: FunctionName
    arguments: JsonText = Field(description="JSON in a text, or nothing.")


class ToolCall(Body):
    """A call that the model made earlier."""

    id: Name
    type: Literal["function"]
    function: CalledFunction
    index: Dropped = None


class SystemMessage(Body):
    """Instructions for the model."""

    role: Literal["system", "developer"]
    content: TextContent
    name: SpeakerName = None


class UserMessage(Body):
    """A question, with the media it is about."""

    role: Literal["user"]
    content: Content
    name: SpeakerName = None


class AssistantMessage(Body):
    """An earlier answer of the model's, as clients send it back: with all its empty fields."""

    role: Literal["assistant"]
    content: TextContent | None = None
    name: SpeakerName = None
    tool_calls: Annotated[
        Annotated[list[ToolCall], Field(fail_fast=True, max_length=128)] | None, _NOT_NULL
    ] = None
    reasoning: Annotated[str | None, _NOT_NULL] = None
    reasoning_content: Annotated[str | None, _NOT_NULL] = None
    refusal: Annotated[str | None, Field(exclude=True)] = None
    annotations: Dropped = None
    audio: Annotated[None, Field(exclude=True)] = None
    function_call: Annotated[None, Field(exclude=True)] = None


class ToolMessage(Body):
    """The result of a tool call."""

    role: Literal["tool"]
    content: TextContent
    tool_call_id: Name
    name: SpeakerName = None


Message = Annotated[
    Annotated[SystemMessage, Tag("(system)")]
    | Annotated[SystemMessage, Tag("(developer)")]
    | Annotated[UserMessage, Tag("(user)")]
    | Annotated[AssistantMessage, Tag("(assistant)")]
    | Annotated[ToolMessage, Tag("(tool)")],
    tagged_by("role", 'an object of role "system", "developer", "user", "assistant" or "tool"'),
]
Messages = Annotated[list[Message], Field(fail_fast=True)]
