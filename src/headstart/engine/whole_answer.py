"""What a request said, if its answer came to an end."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any

from vllm.v1.request import Request, RequestStatus

_ANSWERED = (
    RequestStatus.FINISHED_STOPPED,
    RequestStatus.FINISHED_LENGTH_CAPPED,
    RequestStatus.FINISHED_REPETITION,
)


def whole_answer(request: Request, tokenizer: Any) -> tuple[int, ...]:
    """All that was said; nothing of an answer that was aborted.

    Stop strings are looked for in vLLM's front end, which aborts the request it finds one in.
    Without a tokenizer they are not known here.
    """
    said, params = tuple(request.output_token_ids), request.sampling_params
    if request.status in _ANSWERED:
        return said
    if params is None or not params.stop or tokenizer is None:
        return ()
    return said[: num_until_stop(said, params.stop, params.min_tokens, tokenizer.decode)]


def num_until_stop(
    tokens: Sequence[int],
    stops: Sequence[str],
    min_tokens: int,
    decode: Callable[[Sequence[int]], str],
) -> int:
    """How many tokens there are up to the first whose text completes one of ``stops``, or 0.

    Text of the first ``min_tokens`` does not count, as in vLLM. A few texts are decoded, whatever
    the length. 0 as well where they cannot be: some tokenizers fail on ids without a text.
    """

    def has_stop(num_tokens: int) -> bool:
        text = decode(tokens[:num_tokens])
        return any(text.find(stop, start) >= 0 for stop in stops)

    try:
        start = len(decode(tokens[:min_tokens])) if min_tokens else 0
        if not has_stop(len(tokens)):
            return 0
        return bisect_left(range(len(tokens) + 1), True, key=has_stop)
    except Exception:
        return 0
