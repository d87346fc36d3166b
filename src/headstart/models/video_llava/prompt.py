"""The words around the video, as the published model was trained to see them."""

VIDEO_PLACEHOLDER = "<video>"


def video_prompt(question: str) -> str:
    """The whole prompt of one question about one video."""
    return f"USER: {VIDEO_PLACEHOLDER}\n{question} ASSISTANT:"
