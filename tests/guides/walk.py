"""Runs the blocks of one document in their order, in one directory, each as its language says.

`bash` holds commands of headstart's, `sh` and `python` ask the server that a command before them
has started, `json` and `toml` are files that commands after them read. Python without a server is
a part of an example, which has a test of its own; so may `toml` be.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import indent
from typing import Any

import yaml

from rig.servers import Server, free_port, wait_until
from tests.documents import COMMAND, GUIDES, ROOT, every_block

TAKES_VLLM = {"ask", "bench", "serve", "watch"}
"""Commands that start engines and take their arguments."""
TIMEOUT_S = 900.0
SETTINGS, ADDRESS = "headstart.toml", "http://127.0.0.1:8000"
EXAMPLES = [
    path.read_text() for path in (ROOT / "examples").iterdir() if path.suffix in (".py", ".toml")
]
BROWSER = "sh -c 'echo \"%s\" > opened'"
"""In place of a browser: keeps the address that it was to open."""
PROGRAM = str(Path(sys.executable).with_name("headstart"))

SYSTEM = ("/etc/headstart", "/srv", "/var/log/headstart")
"""Directories that settings name."""

Start = Callable[[Sequence[str], Path, Mapping[str, str], Path], Any]
"""Starts headstart: its words, the directory, the environment, and where its output goes."""


def as_a_person(
    words: Sequence[str], home: Path, environment: Mapping[str, str], log: Path
) -> "subprocess.Popen[bytes]":
    """Start the program itself."""
    with log.open("wb") as output:
        return subprocess.Popen(
            [PROGRAM, *words],
            cwd=home,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def forked(words: Sequence[str], home: Path, environment: Mapping[str, str], log: Path) -> Any:
    """The same, sooner: forked from a process that has imported the engine."""
    from rig.forked_command import ForkedCommand

    if environment.get("PYTHONPATH") != os.environ.get("PYTHONPATH"):
        return as_a_person(words, home, environment, log)  # it is read at the start of Python
    if words[0] in TAKES_VLLM and not any("enforce_eager" in word for word in words):
        words = [*words, "--vllm", "enforce_eager=true"]  # compiling takes a minute of a core
    if words[0] == "bench" and "--rounds" not in words:  # as long as a reader may wait
        words = [*words, "--rounds", "1", "--answers", "4"]
    code = f"import os; os.chdir({str(home)!r}); from headstart.cli import main; main()"
    return ForkedCommand(["-c", code, *words], environment, log)


class Walk:
    """A walk through one document. `close` ends the server that it has left running."""

    def __init__(self, document: Path, home: Path, start: Start) -> None:
        self.document, self.home, self._start = document, home, start
        self.not_run: list[tuple[str, str]] = []
        """Language and reason of each block that says why it is not run."""
        self.num_run = 0
        self._server: Server | None = None
        self._num_logs = 0
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        direct = {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", "BROWSER": BROWSER}
        self._environment = {**os.environ, "PATH": path, **direct}

    def run(self) -> None:
        """Every block in its order."""
        text, end = self.document.read_text(), 0
        for reason, language, code in every_block(self.document):
            place = text.index(code, end)
            before, end = text[end:place], place + len(code)
            if reason:
                self.not_run.append((language, reason))
                continue
            self._block(language, code, before)
            self.num_run += 1

    def close(self) -> None:
        """End the server, if one runs."""
        if self._server is not None:
            assert self._server.stop() in (0, -signal.SIGTERM), self._server.tail()
            self._server = None

    def _block(self, language: str, code: str, before: str) -> None:
        if language == "bash":
            for line in code.replace("\\\n", " ").splitlines():
                assert COMMAND.match(line), f"{self.document.name}: no command of ours: {line}"
                self._command(line)
        elif language == "sh" or (language == "python" and not is_part_of_an_example(code)):
            self._ask(["bash", "-euc"] if language == "sh" else [sys.executable, "-c"], code)
        elif language == "json":
            names = re.findall(r"`([\w.]+\.jsonl?)`", before)
            assert names, f"{self.document.name}: no file is named before\n{code}"
            (self.home / names[-1]).write_text(code)
        elif language == "toml":
            if not is_part_of_an_example(code):
                self._settings(code)
        elif language == "yaml":  # of another program's
            assert yaml.safe_load(code), code
        else:
            assert language == "python", f"{self.document.name}: how is this run?\n{code}"

    def _command(self, line: str) -> None:
        words, environment = shlex.split(line, comments=True), dict(self._environment)
        while words[0] != "headstart":
            name, _, value = words.pop(0).partition("=")
            environment[name] = value
        del words[0]
        stays = words[0] == "serve" and "--print-vllm-flags" not in words
        port = free_port() if stays else 0
        if stays:
            self.close()
            words += ["--port", str(port)]
        self._num_logs += 1
        log = self.home / f"{self._num_logs}.log"
        process = self._start(words, self.home, environment, log)
        server = Server(process, port, log, environment)
        if stays:
            self._server = server
            server.wait_ready("/ready")
        else:
            try:
                if words[0] == "demo":
                    self._look_at_the_demo(server)
                status = process.wait(TIMEOUT_S)
            finally:
                if process.poll() is None:
                    process.kill()
            assert status == 0, f"{self.document.name}: {line}\n{server.tail()}"
            assert log.read_text().strip(), f"{self.document.name}: {line}\nprinted nothing"

    def _look_at_the_demo(self, server: Server) -> None:
        """Until a browser is opened; then the page is there, and Ctrl-C ends it."""
        opened = self.home / "opened"

        def is_open() -> bool:
            assert server.process.poll() is None, server.tail()
            return opened.exists() and opened.read_text().endswith("\n")

        wait_until(is_open, "a browser opened", TIMEOUT_S, server.log)
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(opened.read_text().strip(), timeout=60) as page:
            assert b"<canvas" in page.read()
        server.process.send_signal(signal.SIGINT)

    def _ask(self, command: list[str], code: str) -> None:
        """Ask the server of this walk; a guide that starts none means that of the first one."""
        if self._server is None:
            guide = next(path for path in GUIDES if path.stem == "server")
            first = next(code for _, language, code in every_block(guide) if language == "bash")
            self._block("bash", first, "")
        assert self._server is not None
        done = subprocess.run(
            [*command, code.replace(ADDRESS, self._server.url)],
            cwd=self.home,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        said = f"{self.document.name}:\n{code}\n{done.stdout}\n{done.stderr}"
        assert done.returncode == 0, said
        assert done.stdout.strip(), said
        assert '"error"' not in done.stdout, said

    def _settings(self, code: str) -> None:
        from headstart_server.settings import Settings

        told = code
        for folder in SYSTEM:  # which is not ours to write into
            own = self.home / "system" / folder.strip("/")
            own.mkdir(parents=True, exist_ok=True)
            told = told.replace(f'"{folder}', f'"{own}')
        (self.home / "system/etc/headstart/memory.key").write_text("a key of the tests, not short")
        for path in re.findall(r'^(?:root|answer_log) = "(.+?)"', told, flags=re.MULTILINE):
            Path(path).mkdir(exist_ok=True)
        (self.home / SETTINGS).write_text(told)
        Settings.of(tomllib.loads(told)).check_auth()


def is_part_of_an_example(code: str) -> bool:
    """Whether it stands so in a file of examples/, however deep."""
    return any(indent(code, " " * n) in each for each in EXAMPLES for n in (0, 4, 8))
