"""What clients are told of errors, and how their sockets are closed over them."""

from collections.abc import Callable
from http import HTTPStatus

from headstart.errors import HeadstartError
from headstart_client.wire import CloseCode
from headstart_server.refusal import RefusedError, bad_request

OnFailure = Callable[[Exception], None]
"""Is told of errors that are the server's own."""
_FAILED = RefusedError(
    HTTPStatus.INTERNAL_SERVER_ERROR, "the server failed, and its log has the cause; start again"
)


def refusal_of(error: Exception, on_failure: OnFailure) -> RefusedError:
    """What the client is told of an error."""
    if isinstance(error, RefusedError):
        return error
    if isinstance(error, HeadstartError):
        return bad_request(str(error))
    if isinstance(error, ValueError):  # of vLLM's processors, over placeholders in a text
        return bad_request(f"vLLM does not take the question: {' '.join(str(error).split())[:300]}")
    on_failure(error)
    return _FAILED


def close_code(refusal: RefusedError) -> CloseCode:
    """How a socket is closed over a refusal."""
    if refusal.retry_after_s is not None:
        return CloseCode.TRY_LATER
    return (
        CloseCode.FAILED
        if refusal.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        else CloseCode.REFUSED
    )
