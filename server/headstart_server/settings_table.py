"""The tables of a settings file: what each may hold."""

from collections.abc import Mapping
from typing import Any

from headstart.errors import HeadstartError


class SettingsError(HeadstartError):
    """The settings cannot work."""


def checked(name: str, table: Mapping[str, Any], kinds: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a table; raises if an entry is unknown or of the wrong type."""
    for key, value in table.items():
        if key not in kinds:
            raise SettingsError(f"[{name}] {key} is not one of: {', '.join(sorted(kinds))}")
        kind = (int, float) if kinds[key] is float else kinds[key]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise SettingsError(f"[{name}] {key} is {value!r}, which is of the wrong type")
    return dict(table)
