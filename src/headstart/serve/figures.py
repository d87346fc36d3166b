"""What the server counts, on vLLM's own /metrics."""

from prometheus_client import Counter, Gauge, Histogram

from headstart.drafting.timeline import Stage
from headstart.serve.watch import Watch

REQUESTS = Counter("headstart_requests", "Requests answered, by status.", ["status"])
TURNED_AWAY = Counter("headstart_turned_away", "Requests not let in.", ["reason"])
IN_FLIGHT = Gauge("headstart_requests_in_flight", "Requests under way.")
DRAINING = Gauge("headstart_draining", "1 while the server only finishes what is under way.")
DRAFTED = Counter("headstart_drafted_tokens", "Tokens handed to the target to check.", ["source"])
ACCEPTED = Counter("headstart_accepted_tokens", "Drafted tokens the target said.", ["source"])
SAVED = Counter("headstart_saved_passes", "Passes of the target that drafts made needless.")
ANSWERS = Counter("headstart_answers", "Answers for which drafts were looked for.")
FUSED = Counter("headstart_fused_answers", "Answers whose draft was checked with the prompt.")
PREVIEWS = Counter("headstart_previews", "Previews sent.")
CACHED = Counter("headstart_cached_tokens", "Prompt tokens that were computed before.")
REMEMBERED = Gauge("headstart_memory_answers", "Answers remembered to draft from.")
DRAFTER_UP = Gauge("headstart_drafter_up", "1 while the drafter's engine is up.")
UPLOAD_BYTES = Gauge("headstart_upload_bytes", "Bytes of uploaded recordings.")
LOG_LINES_DROPPED = Gauge("headstart_log_lines_dropped", "Log lines that could not be written.")
STAGES = Histogram(
    "headstart_stage_seconds",
    "Where the time of an answer went.",
    ["stage"],
    buckets=(0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30),
)


def count_answer(watch: Watch) -> None:
    """Add one finished answer to the figures."""
    CACHED.inc(watch.num_cached_tokens)
    timeline = watch.timeline()
    if timeline is not None:
        for stage in Stage:
            STAGES.labels(stage.value).observe(timeline.duration_s(stage))
    if watch.report is None:
        return
    ANSWERS.inc()
    REMEMBERED.set(watch.report.num_remembered)
    FUSED.inc(watch.fused)
    SAVED.inc(watch.num_accepted)
    for source, (drafted, accepted) in watch.by_source().items():
        DRAFTED.labels(source).inc(drafted)
        ACCEPTED.labels(source).inc(accepted)
