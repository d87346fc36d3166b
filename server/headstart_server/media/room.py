"""The memory of decoded media, of all tenants and of each."""

from collections import Counter

from headstart_server.refusal import too_much
from headstart_server.settings import Limits


class MediaRoom:
    """Used from one event loop only.

    Media are counted once they are decoded, so the last one let in may go beyond the limit.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._held: Counter[str] = Counter()

    @property
    def num_bytes(self) -> int:
        """Of all tenants."""
        return self._held.total()

    def check(self, tenant: str) -> None:
        """Raise a refusal where no more may be decoded for now."""
        if self.num_bytes >= self._limits.max_media_bytes:
            raise too_much("the media of all requests in flight hold too much memory")
        if self._held[tenant] >= self._limits.max_tenant_media_bytes:
            raise too_much("the media of your requests in flight hold too much memory")

    def hold(self, tenant: str, num_bytes: int) -> None:
        """Count so many bytes more; a negative number gives them back."""
        self._held[tenant] += num_bytes
        if not self._held[tenant]:
            del self._held[tenant]
