"""What a request to vLLM says to the drafters, through vLLM's free field for such things.

``SamplingParams(extra_args={"headstart": {"stream": "camera-7"}})``. In a request to vLLM's server
the field is ``vllm_xargs``, which takes no objects: there the same is JSON in a text,
``{"headstart": "{\\"stream\\": \\"camera-7\\"}"}``. The tags come from outside and are not trusted:
a value of the wrong kind counts as absent.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from headstart.engine.rehearsed_words import Reference
from headstart.speculation.drafter import DraftRequest, StreamKey

FIELD = "headstart"


@dataclass(frozen=True)
class RequestTags:
    """The parts of a `DraftRequest` that only the caller knows, and how drafts reach it."""

    stream: StreamKey | None = None
    """Whose memory the request reads and adds to; none if it belongs to no stream."""
    tenant: str = ""
    question: str = ""
    change: float = 0.0
    prediction: tuple[Any, ...] = ()
    """A draft of the whole answer that the caller has."""
    name: str = ""
    """What the drafter in another process knows the request as."""
    preview: bool = False
    """Whether the front end wants to show drafts before they are verified."""
    window: str = ""
    """Of a live camera, where the question may have been rehearsed."""
    rehearses: bool = False
    """Whether it is a rehearsal of a question that will be asked about this window."""
    until_s: float | None = None
    """When a rehearsal must be out of the way, on the monotonic clock."""

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
        until_s = given.get("until_s")
        tenant = _text(given.get("tenant"))
        return cls(
            stream=StreamKey(tenant, stream) if isinstance(stream, str) else None,
            tenant=tenant,
            question=_text(given.get("question")),
            change=change if isinstance(change, float) and 0.0 <= change <= 1.0 else 0.0,
            prediction=tuple(draft) if isinstance(draft, list | tuple) else (),
            name=_text(given.get("ask")),
            preview=given.get("preview") is True,
            window=_text(given.get("window")),
            rehearses=given.get("rehearses") is True,
            until_s=until_s if isinstance(until_s, float) else None,
        )

    def extra_args(self) -> dict[str, Any]:
        """The form `parse` reads."""
        return {
            FIELD: {
                "stream": None if self.stream is None else self.stream.stream,
                "tenant": self.tenant,
                "question": self.question,
                "change": self.change,
                "draft": list(self.prediction),
                "ask": self.name,
                "preview": self.preview,
                "window": self.window,
                "rehearses": self.rehearses,
                "until_s": self.until_s,
            }
        }

    def request(self, request_id: str, prompt: tuple[int, ...]) -> DraftRequest:
        """As drafters know it. Without a stream its answer is not remembered."""
        return DraftRequest(
            request_id,
            self.stream or StreamKey(self.tenant, ""),
            # Without words, equal prompts are equal questions.
            self.question or f"prompt {hash(prompt)}",
            prompt,
            self.change,
            remembered=self.stream is not None,
            is_rehearsal=self.rehearses,
        )

    @property
    def reference(self) -> Reference | None:
        """What an answer's rehearsals are found by; none outside a live window."""
        if self.stream is None or not self.window:
            return None
        return Reference(self.stream, self.window, self.question)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
