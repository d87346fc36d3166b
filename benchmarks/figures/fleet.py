"""Tables and the picture of docs/guides/fleet.md: on paper, simulated, and beside servers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.figures.picture import STYLE, line, rect, text
from benchmarks.figures.results import NOT_KEPT, is_kept, markdown, result

from headstart_research.bench.svg import Scale
from headstart_research.planning.fleet.size import crowded_share

PICTURE = Path("docs/pictures/fleet.svg")
WIDTH, HEIGHT = 820, 340
TOP, BOTTOM = 96, 268
PANEL, LEFT, SECOND = 330, 50, 460
CASES = {
    "evenly": ("spread evenly", "soft"),
    "ring": ("placed by a ring", "prefill"),
    "one clock": ("ring, windows of one clock", "read"),
    "bursts": ("ring, bursts of questions", "pass"),
    "deaths": ("ring, a tenth of the engines die", "draft"),
}
KEPT = {"memory lost": "pass", "memory kept": "draft"}


def plan() -> str:
    """The plan of three fleets."""
    planned = result("fleet_plan")
    rows = [
        (
            f"{row['cameras']:,}",
            row["method"],
            str(row["held"]),
            f"{row['engines']:,}",
            f"{row['fill']:.0%}",
            f"{row['kv_gib']:,.1f}",
            f"{row['network_gbit_a_second']:.3g}",
            f"{row['price_a_camera_and_month']:,.0f}",
        )
        for row in planned["fleets"]
    ]
    headings = ("cameras", "", "held by an engine", "engines", "fill", "KV GiB", "Gbit/s in")
    return markdown((*headings, "prices of a GPU hour, a camera and month"), rows)


def of_case(case: str, num_cameras: int) -> list[dict[str, Any]]:
    """The simulated fleets of a case, emptiest first."""
    rows = result("fleet_simulation")["fleets"]
    found = [row for row in rows if (row["case"], row["cameras"]) == (case, num_cameras)]
    return sorted(found, key=lambda row: row["fill"])


def smallest() -> int:
    """The fleet to which all cases happened."""
    return int(min(row["cameras"] for row in result("fleet_simulation")["fleets"]))


def breaks() -> str:
    """How much is late, by what happens and by how full the engines are."""
    rows = {case: of_case(case, smallest()) for case in CASES}
    fills = [f"{row['fill']:.0%}" for row in rows["ring"]]
    return markdown(
        ("windows late or lost, at a fill of", *fills),
        [
            (name, *(f"{row['late']:.1%}" for row in rows[case]))
            for case, (name, _) in CASES.items()
        ],
    )


def sizes() -> str:
    """The same ring, larger and larger."""
    simulated = result("fleet_simulation")
    numbers = sorted({row["cameras"] for row in simulated["fleets"]})
    rows = []
    for number in numbers:
        half = min(of_case("ring", number), key=lambda row: abs(row["fill"] - 0.5))
        rows.append(
            (
                f"{number:,}",
                f"{half['engines']:,}",
                f"{half['simulated_engines']:,}",
                f"{half['cameras'] / half['engines']:.1f}",
                str(half["fullest"]),
                f"{crowded_share(number, half['engines'], simulated['held']):.1%}",
                f"{half['late']:.1%}",
                f"{half['late_on_fullest']:.0%}",
                f"{half['wall_s']:.0f} s",
            )
        )
    return markdown(
        (
            "cameras",
            "engines",
            "simulated by passes",
            "cameras of an average one",
            "of the fullest",
            "cameras on too full ones, by the law",
            "late, in the sample",
            "late on the fullest",
            "took",
        ),
        rows,
    )


def validation() -> str:
    """Reality and simulation, for every pace."""
    if not is_kept("fleet_validation"):
        return NOT_KEPT
    rows = []
    for load in result("fleet_validation")["loads"]:
        for name in ("mean_s", "p50_s", "p95_s", "answers_a_second"):
            rows.append(
                (
                    f"{load['every_s']:g} s",
                    NAMES[name],
                    f"{load['real'][name]:.2f}",
                    f"{load['simulated'][name]:.2f}",
                    f"{load['off'][name]:+.0%}",
                )
            )
    return markdown(("each camera every", "", "three servers", "simulated", "off by"), rows)


def restart() -> str:
    """What became of the windows while servers were restarted."""
    if not is_kept("rolling_restart"):
        return NOT_KEPT
    found = result("rolling_restart")
    drained = " and ".join(f"{seconds:.1f} s" for seconds in found["drained_s"])
    rows = [
        ("windows shown", f"{found['windows']}, of {found['cameras']} cameras"),
        ("moves of a camera to another server", str(found["moves"])),
        ("windows without an answer, with two, with a wrong one", _counts(found)),
        ("draining took", drained),
        ("from connecting anew to the first answer, at most", f"{found['longest_gap_s']:.1f} s"),
    ]
    return markdown(("two servers, restarted in turn", ""), rows)


def _counts(found: dict[str, Any]) -> str:
    return ", ".join(str(found[name]) for name in ("lost", "doubled", "wrong"))


NAMES = {
    "mean_s": "mean wait, s",
    "p50_s": "median wait, s",
    "p95_s": "95th percentile, s",
    "answers_a_second": "answers a second",
}


def picture() -> str:
    """What is late by fill, and the waits after a death."""
    parts = [rect(0, 0, WIDTH, HEIGHT, "paper", radius=8)]
    parts += [*_by_fill(), *_after_a_death()]
    simulated = result("fleet_simulation")
    parts.append(
        text(
            12,
            HEIGHT - 12,
            f"simulated with the lab pair's costs; an engine holds {simulated['held']} cameras, 95%"
            f" of the answers within {simulated['within_s']:g} s",
            "soft",
        )
    )
    ring = of_case("ring", smallest())[-1]
    title = f"At a fill of {ring['fill']:.0%} a ring makes {ring['late']:.0%} of the windows late."
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}"'
        f' role="img"><title>{title}</title><style>{STYLE}</style>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _by_fill() -> list[str]:
    curves = {case: of_case(case, smallest()) for case in CASES}
    fills = [row["fill"] for row in curves["ring"]]
    across = Scale(min(fills), max(fills), LEFT, LEFT + PANEL)
    up = Scale(0.0, 100 * max(row["late"] for rows in curves.values() for row in rows), BOTTOM, TOP)
    parts = [text(12, 24, "Windows late or lost, by how full the engines are", "strong")]
    x, y = 12.0, 44.0
    for name, colour in CASES.values():
        if x + 24 + 6.6 * len(name) > LEFT + PANEL + 20:
            x, y = 12.0, y + 18
        parts += [rect(x, y - 10, 11, 11, colour), text(x + 16, y, name, "soft")]
        x += 30 + 6.4 * len(name)
    parts += _grid(up, LEFT, "%")
    for tick in across.ticks(5):
        parts.append(text(across(tick), BOTTOM + 17, f"{tick:.0%}", "soft", "middle"))
    parts.append(
        text(LEFT + PANEL / 2, BOTTOM + 35, "cameras, of what engines hold", "soft", "middle")
    )
    for case, rows in curves.items():
        points = [(across(row["fill"]), up(100 * row["late"])) for row in rows]
        parts.append(_curve(points, CASES[case][1]))
    return parts


def _after_a_death() -> list[str]:
    death = result("fleet_simulation")["after_a_death"]
    curves = death["mean_wait_s"]
    times = [point[0] for points in curves.values() for point in points]
    across = Scale(min(times), max(times), SECOND, SECOND + PANEL)
    top_s = max(point[1] for points in curves.values() for point in points)
    up = Scale(0.0, 1.05 * top_s, BOTTOM, TOP)
    heading = "Mean wait of cameras whose engine dies, s"
    parts = [text(SECOND - 38, 24, heading, "strong")]
    x = SECOND - 38.0
    for name, colour in KEPT.items():
        parts += [rect(x, 34, 11, 11, colour), text(x + 16, 44, name, "soft")]
        x += 110
    parts += _grid(up, SECOND, "")
    for tick in across.ticks(5):
        parts.append(text(across(tick), BOTTOM + 17, f"{tick:g}", "soft", "middle"))
    for time_s, words in ((0.0, "death"), (death["restart_s"], "back")):
        parts.append(line(across(time_s), TOP, across(time_s), BOTTOM, "mark"))
        parts.append(text(across(time_s) + 4, TOP + 10, words, "soft"))
    parts.append(text(SECOND + PANEL / 2, BOTTOM + 35, "seconds since", "soft", "middle"))
    for name, points in curves.items():
        parts.append(_curve([(across(x), up(y)) for x, y, _ in points], KEPT[name]))
    return parts


def _grid(up: Scale, left: float, unit: str) -> list[str]:
    parts = []
    for tick in up.ticks(4):
        parts.append(line(left, up(tick), left + PANEL, up(tick), "rule"))
        parts.append(text(left - 6, up(tick) + 4, f"{tick:g}{unit}", "soft", "end"))
    return parts


def _curve(points: list[tuple[float, float]], colour: str) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="var(--{colour})" stroke-width="2"/>'


TABLES: dict[str, Callable[[], str]] = {
    "fleet-plan": plan,
    "fleet-breaks": breaks,
    "fleet-sizes": sizes,
    "fleet-validation": validation,
    "rolling-restart": restart,
}
