"""How many tokens of a request a step has to compute, and how many may be drafted for it."""

from vllm.v1.request import Request


def num_missing(request: Request) -> int:
    """How many tokens of a request are known and not computed: one of an answer under way."""
    missing: int = request.num_tokens - request.num_computed_tokens
    return missing


def num_wanted(request: Request) -> int:
    """How many tokens may be drafted, given that the step says one more of its own."""
    said, params = request.num_output_tokens, request.sampling_params
    wanted: int = request.max_tokens - said - 1
    if params is not None and said < params.min_tokens:
        # vLLM forbids that one token to end the answer as long as fewer than min_tokens were
        # confirmed before the step. So it must not lie beyond them.
        wanted = min(wanted, params.min_tokens - said - 1)
    return wanted
