"""The ``headstart`` object of an answer: what became of its drafts, and where its time went."""

from typing import Any

from headstart.answers.timeline import Timeline
from headstart.engine.request_record import RequestRecord


def draft_counts(record: RequestRecord) -> dict[str, Any]:
    """Counts of drafts and cached tokens."""
    by_source = record.by_source()
    return {
        "accepted_tokens": record.num_accepted,
        "drafted_tokens": sum(drafted for drafted, _ in by_source.values()),
        "passes": len(record.report.accepted) if record.report else None,
        "fused": record.fused,
        "cached_tokens": record.num_cached_tokens,
        "sources": {
            source: {"drafted_tokens": drafted, "accepted_tokens": accepted}
            for source, (drafted, accepted) in by_source.items()
        },
    }


def stage_times(record: RequestRecord, drafter: Timeline | None) -> dict[str, Any] | None:
    """The stages of the target and the drafter, in milliseconds from the request's arrival.

    None if the engine did not finish the answer.
    """
    timeline = record.timeline()
    if timeline is None:
        return None

    def spans(side: Timeline | None) -> list[dict[str, Any]]:
        return [
            {
                "stage": span.stage.value,
                "start_ms": round((span.start_s - record.received_s) * 1e3, 3),
                "end_ms": round((span.end_s - record.received_s) * 1e3, 3),
            }
            for span in (side.spans if side else ())
        ]

    return {
        "total_ms": round(timeline.total_s * 1e3, 3),
        "target": spans(timeline),
        "drafter": spans(drafter),
    }
