"""Answers of windows as rows of JSON, and a log of them that `headstart replay` reads.

`--output jsonl`, `--hook`, `--mqtt` and `--record` of `headstart watch` all give these rows.
"""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from headstart.errors import LiveError
from headstart.live.window_question import WindowAnswer

Row = dict[str, object]
_BEGINNING = b'{"time": '


def row_of(answer: WindowAnswer) -> Row:
    """One answer as JSON. Times in us are the source's clock; ``time`` is this machine's."""
    said = answer.answer
    return {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "stream": answer.stream,
        "start_us": answer.start_us,
        "stop_us": answer.stop_us,
        "num_frames": answer.num_frames,
        "question": answer.question,
        "target_text": said.text,
        "target_tokens": list(said.token_ids),
        "finish_reason": said.finish_reason,
        "num_passes": said.num_passes,
        "first_token_s": round(answer.first_token_s, 4),
        "wait_s": round(answer.wait_s, 4),
    }


class AnswerLog:
    """Appends rows to a file, each written out at once. Used from one thread."""

    def __init__(self, path: str | Path) -> None:
        self._path = path
        try:
            _cut_off_broken_row(Path(path))
            self._file = Path(path).open("a", encoding="utf-8")  # noqa: SIM115 - closed in `close`
        except OSError as error:
            raise LiveError(
                f"{path} cannot be written ({error.strerror}): name a file in a folder that is"
                " there and yours"
            ) from error

    def write(self, row: Row) -> None:
        try:
            self._file.write(json.dumps(row) + "\n")
            self._file.flush()
        except OSError as error:
            raise LiveError(
                f"{self._path} cannot be written any more ({error.strerror}): make room for it, or"
                " name another file"
            ) from error

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _cut_off_broken_row(path: Path) -> None:
    """A kill or a full disk breaks a row off; who reads a log forgives that at its end only.

    Nothing is cut off that does not begin as a row of ours: somebody may name a wrong file.
    """
    if not path.is_file():
        return
    held = path.read_bytes()
    whole = held.rfind(b"\n") + 1
    if held[whole:].startswith(_BEGINNING):
        os.truncate(path, whole)
