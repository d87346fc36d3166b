"""The report of one machine: parts that are played one after the other, and kept in one file.

A part that fails is kept with its reason, and the others are played. The file is written after each
part, so a report that was interrupted goes on where it was; parts that failed are tried again.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from headstart.errors import BenchError
from headstart_research.bench.cards import NOW, cards
from headstart_research.bench.engine_log import kept_output, last_lines, without_home

KIND, FORMAT = "headstart gpu-report", 1
FILE, PAGE, LOG = "gpu-report.json", "gpu-report.html", "gpu-report.log"
MAX_REASON_CHARACTERS = 800
MAX_LOG_LINES = 60

Say = Callable[[str], None]


@dataclass(frozen=True)
class Part:
    """One thing that the report finds out. What ``run`` returns must be JSON."""

    name: str
    words: str
    run: Callable[[Say], Mapping[str, Any]]


@dataclass(frozen=True)
class GpuReport:
    """A report as far as it has come, in a directory of its own."""

    directory: Path
    about: dict[str, Any]
    """The machine, the versions and the options."""
    parts: dict[str, dict[str, Any]]

    @classmethod
    def begun(
        cls, directory: Path, about: Mapping[str, Any], options: Mapping[str, Any]
    ) -> "GpuReport":
        """A new report, or the one in the directory if it was begun with the same options."""
        digest = sha256(json.dumps(options, sort_keys=True).encode()).hexdigest()[:16]
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / FILE
        parts: dict[str, dict[str, Any]] = {}
        if path.exists():
            given = read(path)
            if given["about"]["options_digest"] != digest:
                raise BenchError(
                    f"{path} is a report with other options: choose another --out, or delete it"
                )
            parts = given["parts"]
        return cls(directory, {**about, "options_digest": digest}, parts)

    @property
    def failed(self) -> list[str]:
        return [name for name, part in self.parts.items() if part["state"] != "done"]

    def play(self, parts: Sequence[Part], say: Say) -> None:
        for number, part in enumerate(parts, start=1):
            place = f"part {number} of {len(parts)}, {part.name}"
            if self.parts.get(part.name, {}).get("state") == "done":
                say(f"{place}: done before")
                continue
            say(f"{place}: {part.words}")
            self.parts[part.name] = self._outcome(part, lambda text: say(f"  {text}"))
            if "why" in self.parts[part.name]:
                say(f"{place}: failed. {self.parts[part.name]['why']}")
            self.write()

    def write(self) -> None:
        """Write the one file; a report that is cut off in the middle of it leaves the old one."""
        whole = {"kind": KIND, "format": FORMAT, "about": self.about, "parts": self.parts}
        partial = self.directory / f"{FILE}.partial"
        partial.write_text(json.dumps(whole, separators=(",", ":")) + "\n")
        partial.replace(self.directory / FILE)

    def _outcome(self, part: Part, say: Say) -> dict[str, Any]:
        log = self.directory / LOG
        start = log.stat().st_size if log.exists() else 0
        found: dict[str, Any] = {"state": "failed", "cards_before": cards(NOW)}
        begun_s = time.monotonic()
        try:
            with kept_output(log):
                found["result"] = part.run(say)
        except Exception as error:  # whatever a driver does, the other parts are played
            why = without_home(f"{type(error).__name__}: {' '.join(str(error).split())}")
            found["why"] = why[:MAX_REASON_CHARACTERS]
            found["log"] = last_lines(log, start, MAX_LOG_LINES)
        else:
            found["state"] = "done"
        return {**found, "seconds": round(time.monotonic() - begun_s, 1), "cards_after": cards(NOW)}


def read(path: Path) -> dict[str, Any]:
    try:
        given: dict[str, Any] = json.loads(path.read_text())
        if (given["kind"], given["format"]) != (KIND, FORMAT):
            raise KeyError("format")
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise BenchError(
            f"{path} is no report of this version's `headstart gpu-report`: choose another --out,"
            " or delete it"
        ) from error
    return given


def results(parts: Mapping[str, Mapping[str, Any]], kind: str) -> Iterator[tuple[str, Any]]:
    """The results of the parts whose name begins with a word, by name."""
    for name, part in parts.items():
        if part["state"] == "done" and name.split(",")[0] == kind:
            yield name, part["result"]
