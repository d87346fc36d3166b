"""Constraints on an answer: a JSON schema, a regular expression, a grammar, a tool call."""

import copy
import json
from typing import Annotated, Any, Literal, Self

from pydantic import Field, Tag, model_validator

from headstart_server.bodies.kinds import (
    Body,
    FreeJson,
    FunctionName,
    JsonText,
    Name,
    rule,
    tagged_by,
    tagged_by_kind,
)

_ONE_OF = ("json", "regex", "choice", "grammar", "json_object", "structural_tag")


class TextFormat(Body):
    """Free text."""

    type: Literal["text"]


class ObjectFormat(Body):
    """Any JSON object."""

    type: Literal["json_object"]


class Schema(Body):
    """A JSON schema with its name."""

    name: Name
    description: str | None = None
    json_schema: FreeJson = Field(alias="schema")
    strict: bool | None = None


class SchemaFormat(Body):
    """JSON that follows a schema."""

    type: Literal["json_schema"]
    json_schema: Schema


class Structure(Body):
    """JSON that follows a schema, between two marks."""

    begin: str
    json_schema: FreeJson | None = Field(default=None, alias="schema")
    end: str


class TagFormat(Body):
    """xgrammar's structural tag, in its present form (``format``) or its former one."""

    type: Literal["structural_tag"]
    format: FreeJson | None = None
    structures: Annotated[list[Structure], Field(fail_fast=True, max_length=128)] | None = None
    triggers: Annotated[list[str], Field(fail_fast=True, max_length=128)] | None = None

    @model_validator(mode="after")
    def _is_one_form(self) -> Self:
        given = [self.format is not None, self.structures is not None, self.triggers is not None]
        if given not in ([True, False, False], [False, True, True]):
            raise rule("must have format, or structures and triggers")
        return self


ResponseFormat = Annotated[
    Annotated[TextFormat, Tag("(text)")]
    | Annotated[ObjectFormat, Tag("(json_object)")]
    | Annotated[SchemaFormat, Tag("(json_schema)")]
    | Annotated[TagFormat, Tag("(structural_tag)")],
    tagged_by("type", 'an object of type "text", "json_object", "json_schema" or "structural_tag"'),
]


class StructuredOutputs(Body):
    """vLLM's own field for constraints; exactly one of these."""

    json_schema: (
        Annotated[
            Annotated[JsonText, Field(min_length=1), Tag("(text)")]
            | Annotated[FreeJson, Tag("(object)")],
            tagged_by_kind("a JSON schema"),
        ]
        | None
    ) = Field(default=None, alias="json")
    regex: Annotated[str, Field(pattern=r"^[^\x00]*$", examples=["(yes|no)"])] | None = None
    choice: (
        Annotated[
            list[Annotated[str, Field(min_length=1)]],
            Field(fail_fast=True, min_length=1, max_length=1024),
        ]
        | None
    ) = None
    grammar: Annotated[str, Field(min_length=1)] | None = None
    json_object: Literal[True] | None = None
    structural_tag: Annotated[JsonText, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if len(self.constraint()) != 1:
            raise rule(f"must have exactly one of {', '.join(_ONE_OF)}")
        return self

    def constraint(self) -> dict[str, Any]:
        """The field that was given, with its value."""
        return self.model_dump(by_alias=True, exclude_none=True)


class Function(Body):
    """A function that the model may call."""

    name: FunctionName
    description: str | None = None
    parameters: FreeJson | None = None
    strict: bool | None = None


class Tool(Body):
    """A tool, which is always a function."""

    type: Literal["function"] = "function"
    function: Function


class ChosenFunction(Body):
    """The name of a function."""

    name: FunctionName


class ChosenTool(Body):
    """The tool that must be called."""

    type: Literal["function"] = "function"
    function: ChosenFunction


Tools = Annotated[list[Tool], Field(fail_fast=True, min_length=1, max_length=128)]
ToolChoice = Annotated[
    Annotated[Literal["none", "auto", "required"], Tag("(text)")]
    | Annotated[ChosenTool, Tag("(object)")],
    tagged_by_kind(
        '"none", "auto", "required" or {"type": "function", "function": {"name": "..."}}'
    ),
]


def format_constraint(given: ResponseFormat) -> dict[str, Any] | None:
    """The constraint of a ``response_format``, as in ``structured_outputs``; none if it is free."""
    match given:
        case ObjectFormat():
            return {"json_object": True}
        case SchemaFormat():
            return {"json": given.json_schema.json_schema}
        case TagFormat():
            return {
                "structural_tag": json.dumps(given.model_dump(by_alias=True, exclude_none=True))
            }
        case _:
            return None


def tool_constraint(
    tools: list[Tool], choice: str | ChosenTool | None, parallel: bool | None
) -> dict[str, Any] | None:
    """The constraint that vLLM makes of tools; none where the model may answer freely."""
    functions = [tool.function for tool in tools]
    if isinstance(choice, ChosenTool):
        chosen = [f for f in functions if f.name == choice.function.name]
        if not chosen:
            raise rule("tool_choice names none of the tools")
        return {"json": _parameters(chosen[-1])}
    # Where the model chooses whether to call a tool, vLLM compiles strict tools only.
    strict = choice in (None, "auto") and any(function.strict for function in functions)
    if choice != "required" and not strict:
        return None
    definitions: dict[str, Any] = {}
    calls = []
    for function in functions:
        parameters = copy.copy(_parameters(function))
        inner = parameters.pop("$defs", {})
        if not isinstance(inner, dict):
            raise rule("$defs of a tool's parameters must be an object")
        definitions |= inner
        name = {"type": "string", "enum": [function.name]}
        properties = {"name": name, "parameters": parameters}
        calls.append({"properties": properties, "required": ["name", "parameters"]})
    schema: dict[str, Any] = {
        "type": "array",
        "minItems": 1,
        "items": {"type": "object", "anyOf": calls},
    }
    if parallel is False:
        schema["maxItems"] = 1
    if definitions:
        schema["$defs"] = definitions
    return {"json": schema}


def _parameters(function: Function) -> dict[str, Any]:
    return function.parameters or {"type": "object", "properties": {}}
