"""Which model was collected from: digests of its files, and the licence its card states."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from headstart.errors import CollectError

_MODEL = ("config.json", "generation_config.json", "*.safetensors")
_TOKENIZER = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json")
_CARD = "README.md"


@dataclass(frozen=True)
class Checkpoint:
    """A model's name, and what tells its content from another's."""

    name: str
    digest: str
    """Of its config and all of its weights."""
    tokenizer: str
    """A digest likewise: token ids mean nothing without it."""
    licence: str | None

    @classmethod
    def of(cls, name: str) -> Self:
        """Read a directory, or a model of the hub, which is downloaded if it is not there yet.

        Weights are read whole, which takes seconds: vLLM is about to read them anyway.
        """
        directory = Path(name) if Path(name).is_dir() else _downloaded(name)
        return cls(
            name, _digest(directory, _MODEL), _digest(directory, _TOKENIZER), _licence(directory)
        )


def _downloaded(name: str) -> Path:
    try:
        from huggingface_hub import snapshot_download

        patterns = [*_MODEL, *_TOKENIZER, _CARD]
        return Path(snapshot_download(name, allow_patterns=patterns))
    except Exception as error:  # the hub's client raises a dozen kinds, of three packages
        raise CollectError(
            f"{name} is neither a directory nor a model that the hub gives"
            f" ({str(error).splitlines()[0]}): check the name"
        ) from error


def _digest(directory: Path, patterns: tuple[str, ...]) -> str:
    state = hashlib.blake2b(digest_size=16)
    for file in sorted(found for pattern in patterns for found in directory.glob(pattern)):
        with file.open("rb") as content:
            inner = hashlib.file_digest(content, "blake2b").hexdigest()
        state.update(f"{file.name}:{inner}\n".encode())
    return state.hexdigest()


def _licence(directory: Path) -> str | None:
    """The field ``license`` of the card's front matter."""
    card = directory / _CARD
    if not card.is_file():
        return None
    lines = card.read_text(encoding="utf-8", errors="replace").splitlines()
    if not lines or lines[0].strip() != "---":
        return None
    for line in lines[1:]:
        if line.strip() == "---":
            break
        name, separator, value = line.partition(":")
        if separator and name == "license" and value.strip():
            return value.strip().strip("'\"")
    return None
