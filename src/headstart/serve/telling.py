"""What a client that asks for it is told about its answer."""

from typing import Any

from headstart.drafting.timeline import Span, Stage, Timeline
from headstart.engine.wire import Stamps
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


def told_times(watch: Watch, timeline: Timeline, stamps: Stamps | None) -> dict[str, Any]:
    """Where the time went, in milliseconds from the request's arrival."""

    def spans(many: list[Span]) -> list[dict[str, Any]]:
        return [
            {
                "stage": span.stage.value,
                "start_ms": round((span.start_s - watch.received_s) * 1e3, 3),
                "end_ms": round((span.end_s - watch.received_s) * 1e3, 3),
            }
            for span in many
        ]

    drafter: list[Span] = []
    if stamps is not None:
        drafter = [
            Span(Stage.PREPROCESS, stamps.asked_s, stamps.preprocessed_s),
            Span(Stage.VISION, stamps.scheduled_s, stamps.vision_end_s),
            Span(Stage.PREFILL, stamps.vision_end_s, stamps.first_token_s),
        ]
    return {
        "total_ms": round(timeline.total_s * 1e3, 3),
        "target": spans(list(timeline.spans)),
        "drafter": spans(drafter),
    }
