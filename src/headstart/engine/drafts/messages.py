"""What the front end, a draft model's process and the target's scheduler send each other.

Messages are msgpack of fixed types, never pickle. A message that is not one of these is dropped,
and none can make its reader run anything. ``request`` is the front end's name of a request.
"""

from typing import Self, TypeVar

import msgspec
import numpy as np

from headstart.speculation.draft import Draft
from headstart.speculation.drafter import Features

MAX_DRAFTED_BYTES = 64 * 1024
MAX_SEEN_BYTES = 4 * 2**20  # features of a clip are in it, `MAX_TOKENS` vectors at most
MAX_ASKED_BYTES = 256 * 2**20  # the pictures of a clip are in it


class Stamps(msgspec.Struct, frozen=True, array_like=True):
    """When a draft model's stages began and ended, on the machine's monotonic clock."""

    asked_s: float
    preprocessed_s: float
    scheduled_s: float
    vision_end_s: float
    first_token_s: float


class Drafted(msgspec.Struct, frozen=True, tag=True):
    """A source's whole draft of one answer, as of now.

    Whole, not what was added: a lost message costs nothing once the next has come.
    """

    request: str
    draft: Draft
    stamps: Stamps | None = None


class Seen(msgspec.Struct, frozen=True, tag=True):
    """What a vision tower beside the target made of a request's clip: float16."""

    request: str
    name: str
    """By which drafters know it."""
    shape: tuple[int, int]
    values: bytes
    """Little-endian."""

    @classmethod
    def of(cls, request: str, name: str, features: Features) -> Self:
        num_tokens, size = features.shape
        return cls(request, name, (num_tokens, size), features.astype("<f2", copy=False).tobytes())

    def features(self) -> dict[str, Features] | None:
        """What was sent, by its name; none where it is not what it says it is."""
        num_tokens, size = self.shape
        if not (num_tokens > 0 and size > 0 and len(self.values) == 2 * num_tokens * size):
            return None
        found: Features = np.frombuffer(self.values, "<f2").reshape(self.shape)
        return {self.name: found} if np.isfinite(found).all() else None


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The draft model's engine is up."""

    pid: int


class Ask(msgspec.Struct, frozen=True, tag=True):
    """Draft the answer to a question about these pictures, uint8 of ``shape``.

    A model that is only a tower looks at them and drafts nothing.
    """

    request: str
    question: str
    shape: tuple[int, int, int, int]
    pictures: bytes
    max_tokens: int
    asked_s: float


class Said(msgspec.Struct, frozen=True, tag=True):
    """The target's answer so far, which the draft did not foresee."""

    request: str
    tokens: tuple[int, ...]


class Leave(msgspec.Struct, frozen=True, tag=True):
    """The answer is complete, or was cancelled."""

    request: str


ToDraftModel = Ask | Said | Leave
FromDraftModel = Drafted | Seen | Ready

_to_draft_model = msgspec.msgpack.Decoder(ToDraftModel)
_from_draft_model = msgspec.msgpack.Decoder(FromDraftModel)
_encoder = msgspec.msgpack.Encoder()

Message = TypeVar("Message")


def encode(message: ToDraftModel | FromDraftModel) -> bytes:
    return _encoder.encode(message)


def read_by_draft_model(data: bytes) -> ToDraftModel | None:
    """A message to the draft model, or none where it is not one."""
    return _decoded(_to_draft_model, data)


def read_from_draft_model(data: bytes) -> FromDraftModel | None:
    """A message with a draft or of a draft model, or none where it is not one."""
    return _decoded(_from_draft_model, data)


def _decoded(decoder: "msgspec.msgpack.Decoder[Message]", data: bytes) -> Message | None:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):  # ValidationError is one of the first
        return None
