"""The prompt around the events, as in the published model's training."""

from typing import Any

EVENT_PLACEHOLDER = "<event>"

_SYSTEM = (
    "A chat between a curious human and an artificial intelligence assistant."
    " The assistant gives helpful, detailed, and polite answers to the human's questions."
)


def event_prompt(question: str, system: str = "") -> str:
    """The prompt of one question about one window of events."""
    return f"{system or _SYSTEM} USER: <ev_start>{EVENT_PLACEHOLDER}<ev_end>\n{question} ASSISTANT:"


def placeholder_id(tokenizer: Any) -> int:
    """The token id of the events' placeholder in the prompt.

    The published model uses an id outside the vocabulary, which vLLM refuses. A tokenizer without
    the placeholder gives its unknown token instead, which Llama's tokenizer never produces from
    text, since it spells unknown characters in bytes.
    """
    return int(tokenizer.convert_tokens_to_ids(EVENT_PLACEHOLDER))


def place_events(tokenizer: Any, prompt: list[int]) -> list[int]:
    """Encode the text before and after the events separately, as in training.

    Encoded in one piece, characters could be joined across the placeholder, and the text after it
    would lose the mark of a text's beginning.
    """
    placeholder = placeholder_id(tokenizer)
    if placeholder in prompt:
        return prompt
    begins = prompt[:1] == [tokenizer.bos_token_id]
    text = tokenizer.decode(prompt[begins:])
    ids = [tokenizer.bos_token_id] if begins else []
    for number, words in enumerate(text.split(EVENT_PLACEHOLDER)):
        if number:
            ids.append(placeholder)
        ids += tokenizer.encode(words, add_special_tokens=False)
    return ids
