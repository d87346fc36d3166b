"""The prompts in training: the same token ids that vLLM gets at inference, around the clip."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headstart.models.video_llava.view import VIDEO_PLACEHOLDER, video_prompt
from headstart_events.eventgpt.view import event_prompt, place_events, placeholder_id


@dataclass(frozen=True)
class Prompt:
    """Ids before the clip's tokens, how many those are, and the ids after them."""

    before: tuple[int, ...]
    num_pictures: int
    after: tuple[int, ...]


@dataclass(frozen=True)
class Template:
    """One model's prompt and tokenizer."""

    tokenizer: Any
    placeholder: int
    encode: Callable[[str], list[int]]

    @classmethod
    def of_target(cls, tokenizer: Any) -> "Template":
        """Video-LLaVA's: the prompt is encoded in one piece."""

        def encode(question: str) -> list[int]:
            return list(tokenizer(video_prompt(question))["input_ids"])

        placeholder = tokenizer.convert_tokens_to_ids(VIDEO_PLACEHOLDER)
        return cls(tokenizer, placeholder, encode)

    @classmethod
    def of_drafter(cls, tokenizer: Any) -> "Template":
        """EventGPT's: the words before and after the events are encoded apart."""

        def encode(question: str) -> list[int]:
            return place_events(tokenizer, list(tokenizer(event_prompt(question))["input_ids"]))

        return cls(tokenizer, placeholder_id(tokenizer), encode)

    def prompt(self, question: str, num_pictures: int) -> Prompt:
        """A question's ids around a clip of that many tokens."""
        ids = self.encode(question)
        place = ids.index(self.placeholder)
        return Prompt(tuple(ids[:place]), num_pictures, tuple(ids[place + 1 :]))

    def answer(self, text: str) -> tuple[int, ...]:
        """The ids of a reference answer, with the end of sequence."""
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return (*ids, self.tokenizer.eos_token_id)

    def decode(self, ids: list[int]) -> str:
        """The text of generated ids."""
        return str(self.tokenizer.decode(ids, skip_special_tokens=True))
