"""Runs the program that makes the documents' tables, in a checkout of a test's own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def run_figures(checkout: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """`python -m benchmarks.figures`, which works where it is started."""
    search = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.figures", *words],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, search))},
        capture_output=True,
        text=True,
        check=False,
    )


def keep(checkout: Path, name: str, figures: Any) -> None:
    """A run of the machine that all figures are of."""
    folder = checkout / "benchmarks" / "results"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}_cpu-2-cores_2026-01-01.json").write_text(json.dumps(figures))


def tables_of(checkout: Path, *names: str, words: str = "") -> list[list[str]]:
    """The lines of these tables, made of what is kept there, in a README with these words."""
    marked = [f"<!-- table: {name} -->\n<!-- end -->\n" for name in names]
    (checkout / "README.md").write_text("\n".join([words, *marked]))
    made = run_figures(checkout)
    assert made.returncode == 0, made.stderr
    text = (checkout / "README.md").read_text()
    return [text.split(f"<!-- table: {n} -->\n")[1].split("\n<!--")[0].split("\n") for n in names]
