"""The types of values that bodies consist of, and how JSON is read as one."""

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError, from_json

from headstart_server.bodies.wording import refusal_of
from headstart_server.refusal import bad_request

Read = TypeVar("Read")
MAX_DEPTH = 64
"""Of JSON whose shape the client chooses: schemas, parameters of tools."""
MAX_COUNT = 2**31 - 1
_INT64 = 2**63
Int64 = Annotated[int, Field(ge=-_INT64, lt=_INT64)]


class Body(BaseModel):
    """A JSON object with exactly these fields. Texts and booleans are not taken as numbers."""

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        allow_inf_nan=False,
        frozen=True,
        hide_input_in_errors=True,
        protected_namespaces=(),
        validate_by_alias=True,
    )
    names: ClassVar[frozenset[str]] = frozenset()
    """The names of the fields in JSON."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        fields = cls.model_fields.items()
        cls.names = frozenset(field.alias or name for name, field in fields)

    @model_validator(mode="before")
    @classmethod
    def _refuse_other_fields(cls, given: Any) -> Any:
        """Refuse at the first unknown field; pydantic itself would list all of a million."""
        if isinstance(given, dict):
            for name in given:
                if name not in cls.names:
                    raise PydanticCustomError("closed_field", "closed", {"name": name})
        return given


def rule(message: str) -> PydanticCustomError:
    """An error with a message of our own, for what the types cannot express."""
    return PydanticCustomError("rule", "{said}", {"said": message})


def tagged_by(field: str, expected: str) -> Discriminator:
    """Choose one of several models by a field; see `Tag` in pydantic."""

    def tag(value: Any) -> str | None:
        found = value.get(field) if isinstance(value, dict) else getattr(value, field, None)
        return f"({found})" if isinstance(found, str) else None

    return _discriminator(tag, expected)


def tagged_by_kind(expected: str) -> Discriminator:
    """Choose between a text, a list and an object."""

    def tag(value: Any) -> str | None:
        kinds: dict[type, str] = {str: "(text)", list: "(list)", dict: "(object)"}
        return kinds.get(type(value), "(object)" if isinstance(value, BaseModel) else None)

    return _discriminator(tag, expected)


def _discriminator(tag: Callable[[Any], str | None], expected: str) -> Discriminator:
    return Discriminator(tag, custom_error_type="rule", custom_error_message=f"must be {expected}")


def _check_depth(value: Any) -> Any:
    """Refuse deep nesting, over which recursive compilers and serialisers fail."""
    level = [value]
    for _ in range(MAX_DEPTH):
        inner = [item for item in level if isinstance(item, dict | list)]
        level = [
            child for item in inner for child in (item.values() if isinstance(item, dict) else item)
        ]
        for number in level:
            if isinstance(number, int | float) and not -_INT64 <= number < _INT64:
                raise rule("holds a number of more than 64 bits")
        if not level:
            return value
    raise rule(f"may be nested {MAX_DEPTH} deep at most")


def _check_json_text(text: str) -> str:
    if not text:
        return text  # a field that needs some has a min_length
    try:
        _check_depth(from_json(text, allow_inf_nan=False))
    except ValueError as error:
        if isinstance(error, PydanticCustomError):
            raise
        raise rule("must be JSON in a text") from error
    return text


FreeJson = Annotated[dict[str, Any], AfterValidator(_check_depth)]
"""An object whose fields the client chooses."""
JsonText = Annotated[str, AfterValidator(_check_json_text)]

Dropped = Annotated[Any, Field(exclude=True, description="Taken, and not used.")]
"""A field that OpenAI's clients send by default and that changes no answer here."""

TokenId = Annotated[int, Field(ge=0, le=MAX_COUNT, json_schema_extra={"format": "token-id"})]
"""`BodyBounds` checks that it is below the vocabulary's size."""
TokenIds = Annotated[list[TokenId], Field(fail_fast=True)]
Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Name = Annotated[str, Field(min_length=1, max_length=128)]
FunctionName = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,128}$", examples=["look", "turn_left"])
]
SensorText = Annotated[str, Field(pattern="^[0-9]{1,5}x[0-9]{1,5}$", examples=["640x480"])]
CacheSalt = Annotated[
    str, Field(pattern=r"^[^@/\\\x00]{1,128}$", examples=["a", "mine and nobody's"])
]


def read_json(kind: TypeAdapter[Read], content: str | bytes, what: str) -> Read:
    """Parse and check a client's JSON; raises a refusal that names what is wrong."""
    try:
        given = from_json(content, allow_inf_nan=False)
    except ValueError as error:
        raise bad_request(f"the {what} is not JSON: {str(error)[:100]}") from error
    try:
        return kind.validate_python(given)
    except ValidationError as error:
        raise refusal_of(error) from error
