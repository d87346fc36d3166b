"""The sizes of a KV bridge, as they are written into its ``config.json``."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from headstart.errors import TrainingError

FILE = "config.json"
KIND = "headstart_kv_bridge"
FORMAT = 1


@dataclass(frozen=True)
class KvConfig:
    """Which prompts a KV bridge knows, and what it computes for their tokens."""

    target: str
    """The target's name, for people: its sizes are what is compared."""
    head_ids: tuple[int, ...]
    """The tokens before a clip."""
    video_token: int
    num_frames: int
    tokens_per_frame: int
    num_layers: int
    num_kv_heads: int
    head_size: int
    feature_size: int
    """Numbers in each token of the event model."""

    @property
    def num_clip_tokens(self) -> int:
        """Of all frames."""
        return self.num_frames * self.tokens_per_frame

    @property
    def num_tokens(self) -> int:
        """Of a prompt up to the question, whose keys and values it gives."""
        return len(self.head_ids) + self.num_clip_tokens

    @property
    def row_size(self) -> int:
        """Numbers in the keys and values of one token, of all layers."""
        return self.num_layers * 2 * self.num_kv_heads * self.head_size

    def write(self, directory: Path) -> None:
        stated = {"architectures": ["HeadstartKvBridge"], KIND: FORMAT, **asdict(self)}
        (directory / FILE).write_text(json.dumps(stated, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, directory: Path) -> Self:
        path = directory / FILE
        try:
            stated = json.loads(path.read_text(encoding="utf-8"))
            if stated.pop(KIND) != FORMAT:
                raise ValueError(f"another format than {FORMAT}")
            del stated["architectures"]
            return cls(**{**stated, "head_ids": tuple(stated["head_ids"])})
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise TrainingError(
                f"{path} is no config of a KV bridge ({error!r}): name a directory that"
                " `headstart train kv` wrote"
            ) from error
