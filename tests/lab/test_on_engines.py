"""What the lab measures, on real engines of an untrained pair: the demo and the scores.

One engine a model for all of them; they are handed engines that run already.
"""

import json
from contextlib import nullcontext

import pytest

from headstart import Headstart
from headstart_lab.answering import Asked, answer_all, held_out_drive
from headstart_lab.demo.showing import show_drive
from headstart_lab.language.questions import Question
from headstart_lab.language.styles import DRAFTER_STYLE, TARGET_STYLE
from headstart_lab.pair import Pair
from tests.conftest import WITHOUT_CACHE

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def directory(tmp_path_factory, tiny_target, tiny_drafter):
    directory = tmp_path_factory.mktemp("pair")
    (directory / "target").symlink_to(tiny_target)
    (directory / "drafter").symlink_to(tiny_drafter)
    return directory


@pytest.fixture(scope="module")
def start(directory, eventgpt_engine):
    """Opens an engine that runs already, and leaves it running."""
    pair = Pair.at(directory)
    with Headstart(pair.target, max_draft_tokens=0, vllm=WITHOUT_CACHE) as target:
        running = {pair.target: target, pair.drafter: eventgpt_engine}
        yield lambda model, **vllm: nullcontext(running[model])


def test_the_demo_shows_what_each_model_says_of_its_own_pictures(directory, start):
    pair = Pair.at(directory)
    shown = show_drive(pair, 3, start=start)
    assert [each.second for each in shown] == [0, 1, 2]
    assert [each.target.pictures.shape[0] for each in shown] == [8] * 3
    assert [each.drafter.pictures.shape[0] for each in shown] == [5] * 3
    for clip, each, question in zip(held_out_drive(3), shown, Question, strict=False):
        assert each.question == question.usual
        assert each.target.truth == TARGET_STYLE.answer(clip.scene, question)
        assert each.drafter.truth == DRAFTER_STYLE.answer(clip.scene, question)
        for model, side in ((pair.target, each.target), (pair.drafter, each.drafter)):
            with start(model) as engine:
                alone = engine.ask(clip.clip, question.usual, max_tokens=128)
            assert side.said == alone.text.strip()


def test_answers_come_in_the_order_of_the_questions(directory, start):
    asked = [
        Asked(clip, question, question.usual)
        for clip in held_out_drive(2)
        for question in (Question.SAFE, Question.WEATHER, Question.PEOPLE)
    ]
    done = []
    with start(Pair.at(directory).target) as engine:
        together = answer_all(
            engine, asked, max_tokens=8, report=lambda work, num, total: done.append((num, total))
        )
        alone = [engine.ask(a.clip.clip, a.wording, max_tokens=8) for a in asked]
    assert [a.token_ids for a in together] == [a.token_ids for a in alone]
    assert done == [(number, 6) for number in range(1, 7)]


def test_scores_are_of_every_kind_of_question_beside_the_blind(
    directory, start, capsys, monkeypatch
):
    monkeypatch.setenv("VLLM_LOGGING_LEVEL", "ERROR")  # it is set there; gone again afterwards
    from headstart_lab.measures.scores import main

    main(["--pair", str(directory), "--num", "16", "--blind-drives", "2"], start)
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert figures["num_questions"] == 16
    for name in ("target", "target_blind", "drafter", "drafter_blind"):
        assert set(figures[name]["of_question"]) == {question.name for question in Question}
        assert 0.0 <= figures[name]["facts"] <= 1.0
    # Untrained models state fewer facts right than the most frequent answers do.
    assert figures["target"]["facts"] < figures["target_blind"]["facts"]
