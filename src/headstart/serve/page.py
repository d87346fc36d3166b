"""The page at ``/``: one file, no build, nothing loaded from elsewhere."""

from importlib.resources import files

PAGE = files("headstart.serve").joinpath("page.html").read_bytes()

# Only the page's own scripts and styles run, and they connect to this server only.
PAGE_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline';"
        b" connect-src 'self'; img-src data: blob:; media-src data: blob:; base-uri 'none';"
        b" form-action 'none'; frame-ancestors 'none'",
    ),
    (b"referrer-policy", b"no-referrer"),
]
