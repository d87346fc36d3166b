"""The loop: learns, and after a kill goes on as if nothing had been."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

torch = pytest.importorskip("torch")

from headstart.errors import TrainingError
from headstart_lab.language.facts import Fact
from headstart_lab.training.answer_task import AnswerTask, pack_lesson
from headstart_lab.training.lessons import drawn
from headstart_lab.training.run import make_learner
from headstart_lab.training.train_config import TrainConfig
from headstart_research.training.optimizer import SLOW_SHARE, optimizer_of, orthogonal
from headstart_research.training.savepoint import History, Savepoint
from tests.lab.training.pupil import TINY, MadeUpLessons, config, make_tokenizer, run, teach

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]


def pupil(*arguments):
    # Each in a process of its own: what other tests loaded into this one may change a last bit.
    return subprocess.Popen(
        [sys.executable, "-m", "tests.lab.training.pupil", *map(str, arguments)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def taught_to_the_end(path):
    """The steps that were done, and what was measured in the end."""
    said, _ = pupil(path).communicate()
    *steps, measured = said.splitlines()
    return [int(step) for step in steps], json.loads(measured)


def test_a_killed_run_goes_on_with_the_same_losses(tmp_path):
    path = tmp_path / "checkpoint.pt"
    killed = pupil(path, 5)
    try:
        # It waits after its fifth step; if it ends before, the lines end too.
        assert "5\n" in iter(killed.stdout.readline, "")
    finally:
        killed.kill()  # SIGKILL
        killed.communicate()
    # A half-written state beside the whole one must not matter.
    path.with_name("checkpoint.pt.partial").write_bytes(b"half")
    steps, resumed = taught_to_the_end(path)
    assert steps == [6, 7, 8, 9, 10]
    steps, uninterrupted = taught_to_the_end(tmp_path / "other.pt")
    assert steps == list(range(1, 11))
    assert resumed == uninterrupted
    assert resumed["losses"][-1] < resumed["losses"][0]


def test_a_finished_run_teaches_nothing_more(tmp_path):
    run(tmp_path / "checkpoint.pt")
    steps = []
    again = run(tmp_path / "checkpoint.pt", report=lambda config, history: steps.append(1))
    assert not steps
    assert again.num_steps == 10


def test_a_run_of_another_course_is_refused(tmp_path):
    learner = make_learner("drafter", TINY, make_tokenizer())
    savepoint = Savepoint(tmp_path / "checkpoint.pt")
    optimizer = optimizer_of(learner.model, 0.0)
    savepoint.write(learner.model, optimizer, config(), History())
    with pytest.raises(TrainingError, match="another seed"):
        savepoint.read(learner.model, optimizer, replace(config(), seed=1))
    other = make_learner("target", TINY, make_tokenizer())
    with pytest.raises(TrainingError, match="another size"):
        savepoint.read(other.model, optimizer, config())


def test_the_target_learns_too(tmp_path):
    torch.manual_seed(0)
    learner = make_learner("target", TINY, make_tokenizer())
    lessons = MadeUpLessons(num=2)
    taught = TrainConfig(30, batch_size=2, num_questions=2, learning_rate=1e-2, num_examined=2)
    history = teach(learner, lessons, taught, tmp_path / "s.pt")
    assert history.losses[-1] < 0.5 * history.losses[0]


def test_every_clip_comes_once_before_any_comes_again():
    numbers = [number for step in range(3) for number, _ in drawn(step, 4, 6, seed=3)]
    assert sorted(numbers[:6]) == sorted(numbers[6:]) == list(range(6))
    assert numbers[:6] != numbers[6:]
    chances = [random.random() for step in range(3) for _, random in drawn(step, 4, 6, seed=3)]
    assert len(set(chances)) == 12


def test_a_glance_is_the_end_of_the_clip():
    learner = make_learner("target", TINY, make_tokenizer())
    lesson = MadeUpLessons(num_pictures=8).lesson(0, Random(0), 1)
    lesson.pictures[:, 0, 0, 0] = range(8)
    lessons = MadeUpLessons()
    speaking = AnswerTask(learner, lessons, lessons, TrainConfig(10, glance=2, whole_share=0.2))
    for step, seen in ((7, [6, 7]), (8, [*range(8)])):
        assert speaking._glance(lesson, step).pictures[:, 0, 0, 0].tolist() == seen


def test_facts_are_asked_for_one_by_one_beside_the_questions():
    learner = make_learner("target", TINY, make_tokenizer())
    lesson = MadeUpLessons().lesson(0, Random(0), 2)
    alone = pack_lesson(learner, lesson)
    drilled = pack_lesson(learner, lesson, [Fact("road", "edge", "left"), Fact("car", "is", "red")])
    assert drilled.lengths[:2] == alone.lengths
    assert len(drilled.lengths) == 4
    added = drilled.targets[len(alone.targets) :].tolist()
    assert added == [*learner.template.answer("left"), *learner.template.answer("red")]


def test_what_has_learned_before_moves_a_tenth():
    torch.manual_seed(0)
    old, new = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
    new.load_state_dict(old.state_dict())
    start = old.weight.detach().clone()
    optimizer = optimizer_of(torch.nn.ModuleList([old, new]), 0.0, slow=[old])
    gradient = torch.randn(4, 4)
    for each in (old, new):
        each.weight.grad = gradient.clone()
    optimizer.step(1e-3)
    steps = [(each.weight - start).detach() for each in (old, new)]
    assert steps[1].abs().max() > 1e-3
    assert torch.allclose(steps[0], SLOW_SHARE * steps[1], atol=1e-6)


def test_muon_s_steps_are_orthogonal():
    torch.manual_seed(0)
    for shape in ((3, 24, 40), (2, 40, 24)):
        singular = torch.linalg.svdvals(orthogonal(torch.randn(shape)).float())
        assert ((singular > 0.5) & (singular < 1.5)).all()


def test_the_rate_rises_then_falls():
    rates = [config(100).rate(step) for step in range(100)]
    top = rates.index(max(rates))
    assert top == 4
    assert max(rates) == pytest.approx(config().learning_rate)
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert rates[-1] == pytest.approx(0.05 * config().learning_rate, rel=0.05)
    with pytest.raises(TrainingError):
        TrainConfig(0)
