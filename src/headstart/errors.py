"""Every error headstart raises on purpose.

Each message says what is wrong and what to do next; the command line prints it without a
traceback.
"""


class HeadstartError(Exception):
    """Base of all of them."""


class MediaError(HeadstartError):
    """A recording cannot be read, or does not hold what was asked of it."""


class UnknownSensorError(MediaError):
    """A recording does not say how large its sensor is, and neither does its caller."""


class ModelConfigError(HeadstartError):
    """A model's config.json describes a model that cannot exist."""


class CheckpointError(HeadstartError):
    """A checkpoint's weights are not those of its config."""


class EngineMissingError(HeadstartError):
    """The work needs vLLM, and vLLM is not installed or is another version."""


class CompatibilityError(HeadstartError):
    """Headstart's use of a vLLM cannot be compared, or that vLLM lacks a part of it."""


class EngineStartError(HeadstartError):
    """vLLM is there and did not start."""


class DraftingError(HeadstartError):
    """Drafting was set up in a way that cannot work. A bad draft is never an error."""


class RequestOptionsError(HeadstartError):
    """The target cannot be asked with these options."""


class QuestionError(HeadstartError):
    """The target cannot take a question, because it is too long, for example."""


class SchemaError(HeadstartError):
    """The target cannot be held to a JSON schema. The engine goes on."""


class LiveError(HeadstartError):
    """A live camera cannot be watched in the way that was asked for."""


class SourceError(HeadstartError):
    """A camera, or another source of live frames, cannot be read."""


class ServerRefusedError(HeadstartError):
    """A server cannot be reached, or does not do what a client asks of it."""


class ReplayError(HeadstartError):
    """A file of logged answers cannot be replayed."""


class PlanningError(HeadstartError):
    """A forecast was asked for with figures that cannot be."""


class BenchError(HeadstartError):
    """A measurement cannot be run, or its result cannot be read."""


class EvaluationError(HeadstartError):
    """A drafter cannot be measured on the records that were given."""


class CollectError(HeadstartError):
    """Training data cannot be collected, or what was collected cannot be read."""


class TrainingError(HeadstartError):
    """A model cannot be trained, saved or loaded in the way that was asked for."""
