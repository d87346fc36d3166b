"""The pages at ``/`` and ``/live``: each one file, no build, nothing loaded from elsewhere."""

from importlib.resources import files

from headstart.answers.timeline import STAGE_COLOURS

_FOLDER = files("headstart_server")
_LIVE_CAMERA = "/* live_camera.js */"
"""Where the script of the live camera, a file of its own, stands in the page."""

_STAGE_COLOURS = "/* stage colours */"
"""Where the colours of the stages stand, which charts and pictures share."""

PAGE = (
    _FOLDER.joinpath("page.html")
    .read_text()
    .replace(_STAGE_COLOURS, " ".join(f"--{s}: {colour};" for s, colour in STAGE_COLOURS.items()))
    .encode()
)
LIVE_PAGE = (
    _FOLDER.joinpath("live.html")
    .read_text()
    .replace(_LIVE_CAMERA, _FOLDER.joinpath("live_camera.js").read_text())
    .encode()
)

# Only the pages' own scripts and styles run, and they connect to this server only.
PAGE_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline';"
        b" connect-src 'self'; img-src data: blob:; media-src data: blob:; base-uri 'none';"
        b" form-action 'none'; frame-ancestors 'none'",
    ),
    (b"referrer-policy", b"no-referrer"),
]
