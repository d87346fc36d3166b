"""A source that is another one in everything but its arrivals."""

from headstart.live.sources.source import Source, SourceCounts


class WrappedSource:
    """Passes on the name, the counts and `close`."""

    def __init__(self, source: Source) -> None:
        self._source = source

    @property
    def name(self) -> str:
        """The source's."""
        return self._source.name

    @property
    def counts(self) -> SourceCounts:
        """The source's."""
        return self._source.counts

    def close(self) -> None:
        """Close the source."""
        self._source.close()
