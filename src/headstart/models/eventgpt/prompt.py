"""The words around the events, as the published model was trained to see them."""

EVENT_PLACEHOLDER = "<event>"

_SYSTEM = (
    "A chat between a curious human and an artificial intelligence assistant."
    " The assistant gives helpful, detailed, and polite answers to the human's questions."
)


def event_prompt(question: str) -> str:
    """The whole prompt of one question about one window of events."""
    return f"{_SYSTEM} USER: <ev_start>{EVENT_PLACEHOLDER}<ev_end>\n{question} ASSISTANT:"
