"""README's commands and the first live answer, from nothing, with the seconds of each.

    python -m tests.soak.first_hour [--root DIRECTORY] [--output DIRECTORY]

Copies what git knows of this checkout into an empty directory, and types the commands of README's
``bash`` blocks into a shell there, one after the other; then the demo, until its page is up, and
the command of the first guide that watches a drive, until its first answer. The shell has an
empty home, none of the caller's variables but those named by ``--keep``, and the system's programs.
With ``--root`` it runs in another root directory (a fresh Debian, for example), which needs root.

Goes on after a command that fails, as a person would who wants to see all that is wrong. Prints a
table; the JSON it writes has the last lines of every command. Needs nothing but Python.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MARK = "first-hour-step-ended"
MAX_LINES = 40
DEMO = (
    "headstart demo --no-browser > demo.log 2>&1 & demo=$!;"
    " until grep -q 'up after' demo.log || ! kill -0 $demo; do sleep 1; done;"
    " tail -n 5 demo.log; grep -q 'up after' demo.log; up=$?;"
    " kill -TERM $demo; wait $demo; (exit $up)"
)
"""The page itself is asked for by a browser, which an empty machine has not."""


@dataclass(frozen=True)
class Step:
    """One command as it was typed."""

    command: str
    seconds: float
    busy_s: float
    """Of processors, which other work on the machine changes less."""
    code: int
    last_lines: tuple[str, ...]


class Shell:
    """A shell that is typed into: a directory that was entered stays entered."""

    def __init__(self, root: Path | None, home: str, variables: dict[str, str]) -> None:
        program = ["env", "-i", f"PATH={PATH}", f"HOME={home}", "LANG=C.UTF-8", "COLUMNS=100"]
        program += [f"{name}={value}" for name, value in variables.items()]
        program += ["bash", "--noprofile", "--norc"]
        if root is not None:
            program = ["chroot", str(root), *program]
        self._process = subprocess.Popen(
            program,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            process_group=0,  # a session of its own would leave the share of a caller that is niced
        )
        self._busy_s = 0.0
        self.type("cd")  # home

    def type(self, command: str) -> Step:
        """Run a command to its end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        begun_s, lines, code = time.monotonic(), [], -1
        # Nothing but the shell reads what is typed.
        self._process.stdin.write(f"{{ {command}\n}} < /dev/null\n")
        self._process.stdin.write(f"printf '\\n{MARK} %s\\n' $?; times\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith(MARK):
                code = int(line.split()[1])
                break
            if line.strip():
                lines.append(line.rstrip())
        seconds, busy_s = time.monotonic() - begun_s, self._busy_s
        own, children = (self._process.stdout.readline() for _ in range(2))
        if children:
            self._busy_s = sum(map(_seconds, [*own.split(), *children.split()]))
        spent_s = self._busy_s - busy_s
        return Step(command, round(seconds, 1), round(spent_s, 1), code, tuple(lines[-MAX_LINES:]))

    def close(self) -> None:
        """End it and what it has started."""
        try:
            os.killpg(self._process.pid, signal.SIGTERM)
        except ProcessLookupError:
            return
        self._process.wait()


def _seconds(words: str) -> float:
    """Of ``2m3.456s``, as a shell prints times."""
    minutes, _, seconds = words.rstrip("s").partition("m")
    return 60 * int(minutes) + float(seconds)


def commands(checkout: Path) -> Iterator[str]:
    """What a newcomer types, in order."""
    readme = (checkout / "README.md").read_text()
    blocks = re.findall(r"^```bash\n(.*?)^```", readme, flags=re.MULTILINE | re.DOTALL)
    for number, block in enumerate(blocks):
        yield from block.replace("\\\n", " ").splitlines()
        if number == 0:
            yield DEMO
    guide = (checkout / "docs" / "guides" / "first-five-minutes.md").read_text()
    lines = guide.replace("\\\n", " ")
    (watch,) = re.findall(r"^headstart watch drive:.*$", lines, flags=re.MULTILINE)
    yield f"{watch} --max-windows 1"


def copy(checkout: Path, place: Path) -> None:
    """Everything that git knows, without what was built or cached beside it."""
    place.mkdir(parents=True)
    listed = subprocess.run(
        ["git", "-C", str(checkout), "ls-files", "-z"], check=True, capture_output=True
    )
    subprocess.run(
        f"tar -C '{checkout}' --null -T - -c | tar -C '{place}' -x",
        shell=True,
        check=True,
        input=listed.stdout,
    )


def main() -> None:
    """Type everything, and print the table."""
    options = _options()
    base = options.root or Path(tempfile.mkdtemp(prefix="first-hour-", dir=options.where))
    home = base / "home" / "newcomer"
    copy(CHECKOUT, home / "headstart")
    inside = "/home/newcomer" if options.root else str(home)
    kept = {name: os.environ[name] for name in options.keep if name in os.environ}
    shell = Shell(options.root, inside, kept)
    shell.type("cd headstart")
    load, steps = os.getloadavg(), []
    begun_s = time.monotonic()
    try:
        for command in commands(CHECKOUT):
            steps.append(shell.type(command))
            _say(steps[-1])
    finally:
        shell.close()
    figures = {
        "benchmark": "first_hour",
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cores": os.cpu_count(),
        "load_average_before": [round(one, 2) for one in load],
        "load_average_after": [round(one, 2) for one in os.getloadavg()],
        "root": "another" if options.root else "the machine's own",
        "seconds": round(time.monotonic() - begun_s, 1),
        "steps": [asdict(step) for step in steps],
    }
    text = json.dumps(figures).replace(inside, "~")
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "first_hour.json").write_text(text + "\n")
    print("\n| step | seconds | of processors | |\n|---|---|---|---|")
    for step in steps:
        said = "" if step.code == 0 else "failed"
        print(f"| `{_short(step.command)}` | {step.seconds} | {step.busy_s} | {said} |")
    print(f"| all | {figures['seconds']} | {sum(step.busy_s for step in steps):.1f} | |")
    sys.exit(any(step.code for step in steps))


def _say(step: Step) -> None:
    print(f"{step.seconds:7.1f} s  {step.code}  {_short(step.command)}", flush=True)
    if step.code:
        print("\n".join(step.last_lines), flush=True)


def _short(command: str) -> str:
    return "headstart demo" if command == DEMO else " ".join(command.split())[:100]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, help="run in this root directory, by chroot")
    parser.add_argument("--where", type=Path, help="where the empty directory is made")
    parser.add_argument("--keep", nargs="*", default=(), help="variables of yours that are kept")
    parser.add_argument("--output", type=Path, default=Path("build/first-hour"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
