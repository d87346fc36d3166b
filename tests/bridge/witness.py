"""A drafter that drafts nothing and writes down what it is shown, for tests to read."""

import hashlib
import json
import os
import tempfile
from pathlib import Path

FILE = Path(tempfile.gettempdir()) / f"headstart-witness-{os.getuid()}.jsonl"
"""Where it writes: an engine's process has the environment of the first engine of the tests."""
PREPARED = "prepared"


def digest(tokens):
    """Of all values of a feature."""
    return hashlib.blake2b(tokens.tobytes(), digest_size=8).hexdigest()


class Witness:
    """Runs in the engine's process."""

    name = "witness"

    def begin(self, request):
        """Note nothing."""

    def prepare(self, request_id):
        """Write a line."""
        self._write({PREPARED: True})

    def see(self, request_id, features):
        """Write a line."""
        self._write(
            {
                name: {
                    "shape": tokens.shape,
                    "values": tokens.astype(float).ravel()[:8].tolist(),
                    "digest": digest(tokens),
                }
                for name, tokens in features.items()
            }
        )

    def _write(self, row):
        with FILE.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def propose(self, request_id, confirmed, max_tokens):
        """Nothing."""
        return ()

    def finish(self, request_id, answer):
        """Note nothing."""
