"""A plugin of pytest: a run that lost one of its test processes did not come to its end.

pytest-xdist reports the test that was under way as failed, and leaves out those behind it. That
must not look like a run in which one test failed.
"""

from typing import Any

import pytest

_lost: list[str] = []


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """pytest-xdist calls this for each process that ends; with an error if it was not told to."""
    if error:
        _lost.append(node.gateway.id)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Say by the exit status that the run broke off."""
    if _lost:
        session.exitstatus = pytest.ExitCode.INTERRUPTED
