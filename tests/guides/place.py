"""The directory of a reader: what guides name and a reader has of their own."""

import json
from pathlib import Path

from headstart_lab.street import street_video
from headstart_lab.tiny import TinyVideoLlava
from tests.documents import ROOT

MODELS = ("Qwen/Qwen3-VL-8B-Instruct", "path/to/your/checkpoint", "path/to/your/model")
"""A directory of this name is there, so that nothing is asked for at a hub."""
SECONDS = 6
"""Of a recording: enough to be measured on after the answers that warm up."""


def furnish(home: Path) -> None:
    """Put small things there under the names that the guides give them."""
    for name in ("examples", "lab"):  # of the checkout, where a reader is
        (home / name).symlink_to(ROOT / name)
    first, *others = (home / name for name in MODELS)
    TinyVideoLlava().save(first)
    for model in others:
        model.parent.mkdir(parents=True, exist_ok=True)
        model.symlink_to(first)
    (home / "recordings").mkdir()
    film = street_video(num_frames=25 * SECONDS, width=96, height=64)
    film.write(home / "recordings" / "street.mp4")
    street_video(num_frames=55, width=96, height=64).write(home / "street.mp4")
    rows = (
        {"stream": name, "question": "What is happening?", "target_text": f"A {name} car turns."}
        for name in ("front", "rear", "front")
    )
    (home / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
