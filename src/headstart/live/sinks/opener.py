"""Opens HTTP addresses that a key or an answer is sent to, and never another in their place.

A redirect would take a key along to whoever the receiver names, and makes a GET without the answer
of a POST. So it counts as a refusal.
"""

from urllib.request import BaseHandler, HTTPRedirectHandler, OpenerDirector, build_opener


def opener_with(*handlers: BaseHandler) -> OpenerDirector:
    """One that raises `HTTPError` where it is redirected."""
    return build_opener(_NoRedirects, *handlers)


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *args: object, **kwargs: object) -> None:
        return None
