"""Answers as the target was taught to give them, without a picture and without an engine.

A learned drafter reads many of them before it learns from the target itself, whose answers take
seconds each.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random

from headstart_lab.drive_streams import FIRST_TEXT_DRIVE, DriveStream
from headstart_lab.errors import LabError
from headstart_lab.language.styles import TARGET_STYLE
from headstart_lab.split import Split
from headstart_lab.training.template import Template
from headstart_lab.workloads import ROTATING
from headstart_lab.world.drive import Drive, last_frame_us

Row = dict[str, object]


def text_drives(num_drives: int, seed: int) -> list[DriveStream]:
    """So many different drives, drawn by ``seed`` from those that are only told of."""
    told_of = Split.TRAIN.value[FIRST_TEXT_DRIVE:]
    if num_drives > len(told_of):
        raise LabError(
            f"there are {len(told_of)} drives to tell of: ask for no more with --set drives="
        )
    return [DriveStream(drawn) for drawn in Random(seed).sample(told_of, num_drives)]


def target_template(directory: Path) -> Template:
    """The tokens of the target in a directory."""
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise LabError(
            "the target's tokens need transformers: install headstart[cpu] or headstart[gpu]"
        ) from error
    return Template.of_target(AutoTokenizer.from_pretrained(directory, local_files_only=True))


def drive_texts(stream: DriveStream, num_clips: int, template: Template) -> Iterator[Row]:
    """The answers about the first seconds of a drive, four a second, as rows of a log.

    Each ends with the token at which the target stops, as its own answers do.
    """
    drive = Drive(stream.seed)
    for number in range(num_clips):
        scene = drive.scene(last_frame_us(number))
        for question in ROTATING:
            yield {
                "stream": stream.name,
                "question": question.usual,
                "target_tokens": template.answer(TARGET_STYLE.answer(scene, question).text),
                "finish_reason": "stop",
            }


def write_texts(file: Path, rows: Iterable[Row]) -> int:
    """Write a log; the file is there when all of it is. Returns the number of rows."""
    partial, num_rows = file.with_name(f"{file.name}.partial"), 0
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("w", encoding="utf-8") as lines:
            for row in rows:
                lines.write(json.dumps(row, separators=(",", ":")) + "\n")
                num_rows += 1
        partial.replace(file)
    except OSError as error:
        raise LabError(f"{file} cannot be written ({error.strerror}): name another file") from error
    return num_rows
