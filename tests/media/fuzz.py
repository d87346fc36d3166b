"""Feed the readers corrupted, truncated and hostile files, and watch what they do.

``python -m tests.media.fuzz --num 100000`` runs in a child process that is replaced when it
dies; the last line printed is JSON. The promise: every file is read or refused with a
`MediaError`, in under 2 s of the processor's time, within 1 GiB, and no code in it runs.
"""

import argparse
import json
import multiprocessing
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path

from headstart.errors import MediaError
from headstart.media.video import Video
from headstart_events.readers.hdf5_client import CLIENT
from headstart_events.readers.opening import open_recording
from tests.media.hostile import crafted_files, mutated, valid_files
from tests.media.hostile_containers import SENSOR

MAX_EVENTS = 5_000_000
MAX_SECONDS = 2.0
MAX_RESIDENT_MIB = 1024
# By the clock: generous, since others may have the processor meanwhile.
HANG_SECONDS = 120


class Corpus:
    """File number i, the same for the same seed: crafted ones first, then injured ones."""

    def __init__(self, folder: Path, seed: int, bomb_bytes: int) -> None:
        self.canary = folder / "canary"
        self._seed = seed
        self._valid = valid_files(folder)
        self.crafted = list(crafted_files(folder, self.canary, bomb_bytes))

    def file(self, index: int) -> tuple[str, str, bytes]:
        if index < len(self.crafted):
            return self.crafted[index]
        rng = random.Random(f"{self._seed} {index}")
        if rng.random() < 0.1:
            name, suffix, data = rng.choice(self.crafted)
            if len(data) < 100_000:
                return f"injured {name}", suffix, mutated(data, rng)
        suffix, data = self._valid[index % len(self._valid)]
        return f"injured {suffix} {index}", suffix, mutated(data, rng)


def attempt(path: Path) -> str:
    """Read all there is to read: "read" or "refused"; anything else is raised."""
    try:
        if path.suffix in (".mp4", ".mkv"):
            Video.read(path, max_bytes=1 << 26)
            return "read"
        with open_recording(path, sensor=None, max_events=MAX_EVENTS) as recording:
            read_through(recording)
        return "read"
    except MediaError as error:
        if "--sensor" not in str(error):
            return "refused"
    try:
        with open_recording(path, sensor=SENSOR, max_events=MAX_EVENTS) as recording:
            read_through(recording)
        return "read"
    except MediaError:
        return "refused"


def read_through(recording) -> None:
    events = recording.read_all()
    if len(events):
        middle = (recording.first_us + int(events.t[-1])) // 2
        recording.read(middle, middle + 50_000)


def work(corpus: Corpus, folder: Path, start: int, stop: int, pipe: Connection) -> None:
    """In the child: report each file before it is tried, and what came of it."""
    # Making the files took memory of its own: forget that peak, the readers' is wanted.
    Path("/proc/self/clear_refs").write_text("5")
    for index in range(start, stop):
        title, suffix, data = corpus.file(index)
        path = folder / f"file{suffix}"
        path.write_bytes(data)
        pipe.send({"index": index, "title": title})
        outcome, seconds = timed(path)
        if corpus.canary.exists():
            corpus.canary.unlink()
            outcome = "ran code"
        report = {"outcome": outcome, "suffix": path.suffix, "seconds": seconds}
        pipe.send({**report, "mib": peak_mib()})


def timed(path: Path) -> tuple[str, float]:
    """What became of a file, and what it took of the processor; a hang kills the process."""
    signal.alarm(HANG_SECONDS)
    started = processor_seconds()
    try:
        outcome = attempt(path)
    except BaseException as error:
        outcome = f"raised {type(error).__name__}: {error}"
    signal.alarm(0)
    return outcome, processor_seconds() - started


def processor_seconds() -> float:
    """Of this process, of helpers that have ended, and of the one that runs."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = time.process_time() + ended.ru_utime + ended.ru_stime
    stat = Path(f"/proc/{CLIENT._process.pid}/stat") if CLIENT._process else None
    if stat is not None and stat.exists():
        # Behind the name in brackets: user and system time are the 14th and 15th of all fields.
        fields = stat.read_text().rpartition(")")[2].split()
        seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return seconds


def peak_mib() -> float:
    """Peak resident memory of this process since it was last forgotten, and of its helper."""
    helper = CLIENT._process.pid if CLIENT._process else None
    processes = ["self"] if helper is None else ["self", str(helper)]
    return sum(_peak_kib(Path(f"/proc/{process}/status")) for process in processes) / 1024


def _peak_kib(status: Path) -> int:
    lines = status.read_text() if status.exists() else ""
    # A process that has ended but was not yet asked about has no memory left.
    return int(lines.split("VmHWM:")[1].split()[0]) if "VmHWM:" in lines else 0


def run(num_files: int, seed: int, bomb_bytes: int) -> dict:
    """Try ``num_files`` in a child, replaced after a file that killed it."""
    outcomes: Counter[str] = Counter()
    slow, failures = [], []
    worst_seconds = worst_mib = 0.0
    started = time.perf_counter()
    index = 0
    with tempfile.TemporaryDirectory() as name:
        corpus = Corpus(Path(name), seed, bomb_bytes)
        while index < num_files:
            context = multiprocessing.get_context("fork")
            reports, pipe = context.Pipe(duplex=False)
            child = context.Process(target=work, args=(corpus, Path(name), index, num_files, pipe))
            child.start()
            pipe.close()
            current: dict | None = None
            while True:
                try:
                    report = reports.recv()
                except EOFError:
                    break
                if "title" in report:
                    current, index = report, report["index"] + 1
                    continue
                worst_seconds = max(worst_seconds, report["seconds"])
                worst_mib = max(worst_mib, report["mib"])
                if report["seconds"] > MAX_SECONDS:
                    slow.append({**current, **report})
                if report["outcome"] in ("read", "refused"):
                    outcomes[f"{report['suffix']} {report['outcome']}"] += 1
                else:
                    failures.append({**current, **report})
                if index % 10_000 == 0:
                    print(index, f"{time.perf_counter() - started:.0f} s", flush=True)
                current = None
            child.join()
            if child.exitcode:
                failures.append({**(current or {}), "outcome": f"killed by {-child.exitcode}"})
    return {
        "num_files": num_files,
        "num_crafted": len(corpus.crafted),
        "seed": seed,
        "num_failures": len(failures),
        "failures": failures[:20],
        "num_over_2_s": len(slow),
        "slow": slow[:20],
        "worst_seconds": round(worst_seconds, 3),
        "peak_resident_mib": round(worst_mib, 1),
        "outcomes": dict(sorted(outcomes.items())),
        "seconds": round(time.perf_counter() - started, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bomb-bytes", type=int, default=2 << 30)
    options = parser.parse_args()
    result = run(options.num, options.seed, options.bomb_bytes)
    print(json.dumps(result))
    sys.exit(not kept(result))


def kept(result: dict) -> bool:
    """Whether the promise was."""
    broken = result["num_failures"] or result["num_over_2_s"]
    return not broken and result["peak_resident_mib"] < MAX_RESIDENT_MIB


if __name__ == "__main__":
    main()
