"""What the scheduler knows of a request: all in one place, and nothing of one that is over."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from vllm.v1.request import Request

from headstart.engine.drafter.scheduler_end import Followed
from headstart.engine.prompt_pace import Account
from headstart.engine.report import PassRecord
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
    unseen: Sequence[str] = ()
    """The items of its clip in their order, while a bridge has still to see them."""

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
    if tags is None and request.session_id is not None:
        # vLLM's own name for a stream. Requests that share cached blocks may share words.
        tenant = request.cache_salt or ""
        tags = RequestTags(StreamKey(tenant, request.session_id), tenant)
    return tags
