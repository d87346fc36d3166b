"""The error that the lab raises on purpose; its message says what to do next."""

from headstart.errors import HeadstartError


class LabError(HeadstartError):
    """A part of the lab is missing, or was made with other settings than the command asks for."""
