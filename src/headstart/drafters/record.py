"""What each source has earned on a stream: accepted tokens a draft, lately."""

from headstart.drafters.port import StreamKey
from headstart.drafting.fair_table import FairTable

EARLY_CREDIT = 1.0  # tokens a draft, of a source not judged yet
WEIGHT_OF_LAST = 0.1  # of the newest answer in the average


class TrackRecord:
    """Averages by stream and source, bounded in streams. Not thread-safe."""

    def __init__(self, max_streams: int) -> None:
        self._streams: FairTable[str, dict[str, float]] = FairTable(max_streams)

    def __len__(self) -> int:
        return len(self._streams)

    def earned(self, stream: StreamKey, source: str) -> float:
        """Accepted tokens to expect of a draft of this source."""
        records = self._streams.get(stream.tenant, stream.stream) or {}
        return records.get(source, EARLY_CREDIT)

    def credit(self, stream: StreamKey, source: str, num_accepted: float) -> None:
        """In one more answer the source's drafts were worth this many tokens each."""
        records = self._streams.get(stream.tenant, stream.stream) or {}
        before = records.get(source, EARLY_CREDIT)
        records[source] = before + WEIGHT_OF_LAST * (num_accepted - before)
        self._streams.put(stream.tenant, stream.stream, records)
