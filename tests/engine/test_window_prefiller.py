"""Feeding: one at a time, a little at a time, in the time that answers leave."""

import asyncio
import logging

import numpy as np
import pytest

from headstart.engine.window_prefiller import (
    MAX_FEED_S,
    MAX_NEW_FRAMES,
    PrefillLane,
    WindowPrefiller,
)
from headstart.speculation.drafter import StreamKey
from tests.turned_loop import run_turned, settle, turn


def frames(count):
    """So many, and their times."""
    return [np.full((2, 2, 3), number, np.uint8) for number in range(count)], range(count)


class Engine:
    """Prefills when it is told to, and knows what was asked of it."""

    def __init__(self):
        self.begun = []
        self.num_at_once = 0
        self._turns = asyncio.Semaphore(0)
        self._running = 0
        self._failing = 0

    async def prefill(self, feed):
        self.begun.append((feed.stream.stream, len(feed.video)))
        self._running += 1
        self.num_at_once = max(self.num_at_once, self._running)
        await self._turns.acquire()
        self._running -= 1
        if self._failing:
            self._failing -= 1
            raise RuntimeError("no room")

    async def finish(self, count=1):
        """So many feeds end, one after the other, or as many as there are."""
        for _ in range(count):
            await settle()
            if self._running:
                self._turns.release()
        await settle()

    async def fail(self):
        self._failing += 1
        await self.finish()


def lanes(*names):
    return [PrefillLane(StreamKey("", name)) for name in names]


def on_a_feeder(test):
    """Run ``test(engine, feeder)`` in an event loop."""

    async def run():
        engine = Engine()
        feeder = WindowPrefiller(engine.prefill)
        await test(engine, feeder)

    asyncio.run(run())


def test_one_feed_is_under_way_at_a_time_and_of_a_few_frames():
    async def test(engine, feeder):
        front, side = lanes("front", "side")
        feeder.offer(front, *frames(2 * MAX_NEW_FRAMES + 1))
        feeder.offer(side, *frames(1))
        await settle()
        assert engine.begun == [("front", MAX_NEW_FRAMES)]
        assert not feeder.is_idle
        await engine.finish(2)
        assert not feeder.is_idle
        await engine.finish(8)
        assert feeder.is_idle
        assert engine.num_at_once == 1
        of_front = [count for stream, count in engine.begun if stream == "front"]
        assert of_front == [MAX_NEW_FRAMES, 2 * MAX_NEW_FRAMES, 2 * MAX_NEW_FRAMES + 1]
        assert ("side", 1) in engine.begun
        assert (feeder.counts.feeds, feeder.counts.frames) == (4, 2 * MAX_NEW_FRAMES + 2)

    on_a_feeder(test)


def test_frames_that_land_during_a_feed_go_into_the_next_together():
    async def test(engine, feeder):
        (front,) = lanes("front")
        feeder.offer(front, *frames(1))
        await settle()
        for count in (2, 3):
            feeder.offer(front, *frames(count))
        await engine.finish(5)
        assert engine.begun == [("front", 1), ("front", 3)]

    on_a_feeder(test)


def test_a_feed_holds_the_frames_of_its_window_in_order():
    async def test(engine, feeder):
        (front,) = lanes("front")
        fed = []

        async def prefill(feed):
            fed.append(feed.video.frames[:, 0, 0, 0].tolist())

        feeder = WindowPrefiller(prefill)
        feeder.offer(front, *frames(3))
        await settle()
        assert fed == [[0, 1], [0, 1, 2]]

    on_a_feeder(test)


def test_an_answer_under_way_meets_one_feed_at_most():
    async def test(engine, feeder):
        front, side = lanes("front", "side")
        with feeder.answering():
            feeder.offer(front, *frames(5))
            await engine.finish(5)
            assert len(engine.begun) == 1
            feeder.offer(side, *frames(5))
            await settle()
            assert len(engine.begun) == 1
            assert not feeder.is_idle
        await settle()
        assert len(engine.begun) == 2

    on_a_feeder(test)


def test_an_answer_that_begins_during_a_feed_has_met_it():
    async def test(engine, feeder):
        (front,) = lanes("front")
        feeder.offer(front, *frames(5))
        await settle()
        with feeder.answering():
            await engine.finish()
            assert len(engine.begun) == 1
        await settle()
        assert len(engine.begun) == 2

    on_a_feeder(test)


def test_of_several_answers_none_meets_a_second_feed():
    async def test(engine, feeder):
        (front,) = lanes("front")
        with feeder.answering():
            feeder.offer(front, *frames(8))
            await engine.finish()
            with feeder.answering():
                await engine.finish()
                assert len(engine.begun) == 1, "the first answer would meet its second feed"
        await settle()
        assert len(engine.begun) == 2

    on_a_feeder(test)


def test_a_failed_answer_leaves_the_engine_to_the_feeds():
    async def test(engine, feeder):
        (front,) = lanes("front")
        feeder.offer(front, *frames(3))
        await settle()
        with pytest.raises(ZeroDivisionError), feeder.answering():
            raise ZeroDivisionError
        await engine.finish(3)
        assert len(engine.begun) == 2

    on_a_feeder(test)


def test_a_withdrawn_window_is_fed_no_more():
    async def test(engine, feeder):
        front, side = lanes("front", "side")
        feeder.offer(front, *frames(8))
        feeder.offer(side, *frames(1))
        await settle()
        feeder.withdraw(front)
        feeder.withdraw(PrefillLane(StreamKey("", "unknown")))
        await engine.finish(5)
        assert engine.begun == [("front", MAX_NEW_FRAMES), ("side", 1)]

    on_a_feeder(test)


def test_the_most_urgent_window_is_fed_first_of_equals_the_one_that_waits_longest():
    async def test(engine, feeder):
        (front,) = lanes("front")
        feeder.offer(front, *frames(1))
        await settle()
        for name, urgency in (("calm", 0.1), ("busy", 0.9), ("busy too", 0.9), ("late", 0.1)):
            feeder.offer(*lanes(name), *frames(1), urgency)
        await engine.finish(10)
        assert [stream for stream, _ in engine.begun] == [
            *("front", "busy", "busy too", "calm", "late")
        ]

    on_a_feeder(test)


def test_a_feed_that_fails_is_counted_and_the_next_goes_on(caplog):
    caplog.set_level(logging.DEBUG, "headstart")

    async def test(engine, feeder):
        (front,) = lanes("front")
        feeder.offer(front, *frames(MAX_NEW_FRAMES + 1))
        await settle()
        await engine.fail()
        await engine.finish(5)
        assert engine.begun == [("front", MAX_NEW_FRAMES), ("front", MAX_NEW_FRAMES + 1)]
        counts = feeder.counts
        assert (counts.feeds, counts.failed, counts.frames) == (1, 1, 1)

    on_a_feeder(test)
    assert "a feed of front failed: no room" in caplog.text


def test_frames_that_cannot_be_stacked_end_no_other_feed():
    async def test(engine, feeder):
        front, side = lanes("front", "side")
        uneven = [np.zeros((2, 2, 3), np.uint8), np.zeros((3, 3, 3), np.uint8)]
        feeder.offer(front, uneven, range(2))
        feeder.offer(side, *frames(1))
        await engine.finish(3)
        assert engine.begun == [("side", 1)]
        assert (feeder.counts.feeds, feeder.counts.failed) == (1, 1)
        assert feeder.is_idle

    on_a_feeder(test)


@pytest.mark.parametrize("has_begun", [False, True])
def test_a_cancelled_feed_ends_no_other_feed(has_begun):
    async def test(engine, feeder):
        front, side = lanes("front", "side")
        feeder.offer(front, *frames(1))
        if has_begun:
            await settle()
        (task,) = asyncio.all_tasks() - {asyncio.current_task()}
        task.cancel()
        await settle()
        feeder.offer(side, *frames(1))
        await engine.finish(5)
        assert ("side", 1) in engine.begun
        assert feeder.is_idle

    on_a_feeder(test)


def test_a_feed_without_an_end_is_given_up():
    async def test():
        begun, given_up = [], []

        async def prefill(feed):
            begun.append(feed.stream.stream)
            if feed.stream.stream == "paused":
                try:
                    await asyncio.Event().wait()
                finally:
                    given_up.append(feed.stream.stream)

        feeder = WindowPrefiller(prefill)
        paused, side = lanes("paused", "side")
        feeder.offer(paused, *frames(1))
        feeder.offer(side, *frames(1))
        await settle()
        assert begun == ["paused"]
        await turn(MAX_FEED_S - 1)
        assert given_up == []
        await turn(2)
        assert given_up == ["paused"]
        assert begun == ["paused", "side"]
        assert feeder.is_idle
        assert (feeder.counts.feeds, feeder.counts.failed) == (1, 1)

    run_turned(test())


def test_frames_are_fed_by_whole_items():
    async def test(engine, feeder):
        pairs = PrefillLane(StreamKey("", "pairs"), frames_per_item=2)
        feeder.offer(pairs, *frames(1))
        await settle()
        assert engine.begun == []
        feeder.offer(pairs, *frames(3))
        await settle()
        feeder.offer(pairs, *frames(5))
        await engine.finish()
        assert engine.begun == [("pairs", 2), ("pairs", 4)]
        await engine.finish()
        assert feeder.is_idle
        assert feeder.counts.frames == 4

    on_a_feeder(test)
