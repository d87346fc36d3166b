"""The scheduler's end of the draft channel: what has arrived, words to send back.

The scheduler calls it between two steps, so every call returns at once. What arrives is not
trusted: what names no request alive here is kept for a while, in case the request is still on its
way, and then dropped; the board checks a draft itself.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headstart.engine.drafts import messages
from headstart.engine.drafts.channel import DraftChannel, receive, send
from headstart.speculation.draft import Draft
from headstart.speculation.drafted_request import DraftedRequest
from headstart.speculation.drafter import Features

MAX_ARRIVED_A_STEP = 256
MAX_EARLY_ASKS = 64
TOLD_AGAIN_AFTER = 16  # tokens without an answer to the last telling: it was lost
MAX_SAID_TOKENS = 8192  # of one answer; a longer one is followed no further

Arrived = Draft | Mapping[str, Features]
"""A draft of the answer, or what vision towers made of the clip, by name."""


@dataclass(slots=True, eq=False)
class Followed:
    """A request on the channel."""

    name: str
    """What it is called there."""
    drafted: DraftedRequest
    is_shown: bool
    """Whether the front end wants its drafts before they are verified."""
    newest: Draft | None = None
    num_said: int = 0
    """How much of the answer the draft model was told last."""


@dataclass(slots=True, eq=False)
class _Early:
    """What came for a request that is still on its way."""

    draft: Draft | None = None
    features: Mapping[str, Features] | None = None


class SchedulerDrafts:
    """What a draft model drafts, or a tower sees, for a scheduler's requests. Not thread-safe."""

    def __init__(self, channel: DraftChannel, resync: bool) -> None:
        self._drafts = channel.drafts_in()
        self._asks = channel.said_out()
        self._previews = channel.previews_out()
        self._resync = resync
        self._followed: dict[str, Followed] = {}
        """By their names on the channel."""
        self._early: OrderedDict[str, _Early] = OrderedDict()

    def begin(
        self, drafted: DraftedRequest, name: str, *, is_shown: bool = False
    ) -> tuple[Followed, list[Arrived]]:
        """A request exists, called ``name`` on the channel; returns also what came before it."""
        early = self._early.pop(name, _Early())
        followed = self._followed[name] = Followed(name, drafted, is_shown, early.draft)
        found = (early.features, early.draft)
        return followed, [one for one in found if one is not None]

    def arrived(self) -> Iterator[tuple[DraftedRequest, Arrived]]:
        """What has arrived since the last call, for requests alive."""
        for _ in range(MAX_ARRIVED_A_STEP):
            data = receive(self._drafts)
            if data is None:
                return
            message = messages.read_from_draft_model(data)
            found: Arrived | None = None
            match message:
                case messages.Drafted(draft=draft):
                    found = draft
                case messages.Seen():
                    found = message.features()
            if message is None or found is None or isinstance(message, messages.Ready):
                continue
            followed = self._followed.get(message.request)
            if followed is None:
                self._keep_early(message.request, found)
                continue
            if isinstance(found, Draft):
                followed.newest = found
            yield followed.drafted, found

    def _keep_early(self, name: str, found: Arrived) -> None:
        early = self._early.setdefault(name, _Early())
        if isinstance(found, Draft):
            early.draft = found
        else:
            early.features = found
        while len(self._early) > MAX_EARLY_ASKS:
            self._early.popitem(last=False)

    def follow(self, followed: Followed, confirmed: Sequence[int]) -> None:
        """Tell the draft model what the target said, where its draft says otherwise or lags behind.

        It is told once, and again only after a while without a new draft.
        """
        newest = followed.newest
        if not self._resync or newest is None:
            return
        begun, num_untold = len(confirmed) - newest.start, len(confirmed) - followed.num_said
        if begun < 0 or (newest.start < followed.num_said and num_untold < TOLD_AGAIN_AFTER):
            return
        if begun <= len(newest.tokens) and newest.tokens[:begun] == tuple(
            confirmed[newest.start :]
        ):
            return
        if num_untold > 0 and len(confirmed) <= MAX_SAID_TOKENS:
            said = messages.Said(followed.name, tuple(confirmed))
            if send(self._asks, said):
                followed.num_said = len(confirmed)

    def show(self, followed: Followed, draft: Draft) -> None:
        """Let the front end show what the target is about to verify, if it wants to."""
        if followed.is_shown and draft.tokens:
            send(self._previews, messages.Drafted(followed.name, draft))

    def end(self, followed: Followed) -> None:
        """The request has ended; drafts for it that come later are dropped."""
        if self._followed.get(followed.name) is followed:  # and no other has taken its name
            del self._followed[followed.name]
