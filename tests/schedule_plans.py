"""Random plans for schedulers: requests, when they come and go, and the engine they come to."""

import random
from dataclasses import dataclass, replace
from typing import Any

from vllm.sampling_params import StructuredOutputsParams

from headstart.engine.options import Sources
from rig.schedule_engine import BLOCK_SIZE, LEAST, full_attention, sliding_window
from rig.schedule_harness import Asked, Picture, Turn, words_of
from rig.schedule_target import END, FIRST_WORD, VOCABULARY, likely_answer

NUM_SPARE_BLOCKS = 300  # enough for every request of a plan at a time
HOSTILE = ([-1] * 40, [10**9] * 40, [VOCABULARY] * 9, ["x", None, True], list(range(64)) * 30)
PLACEHOLDER = 1
"""The token in whose places pictures are."""
GRAMMARS = (
    "[a-zA-P]+[0-8]",
    "([a-z]|[A-Z0-8][a-zA-Z])+",
    "[a-zA-Z0-8]{1,24}",
    "a(b|[c-zC-Z]{2,9})*",
)


@dataclass(frozen=True)
class Plan:
    """Everything of one run that is not the scheduler's to decide."""

    seed: int
    arguments: dict[str, Any]
    windows: tuple[int, ...]
    """Of the layers; 0 stands for full attention."""
    num_spare_blocks: int
    """Beyond the least with which vLLM starts."""
    longest_picture: int
    max_draft_tokens: int
    sources: Sources
    asked: tuple[Asked, ...]
    num_in_flight: int = 1
    is_paced: bool = False
    """Whether any number of tokens is left for prompts beside answers, from none on."""
    has_channel: bool = False
    """Whether drafts may come from another process; none does."""
    rehearsals: tuple[Asked, ...] = ()
    """Of some of the requests; vLLM's own scheduler knows nothing of them."""

    @property
    def engine(self) -> dict[str, Any]:
        """What `scheduler` takes."""
        layers = {
            f"layer {place}": sliding_window(window) if window else full_attention()
            for place, window in enumerate(self.windows)
        }
        return {
            "num_blocks": LEAST,
            "num_spare_blocks": self.num_spare_blocks,
            "layers": layers,
            "longest_item": self.longest_picture,
            **self.arguments,
        }

    @property
    def is_by_priority(self) -> bool:
        return self.arguments.get("scheduling_policy") == "priority"

    def has(self, field: str) -> bool:
        """Whether a request has this of vLLM's sampling parameters."""
        return any(field in turn.params for asked in self.asked for turn in asked.turns)


def plan_of(seed: int, *, rehearses: bool = True) -> Plan:
    """A plan, the same for the same seed; without rehearsals all else of it is the same."""
    dice = random.Random(seed)
    max_model_len = dice.choice([96, 128, 160])
    budget = dice.choice([40, 96, 256, 512])
    max_draft_tokens = dice.choice([1, 8, 32, 64])
    if dice.random() < 0.05:
        max_draft_tokens = dice.choice([128, 129, 200])
        max_model_len, budget = 400, 512
    arguments: dict[str, Any] = {
        "max_num_seqs": dice.choice([2, 8, 16, 24, 32]),
        "enable_prefix_caching": dice.random() < 0.8,
    }
    if dice.random() < 0.3:
        arguments["scheduling_policy"] = "priority"
    longest_picture = dice.choice([5, 12, 24]) if dice.random() < 0.3 else 0
    threshold = dice.choice([4, 8, 24]) if dice.random() < 0.3 else 0
    if longest_picture and dice.random() < 0.5:
        arguments["disable_chunked_mm_input"] = True
        threshold = 24 if threshold else 0  # of fewer tokens, vLLM would not begin the picture
    if dice.random() < 0.15:
        arguments["enable_chunked_prefill"] = False
        budget, threshold = max(budget, max_model_len), 0
    if threshold:
        arguments["long_prefill_token_threshold"] = threshold
    arguments |= {"max_model_len": max_model_len, "max_num_batched_tokens": budget}
    num_in_flight = 1
    if dice.random() < 0.03:
        arguments["pipeline_parallel_size"] = num_in_flight = 2
    windows: tuple[int, ...] = (0,)
    if dice.random() < 0.5:
        windows = dice.choice([(0, 20), (0, 48), (64, 0), (20,), (48,), (64, 20), (0, 20, 48)])
    num_spare_blocks = dice.choice([0, 0, 2, 4, 8, NUM_SPARE_BLOCKS, NUM_SPARE_BLOCKS])
    world = _World(
        dice,
        max_model_len,
        # A growing prompt keeps its blocks while it waits; with few, vLLM comes to a halt.
        grows=num_spare_blocks == NUM_SPARE_BLOCKS,
        # While one samples, nobody is drafted for on a CPU.
        samples=dice.random() < 0.2,
        writes=dice.random() < 0.25,
        holds=dice.random() < 0.5,
        longest_picture=longest_picture,
    )
    sources = Sources(abstain=dice.random() < 0.2, rehearsals=None)
    asked = tuple(world.asked(number) for number in range(dice.choice([20, 60, 120])))
    is_paced, has_channel = dice.random() < 0.5, dice.random() < 0.1
    # With dice of their own, so that the rest of a plan is the same without them.
    rehearsed = _Rehearsed(random.Random(f"rehearsals of {seed}"))
    if rehearses:
        asked = rehearsed.added_to(asked)
    return Plan(
        seed,
        arguments,
        windows,
        num_spare_blocks,
        longest_picture,
        max_draft_tokens,
        sources,
        asked,
        num_in_flight,
        is_paced,
        has_channel,
        tuple(rehearsed.rehearsals),
    )


class _Rehearsed:
    """Requests of a plan as questions about live windows, and what rehearses some of them."""

    def __init__(self, dice: random.Random) -> None:
        self.rehearsals: list[Asked] = []
        self._dice = dice

    def added_to(self, asked: tuple[Asked, ...]) -> tuple[Asked, ...]:
        """The requests, further apart where some are rehearsed: a crowd leaves no time for it."""
        share = self._dice.choice([0.0, 0.2, 0.6])
        stretch = self._dice.choice([1, 5, 25]) if share else 1
        return tuple(self._added(_later(one, stretch), share) for one in asked)

    def _added(self, asked: Asked, share: float) -> Asked:
        """A request as one about a window; what rehearses it comes mostly before it."""
        dice, turn = self._dice, asked.turns[0]
        told = (turn.params.get("extra_args") or {}).get("headstart", {})
        if "stream" not in told or len(asked.turns) > 1 or dice.random() >= share:
            return asked
        window = asked.name.replace("request", "window")
        for number in range(dice.choice([1, 1, 2, 4])):
            length = max(1, len(turn.prompt) - dice.choice([0, 1, 5, BLOCK_SIZE]))
            early = {"stream": told["stream"], "window": window, "rehearses": True}
            if dice.random() < 0.05:
                early["until_s"] = 0.0  # the next frame is due
            begun = Turn(
                turn.prompt[:length],
                {**turn.params, "extra_args": {"headstart": early}},
                max(0, turn.at + dice.choice([-40, -20, -9, -5, -3, -2, -1, 0, 2])),
            )
            aborted = begun.at + dice.randrange(12) if dice.random() < 0.2 else None
            self.rehearsals.append(
                Asked(
                    f"rehearsal-{number}-of-{asked.name}",
                    (begun,),
                    dice.randrange(3),
                    aborted_at=aborted,
                    is_aborted_in_a_step=dice.random() < 0.7,
                    pictures=tuple(
                        one for one in asked.pictures if one.offset + one.length <= length
                    ),
                )
            )
        params = {**turn.params, "extra_args": {"headstart": {**told, "window": window}}}
        return replace(asked, turns=(replace(turn, params=params),))


def _later(asked: Asked, stretch: int) -> Asked:
    """A request as it comes where all of a plan come so many times further apart."""
    shift = (stretch - 1) * asked.arrives_at
    return replace(
        asked,
        turns=tuple(replace(turn, at=turn.at + shift) for turn in asked.turns),
        aborted_at=None if asked.aborted_at is None else asked.aborted_at + shift,
        late=tuple((at + shift, draft) for at, draft in asked.late),
    )


class _World:
    """Requests that share prefixes, pictures, streams and moments."""

    def __init__(
        self,
        dice: random.Random,
        max_model_len: int,
        grows: bool,
        samples: bool,
        writes: bool,
        holds: bool,
        longest_picture: int,
    ) -> None:
        self._dice = dice
        self._longest = max_model_len
        self._growing_share = 0.3 if grows else 0.0
        self._sampled_share = 0.1 if samples else 0.0
        self._written_share = 0.4 if writes else 0.0
        self._held_share = 0.4 if holds else 0.0
        self._longest_picture = longest_picture
        self._base = self._words(max_model_len)
        self._shown = self._place_pictures()
        self._tails = [self._words(3) for _ in range(4)]
        self._now = 0

    def _words(self, count: int) -> list[int]:
        return [self._dice.randrange(FIRST_WORD, VOCABULARY) for _ in range(count)]

    def _place_pictures(self) -> list[Picture]:
        """The pictures in the words that prompts share; the same one may be there twice."""
        pictures, place = list[Picture](), 0
        while self._longest_picture:
            number = self._dice.randrange(6)
            length = max(1, self._longest_picture - 2 * number)
            place += self._dice.choice([0, 1, 3, BLOCK_SIZE])
            if place + length >= self._longest:
                break
            pictures.append(Picture(f"picture-{number}", place, length))
            self._base[place : place + length] = [PLACEHOLDER] * length
            place += length
        return pictures

    def asked(self, number: int) -> Asked:
        dice = self._dice
        self._now += dice.choice([0, 0, 0, 0, 0, 0, 0, 1, 3, 10])
        num_turns = dice.choice([2, 3, 5]) if dice.random() < self._growing_share else 1
        turns, now, context = [], self._now, list[int]()
        pictures: tuple[Picture, ...] = ()
        room = self._longest // num_turns  # of each turn, its answer included if others follow
        for _ in range(num_turns):
            length = min(dice.choice([1, 5, 15, 16, 17, 31, 32, 33, 49, 60]), room // 2)
            prompt, num_shared = self._prompt(length, first=not context)
            if num_turns == 1:
                pictures = tuple(
                    one for one in self._shown if one.offset + one.length <= num_shared
                )
            context += words_of(prompt, pictures)
            most = room - length if num_turns > 1 else self._longest
            params = self._params(context, most, f"ask-{number}", is_growing=num_turns > 1)
            turns.append(Turn(tuple(prompt), params, now))
            now += dice.choice([0, 1, 5, 40])
        aborted = self._now + dice.randrange(30) if dice.random() < 0.08 else None
        late = (
            ((self._now + dice.randrange(6), tuple(self._draft(context))),)
            if dice.random() < 0.3
            else ()
        )
        return Asked(
            f"request-{number}",
            tuple(turns),
            priority=dice.randrange(3),
            session_id=dice.choice([None, None, None, "session"]),
            aborted_at=aborted,
            is_aborted_in_a_step=dice.random() < 0.7,
            late=late,
            pictures=pictures,
        )

    def _prompt(self, length: int, first: bool) -> tuple[list[int], int]:
        """Words, and how many of them are those that prompts share."""
        if not first or self._dice.random() < 0.3:
            return self._words(length), 0
        tail = self._dice.choice(self._tails) if length > 8 else []
        num_shared = length - len(tail)
        return [*self._base[:num_shared], *tail], num_shared

    def _params(self, prompt: list[int], most: int, name: str, is_growing: bool) -> dict[str, Any]:
        dice = self._dice
        params: dict[str, Any] = {"max_tokens": min(most, dice.choice([1, 2, 10, 60, 60, 300]))}
        if not is_growing and dice.random() < self._written_share:
            params["structured_outputs"] = StructuredOutputsParams(regex=dice.choice(GRAMMARS))
        elif dice.random() < 0.3:
            params["ignore_eos"] = True
        if "structured_outputs" not in params and dice.random() < self._held_share:
            params["min_tokens"] = dice.randrange(min(40, params["max_tokens"]) + 1)
        if dice.random() < 0.2:
            params["stop_token_ids"] = self._words(2)
        if dice.random() < self._sampled_share:
            params |= {"temperature": dice.choice([0.5, 1.0, 2.0]), "seed": dice.randrange(99)}
        if dice.random() < 0.95:
            told: dict[str, Any] = {"draft": self._draft(prompt)}
            if dice.random() < 0.8:
                told["stream"] = dice.choice(["a", "b"])
            if dice.random() < 0.3:
                told |= {"ask": name, "preview": dice.random() < 0.5}
            params["extra_args"] = {"headstart": told}
        return params

    def _draft(self, prompt: list[int]) -> list[Any]:
        dice = self._dice
        if dice.random() < 0.05:
            return list(dice.choice(HOSTILE))
        right = likely_answer(prompt, dice.choice([0, 3, 20, 80, 80, 80]))
        share = dice.choice([0.0, 0.05, 0.2, 0.5, 1.0])
        return [
            dice.choice([END, *self._words(1)]) if dice.random() < share else token
            for token in right
        ]
