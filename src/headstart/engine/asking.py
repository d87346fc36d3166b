"""What a request says of itself to the drafters, through vLLM's free field for such things.

``SamplingParams(extra_args={"headstart": {"stream": "camera-7"}})``. In a request to vLLM's server
the field is ``vllm_xargs``, which takes no objects: there the same is JSON in a text,
``{"headstart": "{\\"stream\\": \\"camera-7\\"}"}``. It comes from outside, so nothing in it is
believed: what is not of the right kind is as good as absent.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from headstart.drafters.port import Ask, StreamKey

FIELD = "headstart"


@dataclass(frozen=True)
class AskDetails:
    """The parts of an `Ask` that only the caller knows."""

    stream: str | None = None
    tenant: str = ""
    question: str = ""
    change: float = 0.0
    draft: tuple[Any, ...] = ()
    """A draft of the whole answer that the caller happens to have."""
    ask: str = ""
    """What a drafter in another process knows the request as."""
    preview: bool = False
    """Whether the front end wants to show what is about to be verified."""

    @classmethod
    def parse(cls, extra_args: Mapping[str, Any] | None) -> Self | None:
        """What ``extra_args`` hold, or nothing: then the request is left alone."""
        given = (extra_args or {}).get(FIELD)
        if isinstance(given, str):
            try:
                given = json.loads(given)
            except (ValueError, RecursionError):
                return None
        if not isinstance(given, Mapping):
            return None
        stream, draft, change = given.get("stream"), given.get("draft"), given.get("change")
        return cls(
            stream=stream if isinstance(stream, str) else None,
            tenant=_text(given.get("tenant")),
            question=_text(given.get("question")),
            change=change if isinstance(change, float) and 0.0 <= change <= 1.0 else 0.0,
            draft=tuple(draft) if isinstance(draft, list | tuple) else (),
            ask=_text(given.get("ask")),
            preview=given.get("preview") is True,
        )

    def extra_args(self) -> dict[str, Any]:
        """The form `parse` reads."""
        return {
            FIELD: {
                "stream": self.stream,
                "tenant": self.tenant,
                "question": self.question,
                "change": self.change,
                "draft": list(self.draft),
                "ask": self.ask,
                "preview": self.preview,
            }
        }

    @property
    def stream_key(self) -> StreamKey | None:
        """Whose memory it reads and adds to; none if it belongs to no stream."""
        return None if self.stream is None else StreamKey(self.tenant, self.stream)

    def begun(self, request_id: str, prompt: tuple[int, ...]) -> Ask:
        """As drafters know it. Without a stream it belongs to none, and is not remembered."""
        key = self.stream_key
        nobodys = StreamKey(self.tenant, "")
        return Ask(
            request_id,
            key or nobodys,
            self.question,
            prompt,
            self.change,
            remembered=key is not None,
        )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
