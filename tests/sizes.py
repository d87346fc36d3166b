"""The caps of `sizes.toml`: how large everything may be."""

import tomllib
from pathlib import Path

CAPS = tomllib.loads(Path(__file__).with_name("sizes.toml").read_text())
