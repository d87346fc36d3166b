"""Scores, the blind baseline, and what a whole run leaves behind."""

import json
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from PIL import Image

from headstart.doctor.digests import changed_files
from headstart.errors import TrainingError
from headstart_lab.cache import Cache, Recipe
from headstart_lab.errors import LabError
from headstart_lab.scoring import usual_answers
from headstart_lab.split import Split
from headstart_lab.training.evaluation import evaluate_blind, said_in
from headstart_lab.training.lessons import CachedLessons
from headstart_lab.training.run import Run, rendered, shared_tokenizer
from headstart_lab.training.sizes import PairSize
from headstart_lab.training.train_config import TrainConfig
from headstart_lab.vocabulary import train_lab_tokenizer
from headstart_research.training.curve import draw_curve
from tests.lab.training.pupil import TINY

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    cache = Cache(tmp_path_factory.mktemp("drives"), Recipe(num_clips=3, width=28, height=28))
    cache.fill([*Split.TRAIN.seeds(2), *Split.HELD_OUT.seeds(1)])
    return cache


@pytest.fixture(scope="module")
def lab_tokenizer():
    return train_lab_tokenizer(num_drives=2, num_clips=2)


def lab_clip_size():
    """Tiny models that take the lab's 8 frames and 5 slices."""
    llama = replace(TINY.target.llama, max_tokens=1024)
    return PairSize(
        replace(TINY.target, llama=llama, num_frames=8),
        replace(TINY.drafter, llama=llama, num_slices=5),
    )


def test_a_run_leaves_a_model_its_curve_and_its_results(cache, lab_tokenizer, tmp_path):
    said, steps = [], []

    def counted(name):
        return lambda config, history: steps.append((name, history.num_steps))

    run = Run(
        cache,
        tmp_path,
        TrainConfig(3, batch_size=2, num_questions=2, num_examined=1, glance=2),
        TrainConfig(2, batch_size=2, num_examined=1),
        size=lab_clip_size(),
        num_looked_at=2,
        num_evaluated=2,
        num_questions_each=2,
        num_threads=1,
    )
    for which in ("target", "drafter"):
        run.train(which, lab_tokenizer, said.append, counted)
        results = json.loads((tmp_path / "training" / which / "results.json").read_text())
        assert len(results["losses"]) == 3
        assert 0 <= results["facts"] <= 1
        assert results["score"]["num_questions"] == results["blind"]["num_questions"] == 4
        assert results["seed"] == 0
        assert set(results["eyes"]) >= {"place", "kind", "role"}
        assert results["versions"]["torch"] == torch.__version__
        assert (tmp_path / which / "model.safetensors").exists()
        assert not changed_files(tmp_path / which)
        assert Image.open(tmp_path / "training" / which / "loss.png").size == (960, 540)
    each = [("target's eyes", 1), ("target's eyes", 2), *(("target", n) for n in (1, 2, 3))]
    assert steps[:5] == each
    assert len(steps) == 10
    run.train("target", lab_tokenizer, said.append, counted)
    assert "is trained" in said[-1]
    assert len(steps) == 10


def test_drives_rendered_since_a_run_began_are_refused(cache, lab_tokenizer, tmp_path):
    config = TrainConfig(2, batch_size=2, num_questions=2, num_examined=1)
    run = Run(cache, tmp_path, config, config, lab_clip_size(), save_every_s=0.0, num_evaluated=1)

    def stop(config, history):
        raise KeyboardInterrupt

    def words_only(name):
        return stop if name == "drafter" else lambda config, history: None

    with pytest.raises(KeyboardInterrupt):
        run.train("drafter", lab_tokenizer, lambda line: None, words_only)
    cache.fill(Split.TRAIN.seeds(3))
    with pytest.raises(TrainingError, match="another num_drives"):
        run.train("drafter", lab_tokenizer, lambda line: None, words_only)


def test_the_tokenizer_is_made_once_for_a_pair(lab_tokenizer, tmp_path):
    made = []

    def make():
        made.append(1)
        return lab_tokenizer

    first, second = (shared_tokenizer(tmp_path, make) for _ in range(2))
    assert made == [1]
    assert first.get_vocab() == second.get_vocab() == lab_tokenizer.get_vocab()
    assert second("Is it safe?")["input_ids"] == lab_tokenizer("Is it safe?")["input_ids"]


def test_lessons_are_the_house_s_own(cache):
    from random import Random

    seeds = rendered(cache, Split.TRAIN)[:2]
    target, drafter = (CachedLessons(cache, seeds, model) for model in ("target", "drafter"))
    assert len(target) == 6
    assert target.lesson(0, Random(0), 3).pictures.shape == (8, 28, 28, 3)
    assert drafter.lesson(0, Random(0), 3).pictures.shape == (5, 28, 28, 3)
    both = [each.lesson(4, Random(7), 3).exchanges for each in (target, drafter)]
    assert [e.wording for e in both[0]] == [e.wording for e in both[1]]
    assert [e.answer.text for e in both[0]] != [e.answer.text for e in both[1]]
    for each in (target, drafter):
        lesson = each.lesson(4, Random(7), 16)
        stated = {fact for exchange in lesson.exchanges for fact in exchange.answer.facts}
        assert set(lesson.facts) == stated
        assert len(lesson.facts) == len(stated) > 1
    with pytest.raises(LabError, match="choose target or drafter"):
        CachedLessons(cache, [], "judge")
    with pytest.raises(LabError, match="headstart lab data"):
        CachedLessons(cache, [77], "target")


def test_the_blind_one_says_what_is_usual_and_scores_below_the_truth(cache):
    seeds = rendered(cache, Split.TRAIN)
    usual = usual_answers(said_in(cache, seeds, "target"))
    lessons = CachedLessons(cache, rendered(cache, Split.HELD_OUT), "target")
    blind = evaluate_blind(usual, lessons, 3, num_questions=16)
    assert blind.num_questions == 48
    assert blind.facts < 0.9
    assert len(blind.of_question) == 16


def test_a_curve_can_be_drawn_of_one_step(tmp_path):
    draw_curve(tmp_path / "one.png", "one", [2.0], [(1, 2.5)])
    assert Image.open(tmp_path / "one.png").size == (960, 540)
