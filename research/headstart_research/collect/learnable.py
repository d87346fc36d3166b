"""What drafters may learn from: records that are not for measuring them."""

from pathlib import Path

from headstart.errors import CollectError
from headstart_research.collect.manifest import Manifest
from headstart_research.collect.record import Record
from headstart_research.collect.shard_files import collected


def learnable_manifest(folder: Path) -> Manifest:
    """The manifest of a folder that drafters may learn from; held-out drives are refused."""
    manifest = Manifest.read(folder)
    if manifest.is_held_out:
        raise CollectError(
            f"{folder} holds held-out drives, which are for measuring: give records of headstart"
            " collect without --held-out"
        )
    return manifest


def learnable_answers(folder: Path) -> list[Record]:
    """Records without features, one stream after another, as they were asked."""
    learnable_manifest(folder)
    records = [record for record in collected(folder, features=False) if record.answer_ids]
    if not records:
        raise CollectError(f"{folder} holds no answers yet: let headstart collect fill it")
    return sorted(records, key=lambda record: (record.stream, record.index))
