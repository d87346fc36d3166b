"""The command as a process."""

import signal
import subprocess
import sys

COMMAND = """
import time
import headstart.cli

def app():
    try:
        print("engines are up", flush=True)
        time.sleep(60)
    finally:
        print("engines are closed", flush=True)

headstart.cli.app = app
headstart.cli.main()
"""


def test_a_command_that_is_told_to_end_closes_what_it_has_started():
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "engines are up\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == "engines are closed\n"
