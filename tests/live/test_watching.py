"""Cameras watched on a real engine: every answer, the right name, and nothing left behind."""

import copy
import gc
import logging
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

from headstart import Confirmed, Preview, watch
from headstart.engine.loop_thread import LoopThread
from headstart.errors import HeadstartError, LiveError, MediaError
from headstart.live import watching as watching_module
from headstart.live.sources.reconnecting import Reconnecting
from headstart.live.sources.source import Arrival, BufferedSource, SourceCounts
from headstart.live.windows import FrameStatus, Windows
from headstart_lab.street import street_video
from rig.waiting import wait_until
from tests.models.oracle import Asked

pytestmark = pytest.mark.engine

QUESTION, MAX_TOKENS, NUM_FRAMES = "What is ahead?", 12, 8
SECOND = Windows(seconds=1.0)


class Camera:
    """Eight frames a second, each when the test lets it; then an end, or an error."""

    def __init__(self, name, frames, error=None):
        self.name, self._frames, self._error = name, frames, error
        self._may_go, self.is_closed, self.num_sent = threading.Semaphore(0), False, 0

    def let(self, num_frames=NUM_FRAMES):
        """So many frames more may come; one more than there are is the end."""
        self._may_go.release(num_frames)

    def arrivals(self):
        for number, frame in enumerate(self._frames):
            self._may_go.acquire()
            if self.is_closed:
                return
            yield Arrival(frame, number * 125_000)
            self.num_sent += 1
        self._may_go.acquire()
        if self._error is not None and not self.is_closed:
            raise self._error

    def close(self):
        self.is_closed = True
        self._may_go.release(10_000)

    @property
    def counts(self):
        return SourceCounts(frames=self.num_sent, dropped=0, reconnects=0)


def scene(rng, num_windows):
    coarse = rng.integers(0, 256, (num_windows * NUM_FRAMES, 6, 8, 3), dtype=np.uint8)
    return coarse.repeat(10, axis=1).repeat(10, axis=2)


def watching(cameras, headstart, **options):
    options = {"windows": SECOND, "max_tokens": MAX_TOKENS, **options}
    return watch(cameras, QUESTION, headstart=headstart, **options)


def our_threads():
    return {each.name for each in threading.enumerate() if each.name.startswith(("feed", "read"))}


@pytest.fixture(autouse=True)
def nothing_is_left(headstart):
    assert not our_threads()
    yield
    gc.collect()
    assert not our_threads()
    wait_until(lambda: headstart.target.feeder.is_idle)


def test_each_window_is_answered_with_the_targets_words(headstart, oracle, rng):
    frames = scene(rng, 3)
    camera = Camera("front", frames)
    with watching(camera, headstart) as answers:
        for start in range(0, len(frames), NUM_FRAMES):
            camera.let()
            answer = next(answers)
            asked = Asked(frames[start : start + NUM_FRAMES], QUESTION)
            assert list(answer.answer.token_ids) == oracle.answer(asked, MAX_TOKENS)[0]
            assert (answer.stream, answer.num_frames) == ("front", NUM_FRAMES)
            assert answer.start_us == start * 125_000
            assert 0 < answer.first_token_s <= answer.wait_s
        camera.let(1)
        assert next(answers, None) is None
        assert next(answers, None) is None
    counts = answers.counts["front"]
    assert (counts.live.asked, counts.source.frames) == (3, len(frames))


def test_a_last_window_that_is_not_full_is_asked_when_the_camera_ends(headstart, rng):
    camera = Camera("short", scene(rng, 1)[:5])
    camera.let(6)
    assert [answer.num_frames for answer in watching(camera, headstart)] == [5]


def test_a_file_is_watched_at_its_pace_to_its_end(headstart, tmp_path, paced):
    path = tmp_path / "street.mp4"
    street_video(num_frames=16, width=96, height=64).write(path, fps=8)
    answers = list(watching(path, headstart, windows=Windows(seconds=1.0)))
    assert sum(paced.waits_s) == pytest.approx(15 / 8)
    assert [answer.num_frames for answer in answers] == [8, 8]
    assert {answer.stream for answer in answers} == {str(path)}


def test_several_cameras_answer_under_their_own_names(headstart, rng):
    cameras = [Camera(name, scene(rng, 2)) for name in ("left", "right", "left")]
    with watching(cameras, headstart) as answers:
        for _ in range(2):
            for camera in cameras:
                camera.let()
            assert {next(answers).stream for _ in cameras} == {"left", "right", "left 2"}
        for camera in cameras:
            camera.let(1)
        assert list(answers) == []
    assert {counts.live.asked for counts in answers.counts.values()} == {2}


def test_drafted_words_are_shown_before_they_are_certain(headstart, rng):
    frames = scene(rng, 1)
    camera, shown = Camera("shown", np.concatenate([frames, frames])), []
    with watching(camera, headstart, on_shown=lambda *told: shown.append(told)) as answers:
        camera.let()
        first = next(answers)
        assert "".join(told.text for _, told in shown if isinstance(told, Confirmed)) == first.text
        shown.clear()
        camera.let()
        assert next(answers).text == first.text
    assert {stream for stream, _ in shown} == {"shown"}
    assert isinstance(shown[0][1], Preview)  # the same scene: memory knows the answer


def test_answers_that_nobody_reads_delay_no_camera(headstart, rng):
    camera = Camera("unread", scene(rng, 6))
    with watching(camera, headstart) as answers:
        camera.let(6 * NUM_FRAMES)
        wait_until(lambda: camera.num_sent == 6 * NUM_FRAMES)
        camera.let(1)
        read = [answer.start_us for answer in answers]
    counts = answers.counts["unread"].live
    assert read == sorted(read)
    assert read[-1] == 5 * 1_000_000  # the newest is never dropped
    assert len(read) == counts.asked == 6 - counts.dropped


def test_a_camera_that_fails_ends_alone_and_says_so(headstart, rng, caplog):
    broken = Camera("broken", scene(rng, 1), error=MediaError("the cable is cut: mend it"))
    whole = Camera("whole", scene(rng, 2))
    with watching([broken, whole], headstart) as answers:
        broken.let(NUM_FRAMES + 1)
        assert next(answers).stream == "broken"
        for _ in range(2):
            whole.let()
            assert next(answers).stream == "whole"
        whole.let(1)
        with pytest.raises(MediaError, match="the cable is cut"):
            next(answers)
        assert next(answers, None) is None
    warned = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert warned == ["broken is watched no longer: the cable is cut: mend it"]


def test_a_camera_whose_answers_fail_is_closed_and_the_others_go_on(headstart, rng):
    cameras = [Camera(name, scene(rng, 2)) for name in ("refused", "whole")]

    def show(stream, _):
        if stream == "refused":
            raise LiveError("no words of this one")

    with watching(cameras, headstart, on_shown=show) as answers:
        cameras[0].let()
        wait_until(lambda: cameras[0].is_closed)
        cameras[1].let()
        assert next(answers).stream == "whole"
        assert not cameras[1].is_closed


def test_answers_that_were_not_read_do_not_keep_a_watch_open(headstart, rng):
    camera = Camera("full", scene(rng, 3))
    with watching(camera, headstart) as answers:
        for number in range(3):
            camera.let()
            wait_until(lambda number=number: answers.counts["full"].live.asked > number)


def test_a_schema_that_cannot_be_followed_ends_the_watching(headstart, rng):
    camera = Camera("json", scene(rng, 2))
    camera.let()
    with pytest.raises(HeadstartError, match="schema"):
        list(watching(camera, headstart, schema={"type": "no such type"}))


def test_leaving_the_loop_ends_the_watching(headstart, rng):
    camera = Camera("left alone", scene(rng, 3))
    camera.let(NUM_FRAMES + 3)
    for answer in watching(camera, headstart):
        assert answer.stream == "left alone"
        assert our_threads()
        break
    assert not our_threads()
    assert len(headstart.ask(street_video(), "Still there?", max_tokens=2).token_ids) == 2


def test_a_watch_that_is_closed_before_any_frame_leaves_nothing(headstart, rng):
    answers = watching([Camera("a", scene(rng, 1)), Camera("b", scene(rng, 1))], headstart)
    assert len(our_threads()) == 4
    answers.close()
    assert not our_threads()
    answers.close()
    assert list(answers) == []


def test_closing_while_another_thread_waits_for_an_answer_ends_its_wait(headstart, rng):
    answers, read = watching(Camera("waited for", scene(rng, 1)), headstart), []
    reader = threading.Thread(target=lambda: read.extend(answers))
    reader.start()
    answers.close()
    reader.join(20)
    assert not reader.is_alive()
    assert read == []


def test_closing_after_the_engine_has_ended_waits_for_nothing(headstart, rng):
    ended = copy.copy(headstart)
    ended.loop = LoopThread()
    answers = watching(Camera("last", scene(rng, 1)), ended)
    ended.loop.close()
    answers.close()
    assert list(answers) == []


def test_a_camera_that_is_unplugged_and_back_is_watched_on(headstart, rng):
    plugs = []

    class Plug:
        """A connection at a camera's pace; the first is lost after a window and a half."""

        def __init__(self):
            plugs.append(self)
            self.is_last = len(plugs) == 2

        def frames(self):
            for number, frame in enumerate(scene(rng, 2)[:12]):
                time.sleep(0.125)  # plays: the camera's pace
                yield number * 125_000, frame
            if not self.is_last:
                raise OSError("unplugged")

        def close(self):
            pass

    with watching(BufferedSource("plug", Reconnecting("plug", Plug)), headstart) as answers:
        read = list(answers)
    starts = [answer.start_us for answer in read]
    assert starts == sorted(set(starts))
    assert starts[0] == 0
    assert starts[-1] >= 2_000_000  # of the second connection
    counts = answers.counts["plug"]
    assert counts.live.frames[FrameStatus.TAKEN] >= 12
    assert (counts.source.reconnects, counts.source.frames) == (1, 24)


def test_the_engine_that_was_started_ends_with_the_watching(headstart, rng, monkeypatch):
    started, ended = [], []

    @contextmanager
    def borrowed(target):
        started.append(target)
        yield headstart
        assert not our_threads()  # cameras first
        ended.append(target)

    monkeypatch.setattr(watching_module, "Headstart", borrowed)
    camera = Camera("any", scene(rng, 1))
    camera.let(NUM_FRAMES + 1)
    for _ in watch(camera, QUESTION, target="a target", windows=SECOND, max_tokens=2):
        assert (started, ended) == (["a target"], [])
    assert ended == ["a target"]


def test_what_cannot_be_watched_is_said_at_once(headstart, rng):
    with pytest.raises(LiveError, match="either a target or a running headstart"):
        watch(Camera("x", scene(rng, 1)), QUESTION)
    with pytest.raises(LiveError, match="either a target or a running headstart"):
        watch(Camera("x", scene(rng, 1)), QUESTION, target="x", headstart=headstart)
    with pytest.raises(LiveError, match="at least one"):
        watching([], headstart)
    with pytest.raises(HeadstartError, match="no-such"):
        watching("no-such-file.mp4", headstart)
