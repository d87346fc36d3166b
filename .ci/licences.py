"""The licences of everything that headstart brings with it, as their packages state them.

    python .ci/licences.py [docs/licences.md]

Looks at what is installed here of headstart, its lab, all their extras, and what those require.
Fails on a licence that licences.toml, beside this file, does not accept: somebody has to look at
it first. With a file's name it also writes the table there.
"""

import importlib.metadata
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

KNOWN = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
OURS = ("headstart", "headstart-lab")
DEVELOPMENT = ("dev", "fuzz")
"""Extras that no user installs."""
HEADER = """# Licences

headstart is under the Apache License 2.0. Below is what comes with it: the packages that it, its
lab and its extras require, and what those require, as `make setup` installs them for a CPU.
`make licences` writes the table from the packages' own metadata, and fails on a licence that nobody
has looked at. The engine for GPUs brings others: run it there.

| package | licence | comes with | |
|---|---|---|---|
"""


@dataclass(frozen=True)
class Package:
    """An installed distribution that we bring."""

    name: str
    licence: str
    note: str
    brought_by: str
    is_accepted: bool


def main(arguments: list[str]) -> None:
    """Print what nobody has looked at, and write the table if all is well."""
    found = packages()
    if unknown := [package for package in found if not package.is_accepted]:
        for package in unknown:
            print(f"{package.name}: {package.licence or 'says nothing'} ({package.brought_by})")
        sys.exit("read these licences, and add them to .ci/licences.toml")
    if arguments:
        rows = (f"| {p.name} | {p.licence} | {p.brought_by} | {p.note} |\n" for p in found)
        Path(arguments[0]).write_text(HEADER + "".join(rows))
    print(f"{len(found)} packages, all of them looked at")


def packages() -> list[Package]:
    """All that is installed of what we require, by name."""
    brought: dict[str, str] = {}
    extras = importlib.metadata.metadata("headstart").get_all("Provides-Extra") or []
    # What everybody gets is noted first, and what only we need last.
    for extra in ["", *sorted(extras, key=lambda extra: extra in DEVELOPMENT)]:
        for ours in OURS:
            gather(ours, frozenset({extra}), label(extra), brought, set())
    return [judged(name, brought[name]) for name in sorted(brought) if name not in OURS]


def label(extra: str) -> str:
    """What a user installs to get it."""
    if extra in DEVELOPMENT:
        return "development only"
    return f"`headstart[{extra}]`" if extra else "headstart"


def gather(
    name: str,
    extras: frozenset[str],
    label: str,
    brought: dict[str, str],
    done: set[tuple[str, frozenset[str]]],
) -> None:
    """Note a package with these extras, and all that it requires, unless it is noted already."""
    name = canonicalize_name(name)
    try:
        needs = importlib.metadata.requires(name) or []
    except importlib.metadata.PackageNotFoundError:
        return  # for another platform, or of an extra that is not installed
    if (name, extras) in done:
        return
    done.add((name, extras))
    brought.setdefault(name, label)
    for need in map(Requirement, needs):
        chosen = [{"extra": extra} for extra in extras | {""}]
        if need.marker is None or any(need.marker.evaluate(one) for one in chosen):
            gather(need.name, frozenset(need.extras), label, brought, done)


def judged(name: str, brought_by: str) -> Package:
    """A package with the licence that was found for it."""
    if seen := KNOWN["looked_at"].get(name):
        return Package(name, seen["licence"], seen["note"], brought_by, True)
    metadata = importlib.metadata.metadata(name)
    classifiers = metadata.get_all("Classifier") or []
    stated = [
        metadata.get("License-Expression"),
        metadata.get("License"),
        *(line.rpartition(" :: ")[2] for line in classifiers if line.startswith("License ::")),
    ]
    # Some have the whole text in the field; its first line is the name.
    lines = [one.strip().splitlines()[0].strip() for one in stated if one and one.strip()]
    names = [KNOWN["spelled"].get(one, one) for one in lines]
    accepted = next((one for one in names if is_accepted(one)), None)
    return Package(name, accepted or ", ".join(names)[:60], "", brought_by, accepted is not None)


def is_accepted(expression: str) -> bool:
    """Whether a licence, or an expression of several, asks for nothing but a notice."""
    return all(
        any(one.strip("() ") in KNOWN["accepted"] for one in part.split(" OR "))
        for part in expression.split(" AND ")
    )


if __name__ == "__main__":
    main(sys.argv[1:])
