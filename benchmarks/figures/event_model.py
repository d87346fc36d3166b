"""The table of `benchmarks.event_model`: an event model whole, and as a tower."""

from collections.abc import Callable
from statistics import median

from benchmarks.figures.results import markdown, result

ROWS = {
    "start_s": ("start-up, s", ".1f"),
    "start_processor_s": ("start-up, s of processor time", ".1f"),
    "pss_mib": ("memory (PSS), MiB", ".0f"),
    "rss_mib": ("memory (RSS), MiB", ".0f"),
    "processor_ms_a_clip": ("processor time a clip, ms", ".0f"),
    "wait_ms": ("from a question until it is heard of, ms", ".0f"),
}


def event_model() -> str:
    """Medians over the starts, with the lowest and the highest."""
    run = result("event_model")
    rows = []
    for key, (label, form) in ROWS.items():
        cells = []
        for kind in ("whole", "tower"):
            values = run[kind][key]
            low, high = format(min(values), form), format(max(values), form)
            cells.append(f"{median(values):{form}} ({low} to {high})")
        rows.append((label, *cells))
    return markdown(("lab pair", "the whole event model", "tower and projector"), rows)


TABLES: dict[str, Callable[[], str]] = {"event-model": event_model}
