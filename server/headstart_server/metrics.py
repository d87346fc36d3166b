"""What the server counts, on vLLM's own /metrics.

Where keys are set, the figures of each tenant are kept apart too; those are all that the tenant
sees.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.metrics_core import Metric

from headstart.answers.timeline import Stage, Timeline
from headstart.engine.question import Question
from headstart.engine.request_record import RequestRecord
from headstart.live.window_question import WindowAnswer
from headstart.speculation.draft import Verdict, by_source, is_fused
from headstart_server.limits import Limits

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
MEDIA_BYTES = Gauge("headstart_media_bytes", "Decoded media of requests under way.")
WORKERS_KILLED = Gauge("headstart_workers_killed", "Decoders that overstayed or broke down.")
FREE_BYTES = Gauge("headstart_free_bytes", "Memory left, for the machine and its cgroup.")
HEARTBEAT_AGE = Gauge("headstart_heartbeat_age_seconds", "Since the engine's last sign of life.")
LIVE_CAMERAS = Gauge("headstart_live_cameras", "Live cameras, those that may resume included.")
LIVE_FRAMES = Counter("headstart_live_frames", "Frames of live cameras, by their fate.", ["fate"])
LIVE_WINDOWS = Counter("headstart_live_windows", "Windows of live cameras, by fate.", ["fate"])
LIVE_WAITING = Gauge(
    "headstart_live_windows_waiting", "Windows that have ended and whose answer is not there yet."
)
LIVE_WAIT = Histogram(
    "headstart_live_wait_seconds",
    "From a window's last frame to the last word of its answer.",
    buckets=(0.1, 0.2, 0.5, 1, 2, 3, 5, 10, 30),
)
REHEARSALS = Counter(
    "headstart_rehearsals", "Live questions answered before their last frame, by end.", ["end"]
)
REHEARSED = Counter("headstart_rehearsed_tokens", "Tokens that rehearsals have said.")
ENGINE_SECONDS = Counter(
    "headstart_engine_seconds", "Of the engine's passes, by what they were for.", ["of"]
)
LOG_LINES_DROPPED = Gauge("headstart_log_lines_dropped", "Log lines that could not be written.")
LOGGED_ANSWERS = Counter(
    "headstart_logged_answers", "Answers for the logs of tenants, by fate.", ["fate"]
)
MEMORY_STREAMS = Counter(
    "headstart_memory_streams", "Memories of streams that were to be kept, by fate.", ["fate"]
)
STAGES = Histogram(
    "headstart_stage_seconds",
    "Where the time of an answer went.",
    ["stage"],
    buckets=(0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30),
)

_TENANT = ["tenant"]
TENANT_REQUESTS = Counter(
    "headstart_tenant_requests", "A tenant's requests, by status.", ["tenant", "status"]
)
TENANT_IN_FLIGHT = Gauge(
    "headstart_tenant_requests_in_flight", "A tenant's requests under way.", _TENANT
)
TENANT_TOKENS = Counter(
    "headstart_tenant_tokens", "Tokens of a tenant's prompts and answers.", _TENANT
)
TENANT_DRAFTED = Counter(
    "headstart_tenant_drafted_tokens", "Tokens drafted for a tenant.", ["tenant", "source"]
)
TENANT_ACCEPTED = Counter(
    "headstart_tenant_accepted_tokens",
    "Tokens drafted for a tenant that the target said.",
    ["tenant", "source"],
)
TENANT_LIVE = Gauge("headstart_tenant_live_cameras", "A tenant's live cameras.", _TENANT)
TENANT_LIMIT = Gauge("headstart_tenant_limit", "What each tenant may take.", ["limit"])
_OF_TENANTS: tuple[MetricWrapperBase, ...] = (
    TENANT_REQUESTS,
    TENANT_IN_FLIGHT,
    TENANT_TOKENS,
    TENANT_DRAFTED,
    TENANT_ACCEPTED,
    TENANT_LIVE,
    TENANT_LIMIT,
)
_LIMITS_OF_TENANTS = (
    "max_tenant_requests",
    "tenant_requests_per_minute",
    "tenant_tokens_per_minute",
    "max_tenant_bodies_bytes",
    "max_uploads",
    "max_upload_bytes",
    "max_tenant_live",
)


@dataclass(frozen=True)
class TenantMetrics:
    """The lines of /metrics that are one tenant's own."""

    tenant: str

    def collect(self) -> Iterator[Metric]:
        for figure in _OF_TENANTS:
            for metric in figure.collect():
                metric.samples = [
                    sample
                    for sample in metric.samples
                    if sample.labels.get("tenant", self.tenant) == self.tenant
                ]
                yield metric

    def text(self) -> bytes:
        return generate_latest(self)


def state_limits(limits: Limits) -> None:
    """Let tenants see what they may take."""
    for name in _LIMITS_OF_TENANTS:
        TENANT_LIMIT.labels(name).set(getattr(limits, name))


def count_request(tenant: str, status: int) -> None:
    """Add one request that has ended; of a stranger, or on an open server, the tenant is empty."""
    REQUESTS.labels(str(status)).inc()
    if tenant:
        TENANT_REQUESTS.labels(tenant, str(status)).inc()


def count_in_flight(tenant: str, num_of_tenant: int, num_of_all: int) -> None:
    IN_FLIGHT.set(num_of_all)
    if tenant:
        TENANT_IN_FLIGHT.labels(tenant).set(num_of_tenant)


def count_tokens(tenant: str, num_tokens: int) -> None:
    if tenant:
        TENANT_TOKENS.labels(tenant).inc(num_tokens)


def count_cameras(tenant: str, num_of_tenant: int, num_of_all: int) -> None:
    LIVE_CAMERAS.set(num_of_all)
    if tenant:
        TENANT_LIVE.labels(tenant).set(num_of_tenant)


def count_since(figure: Counter, now: Mapping[str, int], before: Mapping[str, int]) -> None:
    """Add what has come to counts of a camera's, by fate."""
    for fate, number in now.items():
        figure.labels(fate).inc(number - before.get(fate, 0))


class CountedRehearsals:
    """An `AnswerListener`: each answer reports what became of rehearsals since the last one."""

    def asked(self, question: Question) -> None:
        pass

    def answered(self, question: Question, record: RequestRecord) -> None:
        if record.report is None:
            return
        counts = record.report.rehearsals
        for ending, number in counts.endings.items():
            REHEARSALS.labels(ending.value).inc(number)
        REHEARSED.inc(counts.tokens)
        ENGINE_SECONDS.labels("rehearsals").inc(counts.seconds)
        ENGINE_SECONDS.labels("all else").inc(counts.other_seconds)


def count_answer(record: RequestRecord, tenant: str) -> None:
    _count_times(record.num_cached_tokens, record.timeline())
    if record.report is not None:
        REMEMBERED.set(record.report.num_remembered)
        _count_drafts(record.verdicts, record.num_accepted, tenant)


def count_live_answer(window: WindowAnswer, tenant: str) -> None:
    answer = window.answer
    LIVE_WAIT.observe(window.wait_s)
    _count_times(answer.num_cached_tokens, answer.timeline)
    _count_drafts(answer.verdicts, answer.num_accepted_tokens, tenant)


def _count_times(num_cached: int, timeline: Timeline | None) -> None:
    CACHED.inc(num_cached)
    if timeline is not None:
        for stage in Stage:
            STAGES.labels(stage.value).observe(timeline.duration_s(stage))


def _count_drafts(verdicts: Sequence[Verdict], num_accepted: int, tenant: str) -> None:
    ANSWERS.inc()
    FUSED.inc(is_fused(verdicts))
    SAVED.inc(num_accepted)
    for source, (drafted, accepted) in by_source(verdicts).items():
        DRAFTED.labels(source).inc(drafted)
        ACCEPTED.labels(source).inc(accepted)
        if tenant:
            TENANT_DRAFTED.labels(tenant, source).inc(drafted)
            TENANT_ACCEPTED.labels(tenant, source).inc(accepted)
