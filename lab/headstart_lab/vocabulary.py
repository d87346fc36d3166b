"""The tokenizer that the lab's two models share, fitted to the lab's language."""

from collections.abc import Iterator
from typing import Any

from headstart.models.video_llava.view import VIDEO_PLACEHOLDER, video_prompt
from headstart_events.eventgpt.view import EVENT_PLACEHOLDER, event_prompt
from headstart_lab.language.questions import Question
from headstart_lab.language.styles import DRAFTER_STYLE, TARGET_STYLE
from headstart_lab.split import Split
from headstart_lab.tiny import PLACEHOLDERS
from headstart_lab.tokenizer import train_tokenizer
from headstart_lab.world.drive import SECOND_US, Drive

MAX_PIECES = 4_000
EVENT_PLACEHOLDERS = ("<event>", "<ev_start>", "<ev_end>")
LAB_PLACEHOLDERS = (*PLACEHOLDERS, *EVENT_PLACEHOLDERS)
"""They come after the text, so that both models have the same id for every piece of text."""


def train_lab_tokenizer(num_drives: int = 40, num_clips: int = 12, seed: int = 0) -> Any:
    """The shared tokenizer, the same for the same arguments."""
    tokenizer = train_tokenizer(
        _sentences(num_drives, num_clips, seed), MAX_PIECES, added_tokens=LAB_PLACEHOLDERS
    )
    tokenizer.pad_token = "<pad>"
    return tokenizer


def _sentences(num_drives: int, num_clips: int, seed: int) -> Iterator[str]:
    """Prompts of both models, and the reference answers for both on training drives."""
    for question in Question:
        for wording in question.value:
            yield video_prompt(wording).replace(VIDEO_PLACEHOLDER, "")
            yield event_prompt(wording).replace(f"<ev_start>{EVENT_PLACEHOLDER}<ev_end>", "")
    for number in Split.TRAIN.seeds(num_drives, skip=seed):
        drive = Drive(number)
        for index in range(num_clips):
            scene = drive.scene(index * 7 * SECOND_US)
            for question in Question:
                for style in (TARGET_STYLE, DRAFTER_STYLE):
                    yield style.answer(scene, question).text
