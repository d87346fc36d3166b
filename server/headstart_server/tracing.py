"""OpenTelemetry spans of an answer's five stages, where OpenTelemetry is installed and set up.

It is set up as any program's is: by OTEL_EXPORTER_OTLP_ENDPOINT and its siblings. Nothing is
imported and nothing sent without them.
"""

import os
import time
from typing import Any, Self

from headstart.engine.request_record import RequestRecord

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


class Tracing:
    """Sends in the background; what cannot be sent is dropped by OpenTelemetry."""

    def __init__(self, provider: Any) -> None:
        self._provider, self._tracer = provider, provider.get_tracer("headstart")

    @classmethod
    def configured(cls) -> Self | None:
        """As the environment says; none where it says nothing."""
        if not any(os.environ.get(name) for name in _ENDPOINTS):
            return None
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError:
            return None
        provider = TracerProvider(resource=Resource.create({"service.name": "headstart"}))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        return cls(provider)

    def tell(self, record: RequestRecord) -> None:
        """One answer: a span for the whole and one for each stage in it."""
        timeline = record.timeline()
        if timeline is None:
            return
        from opentelemetry.trace import set_span_in_context

        # Ours are monotonic seconds, theirs nanoseconds of the wall clock.
        offset_s = time.time() - time.monotonic()

        def ns(moment_s: float) -> int:
            return int((moment_s + offset_s) * 1e9)

        whole = self._tracer.start_span(
            "headstart.answer",
            start_time=ns(timeline.start_s),
            attributes={
                "headstart.request_id": record.request_id,
                "headstart.accepted_tokens": record.num_accepted,
                "headstart.cached_tokens": record.num_cached_tokens,
            },
        )
        context = set_span_in_context(whole)
        for span in timeline.spans:
            part = self._tracer.start_span(
                f"headstart.{span.stage.value}", context=context, start_time=ns(span.start_s)
            )
            part.end(end_time=ns(span.end_s))
        whole.end(end_time=ns(timeline.end_s))

    def close(self) -> None:
        self._provider.shutdown()
