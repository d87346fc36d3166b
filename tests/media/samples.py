"""Finds recordings of real cameras; a test whose recording is missing is skipped."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def sample(name: str) -> Path:
    """The path of a sample, or skip the test with what is missing."""
    folder = Path(os.environ.get("HEADSTART_SAMPLES", ROOT.parent / "shared" / "samples"))
    path = folder / name
    if not path.is_file():
        pytest.skip(f"no sample {name}: set HEADSTART_SAMPLES to a folder that has it")
    return path
