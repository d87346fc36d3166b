"""No test waits by sleeping, and none compares wall times: a busy machine must not decide.

A test that sleeps to see that nothing happens passes on a slow machine whatever the code does. One
that compares wall times fails there. Waiting for something is `rig.waiting`'s; a camera that is
played, a slow client or a fuzz says on the line how it plays: ``time.sleep(0.05)  # plays: ...``.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WAITS = ROOT / "rig" / "waiting.py"
PACED = {ROOT / "rig" / f"{name}.py" for name in ("live_load", "moving_camera", "watchers")}
"""Cameras at their pace and how long their answers take: no test's verdict hangs on it."""
PLAYS = "# plays: "
"""On the line of a sleep that is what the test plays, and not a wait for something."""
CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "time", "time_ns"}
"""Of the wall. `thread_time` and `process_time` count work, which other processes do not change."""


def is_program(path: Path) -> bool:
    """Run by hand, it says how long it took. No test is one."""
    return not path.name.startswith("test_") and "if __name__ ==" in path.read_text()


MODULES = sorted(
    path
    for folder in ("tests", "rig")
    for path in (ROOT / folder).rglob("*.py")
    if path not in {WAITS, *PACED} and path.parent.name != "soak" and not is_program(path)
)


def called(node: ast.AST) -> str:
    """The name that a call ends in, as ``sleep`` of ``time.sleep(1)``; empty if it is no call."""
    if not isinstance(node, ast.Call):
        return ""
    match node.func:
        case ast.Attribute(value=ast.Name(), attr=name) | ast.Name(id=name):
            return name
    return ""


def reads_a_clock(node: ast.AST) -> bool:
    if called(node) not in CLOCKS:
        return False
    of = node.func  # type: ignore[attr-defined]
    return not isinstance(of, ast.Attribute) or of.value.id == "time"


def is_given_nothing(call: ast.Call) -> bool:
    """``sleep(0)`` lets others run, and waits for nothing."""
    return len(call.args) == 1 and isinstance(call.args[0], ast.Constant) and not call.args[0].value


def faults(text: str) -> list[str]:
    """The lines of a module that sleep or compare wall times, each with what is wrong."""
    lines, found = text.splitlines(), []
    for node in ast.walk(ast.parse(text)):
        if called(node) == "sleep" and not is_given_nothing(node):
            if PLAYS not in lines[node.end_lineno - 1]:
                found.append((node.lineno, "sleeps: wait for what it waits for, rig.waiting"))
        elif isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            if any(reads_a_clock(inner) for one in operands for inner in ast.walk(one)):
                found.append((node.lineno, "compares wall times: turn a clock, or count"))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            is_played = PLAYS in lines[node.lineno - 1]
            if not is_played and any(map(reads_a_clock, (node.left, node.right))):
                found.append((node.lineno, "measures wall time: turn a clock, or count"))
    return [f"line {number} {what}" for number, what in sorted(set(found))]


def test_no_test_sleeps_or_compares_wall_times():
    found = {str(path.relative_to(ROOT)): faults(path.read_text()) for path in MODULES}
    assert {path: said for path, said in found.items() if said} == {}


@pytest.mark.parametrize(
    ("text", "is_wrong"),
    [
        ("time.sleep(0.1)", True),
        ("await_ = asyncio.sleep(seconds)", True),
        ("from time import sleep\nsleep(1)", True),
        ("time.sleep(0.1)  # plays: a camera's pace", False),
        ("asyncio.sleep(0)", False),
        ("wait_until(lambda: camera.is_open)", False),
        ("assert time.monotonic() - began_s < 5", True),
        ("assert time.monotonic() < deadline_s", True),
        ("took_s = perf_counter() - began_s", True),
        ("took_s = time.thread_time() - began_s", False),
        ("assert clock.time() < 5", False),
        ("now_s = time.monotonic()", False),
    ],
)
def test_the_rule_itself_finds_what_it_is_about(text, is_wrong):
    assert bool(faults(text)) == is_wrong
