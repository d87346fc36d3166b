"""Bridges on a model hub: found by name, and published.

The hub's client, huggingface_hub, comes with vLLM. Its own settings hold: HF_TOKEN, HF_ENDPOINT,
HF_HUB_OFFLINE, HF_HOME.
"""

import re
from pathlib import Path

from headstart.errors import TrainingError
from headstart_research.bridge.config import FILE, read_config

CARD, WEIGHTS = "README.md", "model.safetensors"
FILES = (FILE, WEIGHTS, CARD)
"""What a bridge consists of. Whatever else lies beside them stays where it is."""


def is_hub_name(name: str) -> bool:
    """Whether a name has the form ``owner/model``."""
    return re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", name) is not None


def bridge_directory(name: str | Path, revision: str | None = None) -> Path:
    """A directory as it is; else the hub's bridge of this name, downloaded unless it is cached."""
    if Path(name).is_dir():
        return Path(name)
    if not is_hub_name(str(name)):
        raise TrainingError(
            f"{name} is no directory, and no name of a model hub (owner/model): check the path"
        )
    try:
        from huggingface_hub import snapshot_download

        return Path(snapshot_download(str(name), revision=revision, allow_patterns=list(FILES)))
    except Exception as error:  # the hub's client raises a dozen kinds, of three packages
        raise TrainingError(
            f"{name} is no directory, and the hub does not give it"
            f" ({str(error).splitlines()[0]}): check the name, the network, and HF_TOKEN if it is"
            " private"
        ) from error


def push_to_hub(
    directory: Path, name: str, *, private: bool = False, revision: str | None = None
) -> str:
    """Publish a bridge as ``owner/model``, in one commit; returns the commit's address.

    The repository is made if there is none. Files of it that a bridge has not are left alone.
    """
    read_config(directory)  # raises if this is no bridge
    if missing := [file for file in FILES if not (directory / file).is_file()]:
        raise TrainingError(
            f"{directory} lacks {', '.join(missing)}: publish a directory that"
            " `headstart train bridge` wrote"
        )
    if not is_hub_name(name):
        raise TrainingError(f"{name} is no name on a hub: give owner/model")
    try:
        from huggingface_hub import CommitOperationAdd, HfApi

        hub = HfApi(library_name="headstart")
        hub.create_repo(name, private=private, exist_ok=True)
        done = hub.create_commit(
            name,
            [CommitOperationAdd(file, directory / file) for file in FILES],
            commit_message="Publish a bridge of headstart",
            revision=revision,
        )
    except Exception as error:
        raise TrainingError(
            f"the hub does not take {name} ({str(error).splitlines()[0]}): check that HF_TOKEN may"
            " write there"
        ) from error
    return str(done.commit_url)
