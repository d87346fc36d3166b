"""The words around the events, as the published model was trained to see them."""

from typing import Any

EVENT_PLACEHOLDER = "<event>"

_SYSTEM = (
    "A chat between a curious human and an artificial intelligence assistant."
    " The assistant gives helpful, detailed, and polite answers to the human's questions."
)


def event_prompt(question: str) -> str:
    """The whole prompt of one question about one window of events."""
    return f"{_SYSTEM} USER: <ev_start>{EVENT_PLACEHOLDER}<ev_end>\n{question} ASSISTANT:"


def placeholder_id(tokenizer: Any) -> int:
    """The id that holds the events' place in the prompt.

    The published model uses one outside the vocabulary, which vLLM refuses. Where the
    tokenizer has no token for it, it answers with the unknown token, which Llama's
    tokenizer never produces from text: it spells the unknown in bytes.
    """
    return int(tokenizer.convert_tokens_to_ids(EVENT_PLACEHOLDER))


def place_events(tokenizer: Any, prompt: list[int]) -> list[int]:
    """Encode the words before and after the events apart, as in training.

    In one piece the tokenizer would join characters across the place of the events, and
    the words after them would lose the mark of a beginning.
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
