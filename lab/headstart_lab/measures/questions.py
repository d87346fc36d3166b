"""Questions about held-out drives, and the answers of training drives to compare with."""

from collections.abc import Iterator
from random import Random

from headstart_lab.answering import Asked, Report, rendered, say_nothing
from headstart_lab.language.questions import Question
from headstart_lab.language.styles import Style
from headstart_lab.split import Split
from headstart_lab.world.drive import Drive, last_frame_us

QUESTIONS_A_CLIP = 4
CLIPS_A_DRIVE = 5
SECONDS_BETWEEN = 15
"""As in training, so that few clips of a drive show the same street."""


def held_out_questions(num: int, seed: int = 0, report: Report = say_nothing) -> list[Asked]:
    """``num`` questions about clips of as many held-out drives as that takes.

    All kinds come equally often, in an order drawn from ``seed``, as is the wording of each; no
    kind comes twice on a clip.
    """
    num_clips = -(-num // QUESTIONS_A_CLIP)
    places = [
        (drive, SECONDS_BETWEEN * place)
        for drive in Split.HELD_OUT.seeds(-(-num_clips // CLIPS_A_DRIVE))
        for place in range(CLIPS_A_DRIVE)
    ][:num_clips]
    random = Random(seed)
    kinds: list[Question] = []
    # Whole rounds of all kinds; their number is a multiple of the questions of a clip.
    while len(kinds) < num:
        kinds += random.sample(list(Question), len(Question))
    clips = rendered(places, report)
    return [
        Asked(clips[number // QUESTIONS_A_CLIP], kind, random.choice(kind.value))
        for number, kind in enumerate(kinds[:num])
    ]


def training_answers(
    style: Style, num_drives: int = 100, num_clips: int = 40
) -> Iterator[tuple[Question, str]]:
    """The reference answers on training drives; they need no rendered clips."""
    for seed in Split.TRAIN.seeds(num_drives):
        drive = Drive(seed)
        for second in range(num_clips):
            scene = drive.scene(last_frame_us(second))
            for question in Question:
                yield question, style.answer(scene, question).text
