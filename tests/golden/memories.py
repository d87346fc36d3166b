"""Two tenants' memories, as an engine exports them and as servers seal and store them.

    python -m tests.golden.memories

writes the directory `kept/memories` anew. `front.json` is a stream's snapshot as it leaves the
engine, `front.memory` the same sealed, as `headstart memory export` writes it, and `store` the
directory of a server that keeps three streams. Servers have such files: a version that writes
others must still read these.
"""

import json
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

from headstart.drafters.registry import build_cascade
from headstart.drafters.remembered import Remembered
from headstart.drafters.stream_snapshot import StreamSnapshot
from headstart.speculation.board import TextVocabulary
from headstart.speculation.cascade import Cascade
from headstart.speculation.drafter import DraftRequest, StreamKey
from headstart_server.memory.seal import SnapshotSeal, tokenizer_name
from headstart_server.memory.store import FileStore
from tests.golden.clock import CLOCK, turned

KEPT = Path(__file__).with_name("kept") / "memories"
PLAIN, SEALED, STORE = KEPT / "front.json", KEPT / "front.memory", KEPT / "store"
KEY = b"golden: the operator's key, of enough bytes"
FRONT = StreamKey("north", "front door")
BACK = StreamKey("north", "../back/\u8eca")
YARD = StreamKey("south", "yard")
WORDS = 1000
WHO, WHAT = "Who is there?", "What has changed?"
LONG = tuple(number * number % 997 for number in range(60))
TOLD = (
    (FRONT, WHO, (17, 4, 998, 0, 5)),
    (FRONT, WHAT, LONG),
    (BACK, WHO, (17, 4, 12)),
    (FRONT, WHO, (17, 4, 998, 6, 5)),
    (YARD, WHO, (700, 701, 702, 703)),
    (FRONT, WHAT, LONG[:40]),
    (FRONT, WHO, (17, 4, 998, 6, 5)),
)
"""Whose stream it is, the question, and what the target answered; one in each second."""
SECONDS = {
    stream: [1001.0 + place for place, told in enumerate(TOLD) if told[0] == stream]
    for stream in (FRONT, BACK, YARD)
}


def new_cascade() -> Cascade:
    """The usual sources, which know nothing."""
    return build_cascade(("memory", "ngram"), TextVocabulary(WORDS))


def tell(cascade: Cascade) -> None:
    """Have the target answer, one draft verified in each pass."""
    for number, (stream, question, answer) in enumerate(TOLD):
        drafted = cascade.begin(DraftRequest(f"told-{number}", stream, question))
        confirmed = list[int]()
        while len(confirmed) < len(answer):
            draft = cascade.propose(drafted, confirmed, 8)
            for token in (*draft.tokens, None):
                confirmed = list(answer[: len(confirmed) + 1])
                if token != confirmed[-1]:
                    break
        CLOCK.now_s += 1.0
        cascade.finish(drafted, answer)


def seal() -> SnapshotSeal:
    """What the server seals with, and its tokenizer."""
    vocabulary = {f"word {number}": number for number in range(WORDS)}
    return SnapshotSeal([KEY], tokenizer_name(vocabulary))


def to_json(plain: dict[str, Any]) -> str:
    """A snapshot's plain form in a file that people can read."""
    said = b64encode(plain["said"]).decode("ascii")
    return json.dumps({**plain, "said": said}, indent=1) + "\n"


def from_json(text: str) -> dict[str, Any]:
    """Back again."""
    plain: dict[str, Any] = json.loads(text)
    return {**plain, "said": b64decode(plain["said"])}


def write(directory: Path) -> None:
    """Write all of it into a directory."""
    with turned():
        cascade = new_cascade()
        tell(cascade)
        store = FileStore(directory / STORE.name, 3600.0)
        for stream in (FRONT, BACK, YARD):
            plain = Remembered(cascade).export(stream.tenant, stream.stream)
            assert plain is not None
            sealed = seal().seal(stream, StreamSnapshot.parse(plain))
            store.put(stream, sealed)
            if stream == FRONT:
                (directory / PLAIN.name).write_text(to_json(plain))
                (directory / SEALED.name).write_bytes(sealed)


if __name__ == "__main__":
    write(KEPT)
