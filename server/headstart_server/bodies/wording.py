"""The messages for invalid bodies: which field is wrong, and what would be right."""

from typing import Any

from pydantic import ValidationError

from headstart_server.bodies.closed import CLOSED
from headstart_server.refusal import RefusedError, bad_request

MOST_ECHOED = 64
_WORDS = {
    "missing": "is missing",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "string_type": "must be a text",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "none_required": "must be null or left out",
    "literal_error": "must be {expected}",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match {pattern}",
    "too_short": "must have at least {min_length} items",
    "too_long": "must have at most {max_length} items",
    "rule": "{said}",
}


def refusal_of(error: ValidationError) -> RefusedError:
    """A refusal that names the first error."""
    first = error.errors(include_url=False, include_input=False)[0]
    context = {name: _short(value) for name, value in first.get("ctx", {}).items()}
    path = _path(first["loc"])
    if first["type"] == "closed_field":
        return bad_request(_closed(path, str(context["name"])))
    said = _WORDS.get(first["type"], "is not right: {msg}").format(
        **{"said": first["msg"], "msg": first["msg"], **context}
    )
    if first["type"] == "rule" and not path:
        return bad_request(said)
    return bad_request(f"{path or 'the body'} {said}")


def _short(value: Any) -> Any:
    """A whole number without its decimal point."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _closed(path: str, name: str) -> str:
    shown = name[:MOST_ECHOED]
    where = f"{path}.{shown}" if path else shown
    reason = CLOSED.get(name)
    if reason is None:
        return f"{where} is not a field that is taken here; /openapi.json lists those that are"
    return f"{where} is not taken from clients: {reason}"


def _path(places: tuple[int | str, ...]) -> str:
    """The field's path, like ``messages[0].content``; tags in parentheses are left out."""
    path = ""
    for place in places:
        if isinstance(place, int):
            path += f"[{place}]"
        elif not place.startswith("(") and place != "[key]":
            path += f".{place[:MOST_ECHOED]}"
    return path.removeprefix(".")
