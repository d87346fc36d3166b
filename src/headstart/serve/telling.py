"""What a client that asks for it is told about its answer."""

from typing import Any

from headstart.drafting.timeline import Timeline
from headstart.serve.watch import Watch


def told(watch: Watch) -> dict[str, Any]:
    """Counts of drafts and cached tokens."""
    by_source = watch.by_source()
    return {
        "accepted_tokens": watch.num_accepted,
        "drafted_tokens": sum(drafted for drafted, _ in by_source.values()),
        "passes": len(watch.report.accepted) if watch.report else None,
        "fused": watch.fused,
        "cached_tokens": watch.num_cached_tokens,
        "sources": {
            source: {"drafted_tokens": drafted, "accepted_tokens": accepted}
            for source, (drafted, accepted) in by_source.items()
        },
    }


def told_times(watch: Watch, timeline: Timeline) -> dict[str, Any]:
    """Where the time went, in milliseconds from the request's arrival."""

    def spans(line: Timeline | None) -> list[dict[str, Any]]:
        return [
            {
                "stage": span.stage.value,
                "start_ms": round((span.start_s - watch.received_s) * 1e3, 3),
                "end_ms": round((span.end_s - watch.received_s) * 1e3, 3),
            }
            for span in (line.spans if line else ())
        ]

    return {
        "total_ms": round(timeline.total_s * 1e3, 3),
        "target": spans(timeline),
        "drafter": spans(watch.drafter),
    }
