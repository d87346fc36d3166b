"""The files of deploy/, as their programs read them."""

from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def read(name):
    """The one document of a YAML file."""
    return yaml.safe_load((DEPLOY / name).read_text())
