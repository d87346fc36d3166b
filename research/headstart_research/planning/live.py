"""Forecasts a live camera: frames are prefilled as they arrive, so that little is left at the end.

A file comes whole: the target's prefill is long, and it is the time in which a drafter can draft.
A live window's last frame finds the others prefilled: what is left is that frame, the question and
a pass. There is next to no time to draft, so drafts are what memory has ready.
"""

from dataclasses import dataclass, replace

from headstart.errors import PlanningError
from headstart_research.planning.costs import Costs
from headstart_research.planning.forecast import Forecast, bare, drafted
from headstart_research.planning.survival import Survival


@dataclass(frozen=True, slots=True)
class LiveWindow:
    """The window that every question of a camera is about, and what feeding its frames costs."""

    num_frames: int
    window_s: float
    every_s: float
    """A window starts, and a question is asked, every so many seconds."""
    feed_s: float
    """Prefilling one frame by itself, in a request of its own."""
    within_s: float | None = None
    """How long 95% of the answers may take, from the last frame; None is until the next one's."""

    def __post_init__(self) -> None:
        if self.num_frames < 1:
            raise PlanningError(f"a window of {self.num_frames} frames: give at least 1")
        if self.feed_s <= 0:
            raise PlanningError("a feed takes time: give it above 0 ms, as measured")
        if not 0 < self.every_s <= self.window_s:
            raise PlanningError(
                f"a window of {self.window_s:g} s every {self.every_s:g} s: give a step above 0"
                " that is no longer than the window, so that no frame is left out"
            )

    @property
    def limit_s(self) -> float:
        """How long 95% of the answers may take."""
        return self.every_s if self.within_s is None else self.within_s

    def prompt_s(self, costs: Costs, num_unfed: int = 1) -> float:
        """From the last frame to the first token where so many frames are not fed yet.

        All of them is a whole prefill; the last one only is its feed, and a step for the question.
        Between the two it is taken to be linear.
        """
        least_s = min(self.feed_s + costs.step_s, costs.prefill_s)
        if self.num_frames == 1:
            return least_s
        share = (num_unfed - 1) / (self.num_frames - 1)
        return least_s + share * (costs.prefill_s - least_s)

    def feeding_s(self, costs: Costs, num_frames: int) -> float:
        """What feeding so many frames in one request takes: less than one by one."""
        more_s = self.prompt_s(costs, num_frames) - self.prompt_s(costs, 1)
        return self.feed_s + more_s if num_frames else 0.0


@dataclass(frozen=True, slots=True)
class LiveForecast:
    """One way to answer on every window: the waits from the last frame, and the engine's work."""

    answer: Forecast
    engine_s: float
    """What the engine works for a window, feeds included, where nobody shares its passes."""


def live_forecasts(
    costs: Costs, window: LiveWindow, num_tokens: int, survival: Survival
) -> dict[str, LiveForecast]:
    """Bare vLLM given the whole window at its last frame, feeding, drafts, and both.

    ``survival`` is that of every draft, the one that is verified with the prompt included.
    """
    if window.num_frames * window.feed_s + costs.step_s < costs.prefill_s:
        raise PlanningError(
            f"{window.num_frames} feeds of {window.feed_s * 1e3:g} ms take less than the prefill of"
            f" {costs.prefill_s * 1e3:g} ms: measure both on one engine, with the same frames"
        )
    fed_costs = replace(costs, prefill_s=window.prompt_s(costs))
    # The last frame is part of the prompt, not of the feeds.
    feeds_s = (window.num_frames - 1) * window.feed_s
    answers = {
        "bare": bare(costs, num_tokens),
        "fed": bare(fed_costs, num_tokens),
        "drafts": drafted(costs, num_tokens, survival, first=survival),
        "both": drafted(fed_costs, num_tokens, survival, first=survival),
    }
    return {
        name: LiveForecast(
            answer, answer.end_to_end_s + (feeds_s if name in ("fed", "both") else 0.0)
        )
        for name, answer in answers.items()
    }
