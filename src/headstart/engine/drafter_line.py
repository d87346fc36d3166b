"""The drafter as the target's scheduler knows it: drafts that have come, words to send back.

Lives in vLLM's engine process, between two of its steps, so every call returns at once. It trusts
nothing it hears: what names no request alive here is kept for a moment, in case the request is
still on its way, and then forgotten; what is in a draft is for the board to check.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headstart.drafting.board import Proposal
from headstart.drafting.draft import Draft
from headstart.engine import wire
from headstart.engine.line import Line, receive, send

MAX_HEARD_A_STEP = 256
MAX_EARLY_ASKS = 64
TOLD_AGAIN_AFTER = 16  # tokens without an answer to the last telling: it was lost
MAX_SAID_TOKENS = 8192  # of one answer; a longer one is followed no further


@dataclass(slots=True)
class _Followed:
    ask: str
    newest: wire.Drafted | None = None
    num_said: int = 0
    """How much of the answer the drafter was told last."""


class DrafterLine:
    """One drafter, heard by one scheduler. Not thread-safe."""

    def __init__(self, line: Line, resync: bool) -> None:
        self._drafts = line.drafts_in()
        self._asks = line.said_out()
        self._previews = line.previews_out()
        self._resync = resync
        self._requests: dict[str, str] = {}
        self._followed: dict[str, _Followed] = {}
        self._early: OrderedDict[str, wire.Drafted] = OrderedDict()

    def begin(self, request: str, ask: str) -> Draft | None:
        """A request exists that the drafter may know as ``ask``: what came before it did."""
        self._requests[ask] = request
        early = self._early.pop(ask, None)
        self._followed[request] = _Followed(ask, early)
        return _draft(early) if early else None

    def heard(self) -> Iterator[tuple[str, Draft]]:
        """Drafts that have come since, for requests alive."""
        for _ in range(MAX_HEARD_A_STEP):
            data = receive(self._drafts)
            if data is None:
                return
            message = wire.read_from_drafter(data)
            if not isinstance(message, wire.Drafted):
                continue
            request = self._requests.get(message.ask, "")
            followed = self._followed.get(request)
            if followed is None:
                self._early[message.ask] = message
                while len(self._early) > MAX_EARLY_ASKS:
                    self._early.popitem(last=False)
                continue
            followed.newest = message
            yield request, _draft(message)

    def follow(self, request: str, confirmed: Sequence[int]) -> None:
        """Tell the drafter what was said, where its draft leads elsewhere or is left behind.

        Until it has answered to one telling it is not told again, for a while.
        """
        followed = self._followed.get(request)
        newest = followed.newest if followed else None
        if not self._resync or followed is None or newest is None:
            return
        begun, num_untold = len(confirmed) - newest.start, len(confirmed) - followed.num_said
        if begun < 0 or (newest.start < followed.num_said and num_untold < TOLD_AGAIN_AFTER):
            return
        if begun <= len(newest.tokens) and newest.tokens[:begun] == tuple(
            confirmed[newest.start :]
        ):
            return
        if num_untold > 0 and len(confirmed) <= MAX_SAID_TOKENS:
            said = wire.Said(followed.ask, tuple(confirmed))
            if send(self._asks, said):
                followed.num_said = len(confirmed)

    def show(self, request: str, proposal: Proposal, start: int) -> None:
        """Let the front end show what the target is about to verify."""
        followed = self._followed.get(request)
        if followed is not None and proposal.tokens:
            message = wire.Drafted(
                followed.ask, proposal.source, start, proposal.tokens, proposal.made_at_s
            )
            send(self._previews, message)

    def end(self, request: str) -> None:
        """The request is no more; what is drafted for it from now on is late."""
        followed = self._followed.pop(request, None)
        if followed is not None:
            self._requests.pop(followed.ask, None)


def _draft(message: wire.Drafted) -> Draft:
    return Draft(message.tokens, message.source, message.made_at_s, message.start)
