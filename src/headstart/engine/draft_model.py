"""The port of a draft model: a second model that drafts beside a target, in a process of its own.

No such model is known here. A package brings one and registers it under `ENTRY_POINTS`.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from headstart.drafters.registry import registration
from headstart.engine.engine_resources import EngineResources
from headstart.errors import DraftingError

if TYPE_CHECKING:
    from headstart.engine.drafts.subscriber import DraftSubscriber
    from headstart.engine.model import Model
    from headstart.engine.options import Sources
    from headstart.engine.question import Question
    from headstart.engine.request_record import RequestRecord

ENTRY_POINTS = "headstart.draft_models"
"""The group under which a package registers what makes a `DraftModel` of a model's name and vLLM's
arguments for it: ``words`` of one that says words, ``tower`` of one that shows a bridge what it
sees."""


class DraftModel(Protocol):
    """A draft model as it is described before it runs. Frozen: it may be started many times."""

    def check(self, target: "Model", sources: "Sources | None" = None) -> None:
        """Raise where it cannot draft for this target, sooner than an engine would."""

    def placed(self, target: Mapping[str, Any]) -> tuple[Self, EngineResources]:
        """Itself with its part of this machine, and the part that it leaves a target.

        ``target`` are the arguments of vLLM's that the target is started with.
        """

    def start(self, drafts: "DraftSubscriber", *, abstain: bool) -> "RunningDraftModel":
        """Start its process, which drafts on the channel of ``drafts``; return before it is up.

        It tells the channel when it is. With ``abstain``, it only works for streams where its
        drafts have paid.
        """


class RunningDraftModel(Protocol):
    """A draft model at work until `close`. Whatever becomes of its process, answers go on.

    Nothing here but `wait_ready` waits for it. Used from one event loop.
    """

    @property
    def is_up(self) -> bool:
        """Whether its engine is up now."""

    def wait_ready(self) -> None:
        """Return when it can draft; raise an `EngineStartError` if it cannot."""

    def drafting(
        self, question: "Question", record: "RequestRecord"
    ) -> AbstractContextManager[None]:
        """Have it draft the answer until the block is left, if it is worth its work.

        On the channel the request has the name of ``record``, which tells at the end of the block
        what became of its drafts.
        """

    def close(self) -> None:
        """End its process."""


def draft_model(
    model: str | Path, vllm: Mapping[str, Any], sources: "Sources | None" = None
) -> DraftModel:
    """A draft model by name: what goes with a drafter of ``sources``, or one that says words.

    A bridge says more of the target's words, and needs its tower only.
    """
    names = () if sources is None else sources.drafters
    wanted = [registration(name).beside for name in names]
    kind = next((kind for kind in wanted if kind != "words"), "words")
    for found in entry_points(group=ENTRY_POINTS, name=kind):
        made: DraftModel = found.load()(model, vllm)
        return made
    raise DraftingError(
        f"{model} beside a target needs a package more: pip install 'headstart[events]'"
    )
