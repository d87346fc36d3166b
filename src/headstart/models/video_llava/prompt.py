"""The prompt around the video, as in the published model's training."""

VIDEO_PLACEHOLDER = "<video>"


def video_prompt(question: str, system: str = "") -> str:
    """The prompt of one question about one video."""
    before = f"{system} " if system else ""
    return f"{before}USER: {VIDEO_PLACEHOLDER}\n{question} ASSISTANT:"


CHAT_TEMPLATE = (
    # vLLM's chat routes leave the tokenizer's first token to the template.
    "{{ bos_token or '' }}"
    "{% for message in messages %}"
    "{% if message['role'] == 'assistant' %} ASSISTANT: {{ message['content'] }}"
    "{% elif message['role'] == 'system' %}{{ message['content'] }}"
    "{% else %}{% if not loop.first %} {% endif %}USER: {{ message['content'] }}{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %} ASSISTANT:{% endif %}"
)
"""The same prompt for vLLM's chat routes, which put the placeholder before the question."""
