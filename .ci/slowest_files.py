"""A plugin of pytest: the files whose tests took longest, so that a long run can be shortened."""

from collections import Counter

import pytest

NUM_SHOWN = 40


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Add up what every setup, call and teardown took, by file."""
    seconds: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if hasattr(report, "duration") and hasattr(report, "nodeid"):
                seconds[report.nodeid.partition("::")[0]] += report.duration
    terminalreporter.section(f"slowest {NUM_SHOWN} files of {sum(seconds.values()):.0f} s")
    for name, took_s in seconds.most_common(NUM_SHOWN):
        terminalreporter.write_line(f"{took_s:7.1f} s  {name}")
