"""Every error headstart raises on purpose.

Each message says what is wrong and what to do next; the command line prints it without a
traceback.
"""


class HeadstartError(Exception):
    """Base of all of them."""


class MediaError(HeadstartError):
    """A recording cannot be read, or does not hold what was asked of it."""


class ModelConfigError(HeadstartError):
    """A model's config.json describes a model that cannot exist."""


class CheckpointError(HeadstartError):
    """A checkpoint's weights are not those of its config."""


class LabError(HeadstartError):
    """Something of the lab is missing, or was made in another way than asked for."""


class EngineMissingError(HeadstartError):
    """The work needs vLLM, and vLLM is not installed or is another version."""


class EngineStartError(HeadstartError):
    """vLLM is there and did not start."""
