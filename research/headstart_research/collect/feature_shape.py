"""The shapes of a collection's features, as its files have them.

No manifest can state them: it is written before the first clip is seen, and shards that run at the
same time, or lie in other folders, must write the same one. The files hold the shape of every
feature already.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from headstart.errors import CollectError
from headstart_research.collect.record_table import read_shapes
from headstart_research.collect.shard_files import record_files


@dataclass(frozen=True)
class FeatureShape:
    """``[tokens, size]``, where clips may differ in the number of tokens."""

    min_tokens: int
    max_tokens: int
    size: int

    @classmethod
    def of(cls, name: str, shapes: Iterable[tuple[int, ...]]) -> Self:
        """Of all records. One without tokens, such as of a still scene, may lack a size."""
        found = set(shapes)
        sizes = {shape[-1] for shape in found if shape[0]} or {shape[-1] for shape in found}
        if len(sizes) > 1:
            raise CollectError(
                f"{name} has vectors of {', '.join(map(str, sorted(sizes)))} numbers: these records"
                " are of several models; keep their folders apart"
            )
        tokens = [shape[0] for shape in found]
        return cls(min(tokens), max(tokens), sizes.pop())

    def __str__(self) -> str:
        if self.min_tokens == self.max_tokens:
            return f"[{self.max_tokens}, {self.size}]"
        return f"[{self.min_tokens} to {self.max_tokens}, {self.size}]"


def feature_shapes(folder: Path) -> dict[str, FeatureShape]:
    """By the feature's name, of all complete records under a folder; the features are not read."""
    found: dict[str, set[tuple[int, ...]]] = defaultdict(set)
    for file in record_files(folder):
        for name, shapes in read_shapes(file).items():
            found[name] |= shapes
    return {name: FeatureShape.of(name, shapes) for name, shapes in found.items() if shapes}
