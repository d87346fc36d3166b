"""The drafter's timeline, from the stamps that came with its drafts."""

from collections.abc import Iterable

from headstart.answers.timeline import Span, Stage, Timeline
from headstart.engine.drafter.messages import Drafted


def drafter_timeline(heard: Iterable[Drafted], loading: Span | None) -> Timeline | None:
    """Up to the newest draft heard; none where none was. The clip was loaded for both models."""
    stamped = [(drafted.draft, drafted.stamps) for drafted in heard if drafted.stamps is not None]
    if not stamped:
        return None
    newest, stamps = max(stamped, key=lambda one: one[0].made_at_s)
    edges = (
        (Stage.PREPROCESS, stamps.asked_s, stamps.preprocessed_s),
        (Stage.VISION, stamps.scheduled_s, stamps.vision_end_s),
        (Stage.PREFILL, stamps.vision_end_s, stamps.first_token_s),
        (Stage.DECODE, stamps.first_token_s, newest.made_at_s),
    )
    spans = [Span(stage, start_s, max(start_s, end_s)) for stage, start_s, end_s in edges]
    if loading is not None:
        spans.append(loading)
    return Timeline.of(min(span.start_s for span in spans), newest.made_at_s, spans)
