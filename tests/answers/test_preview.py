"""What a reader is shown: never two truths, and the answer in the end."""

from random import Random

import pytest

from headstart.answers.preview import Confirmed, Preview, PreviewText, Retracted


class Reader:
    """Keeps the two texts by the rules the module states."""

    def __init__(self):
        self.certain, self.changing = "", ""

    def read(self, told):
        for shown in told:
            match shown:
                case Preview(text=text):
                    assert text
                    self.changing += text
                case Retracted(text=text):
                    assert text == self.changing
                    self.changing = ""
                case Confirmed(text=text):
                    self.certain += text
                    assert self.changing.startswith(text) or text.startswith(self.changing)
                    self.changing = self.changing[len(text) :]


def test_a_right_draft_is_shown_once_and_never_taken_back():
    text = PreviewText()
    assert text.draft("The car", "eventgpt") == [Preview("The car", "eventgpt")]
    assert text.draft("The car stops.", "eventgpt") == [Preview(" stops.", "eventgpt")]
    assert text.confirm("The ") == [Confirmed("The ")]
    assert text.confirm("car stops.") == [Confirmed("car stops.")]
    assert text.end() == []


def test_what_the_target_contradicts_is_taken_back_first():
    text = PreviewText()
    text.draft("The car stops.", "memory")
    assert text.confirm("The bus") == [Retracted("The car stops."), Confirmed("The bus")]


def test_a_draft_refuted_before_it_came_is_not_shown():
    text = PreviewText()
    text.confirm("The bus")
    assert text.draft("The car stops.", "memory") == []


def test_another_source_may_go_on_but_not_contradict():
    text = PreviewText()
    text.draft("The car", "memory")
    assert text.draft("A bus", "eventgpt") == []
    assert text.draft("The car stops.", "eventgpt") == [Preview(" stops.", "eventgpt")]
    assert text.draft("A bus", "eventgpt") == [
        Retracted("The car stops."),
        Preview("A bus", "eventgpt"),
    ]


def test_words_previewed_beyond_the_end_are_taken_back():
    text = PreviewText()
    text.draft("Yes. Really.", "memory")
    text.confirm("Yes.")
    assert text.end() == [Retracted(" Really.")]


@pytest.mark.parametrize("seed", range(200))
def test_whatever_comes_the_reader_ends_with_the_answer(seed):
    chance, text, reader = Random(seed), PreviewText(), Reader()
    answer = "".join(chance.choice("ab ") for _ in range(30))
    said = 0
    while said < len(answer):
        if chance.random() < 0.5:
            right = chance.randint(0, len(answer))
            wrong = "".join(chance.choice("ab ") for _ in range(chance.randint(0, 6)))
            reader.read(text.draft(answer[:right] + wrong, chance.choice(["memory", "eventgpt"])))
        else:
            size = chance.randint(0, 5)
            reader.read(text.confirm(answer[said : said + size]))
            said += size
    reader.read(text.end())
    assert (reader.certain, reader.changing) == (answer, "")
