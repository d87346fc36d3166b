"""What the scheduler knows of a request: all in one place, and nothing of one that is over."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from vllm.v1.request import Request, RequestStatus

from headstart.engine.drafts.scheduler_drafts import Followed
from headstart.engine.prompt_pace import Account
from headstart.engine.rehearsed_words import Reference
from headstart.engine.request_record import Ending, PassRecord
from headstart.engine.request_tags import FIELD, RequestTags
from headstart.engine.withheld_drafts import Withheld
from headstart.speculation.drafted_request import DraftedRequest
from headstart.speculation.drafter import StreamKey


@dataclass(slots=True, eq=False)
class RequestState:
    """From a request's arrival until it is freed. One whose prompt grows gets a new one."""

    request: Request
    withheld: Withheld
    """What keeps drafts back, from all or from itself."""
    account: Account
    """How long it has computed, and waited for other requests' prompts."""
    tags: RequestTags | None = None
    """Without them it is a plain request to vLLM, and nothing that follows is used."""
    drafted: DraftedRequest | None = None
    """Its board, and the passes that sources were asked for."""
    record: PassRecord = field(default_factory=PassRecord)
    """Its passes and verdicts, reported at the end."""
    followed: Followed | None = None
    """Its name and newest draft on the draft channel, where it has a name there."""

    ending: Ending | None = None
    """Why it was given up, if it is a rehearsal that was."""

    @property
    def reference(self) -> Reference | None:
        """Which live question it asks or rehearses."""
        return None if self.tags is None else self.tags.reference

    @property
    def rehearses(self) -> bool:
        return self.tags is not None and self.tags.rehearses

    @property
    def is_reported(self) -> bool:
        """Whether whoever asked is told of drafts: not if all it did was to name a session."""
        params = self.request.sampling_params
        asks = params is not None and FIELD in (params.extra_args or {})
        return asks and self.drafted is not None


def tags_of(request: Request) -> RequestTags | None:
    """What a request says to the drafters; none if it is to be left to vLLM."""
    params = request.sampling_params
    tags = RequestTags.parse(params.extra_args) if params is not None else None
    if tags is not None and tags.rehearses and (tags.reference is None or request.resumable):
        return None  # nobody could ask for what it says
    if tags is None and request.session_id is not None:
        # vLLM's own name for a stream. Requests that share cached blocks may share words.
        tenant = request.cache_salt or ""
        tags = RequestTags(StreamKey(tenant, request.session_id), tenant)
    return tags


_ANSWERED = (
    RequestStatus.FINISHED_STOPPED,
    RequestStatus.FINISHED_LENGTH_CAPPED,
    RequestStatus.FINISHED_REPETITION,
)


def whole_answer(request: Request, tokenizer: Any) -> tuple[int, ...]:
    """All that was said; nothing of an answer that was aborted.

    Stop strings are looked for in vLLM's front end, which aborts the request it finds one in.
    Without a tokenizer they are not known here.
    """
    said, params = tuple(request.output_token_ids), request.sampling_params
    if request.status in _ANSWERED:
        return said
    if params is None or not params.stop or tokenizer is None:
        return ()
    return said[: num_until_stop(said, params.stop, params.min_tokens, tokenizer.decode)]


def num_until_stop(
    tokens: Sequence[int],
    stops: Sequence[str],
    min_tokens: int,
    decode: Callable[[Sequence[int]], str],
) -> int:
    """How many tokens there are up to the first whose text completes one of ``stops``, or 0.

    Text of the first ``min_tokens`` does not count, as in vLLM. A few texts are decoded, whatever
    the length. 0 as well where they cannot be: some tokenizers fail on ids without a text.
    """

    def has_stop(num_tokens: int) -> bool:
        text = decode(tokens[:num_tokens])
        return any(text.find(stop, start) >= 0 for stop in stops)

    try:
        start = len(decode(tokens[:min_tokens])) if min_tokens else 0
        if not has_stop(len(tokens)):
            return 0
        return bisect_left(range(len(tokens) + 1), True, key=has_stop)
    except Exception:
        return 0
