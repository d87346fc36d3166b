"""A drafter that drafts nothing and writes down what it is shown, for tests to read."""

import json
import os
import tempfile
from pathlib import Path

FILE = Path(tempfile.gettempdir()) / f"headstart-witness-{os.getuid()}.jsonl"
"""Where it writes: an engine's process has the environment of the first engine of the tests."""


class Witness:
    """Runs in the engine's process."""

    name = "witness"

    def begin(self, request):
        """Note nothing."""

    def see(self, request_id, features):
        """Write a line."""
        shown = {
            name: {"shape": tokens.shape, "values": tokens.astype(float).ravel()[:8].tolist()}
            for name, tokens in features.items()
        }
        with FILE.open("a") as file:
            file.write(json.dumps(shown) + "\n")

    def propose(self, request_id, confirmed, max_tokens):
        """Nothing."""
        return ()

    def finish(self, request_id, answer):
        """Note nothing."""
