"""What a model is named by: a directory here, or a name on the hub.

A name is looked up before anything is loaded, and the hub is asked once: transformers and vLLM
would ask it six times over, for a minute, for a path with a slip of the pen.
"""

from pathlib import Path

from headstart.errors import EngineStartError

CONFIG = "config.json"
HUB_TIMEOUT_S = 5.0


def check_name(name: str) -> None:
    """Raise where no directory and no model of the hub is called so, and say what is there."""
    directory = Path(name)
    if directory.is_dir():
        if not (directory / CONFIG).is_file():
            raise EngineStartError(f"{name} holds no model: it has no {CONFIG}. Check the path.")
    elif _is_path(name):
        raise EngineStartError(f"there is no directory {name}: {_nearest(directory)}")
    else:
        _ask_hub(name)


def _is_path(name: str) -> bool:
    """Whether it can only be a path: no hub has such a name, or its first directory is here."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    try:
        validate_repo_id(name)
    except HFValidationError:
        return True
    return name.startswith(".") or ("/" in name and Path(name).parts[0] in _names(Path()))


def _nearest(directory: Path) -> str:
    """Where the way to a directory ends, and what is there."""
    there = next(parent for parent in directory.parents if parent.is_dir())
    missing = directory.parts[len(there.parts)]
    names = ", ".join(sorted(_names(there) if there.name else ())[:8])
    return f"{there.absolute()} has no {missing}" + (f"; it has {names}" if names else "")


def _names(directory: Path) -> set[str]:
    """The directories in one that may hold models."""
    try:
        return {each.name for each in directory.iterdir() if each.is_dir() and each.name[0] != "."}
    except OSError:
        return set()


def _ask_hub(name: str) -> None:
    from huggingface_hub import constants, get_hf_file_metadata, hf_hub_url, try_to_load_from_cache
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, OfflineModeIsEnabled

    if isinstance(try_to_load_from_cache(name, CONFIG), str):
        return
    unknown = f"{name} is neither a directory with a {CONFIG} nor a model the hub knows"
    try:
        get_hf_file_metadata(hf_hub_url(name, CONFIG), timeout=HUB_TIMEOUT_S)
    except GatedRepoError as error:
        raise EngineStartError(
            f"the hub gives {name} only to those whom its owners let have it: ask for it on its"
            " page, and log in with `hf auth login`"
        ) from error
    except HfHubHTTPError as error:
        status = error.response.status_code
        why = "no such model" if status in (401, 404) else f"it answers {status}"
        raise EngineStartError(
            f"{unknown} ({constants.ENDPOINT}: {why}). Check the path."
        ) from error
    except OfflineModeIsEnabled as error:
        raise EngineStartError(
            f"{unknown} (HF_HUB_OFFLINE is set, and no copy is here). Check the path."
        ) from error
    except Exception as error:  # what a network does, in the classes of whichever HTTP client
        raise EngineStartError(
            f"{unknown} ({constants.ENDPOINT} does not answer: {error}). Check the path, or the"
            " network."
        ) from error
