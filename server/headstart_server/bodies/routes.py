"""The JSON body of each route that takes one."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Discriminator, Field, Tag, TypeAdapter, model_validator

from headstart_server.bodies.grammars import ToolChoice, Tools, format_constraint, tool_constraint
from headstart_server.bodies.kinds import MAX_COUNT, Body, Count, Dropped, TokenIds, read_json, rule
from headstart_server.bodies.messages import Messages, TextContent
from headstart_server.bodies.sampling import MOST_LOGPROBS, Sampling
from headstart_server.refusal import bad_request
from headstart_server.routes import CHAT, COMPLETIONS

TOKENIZE = "/tokenize"
DETOKENIZE = "/detokenize"
MAX_VALUES = 1 << 19
"""Of one body: in memory, small values take many times their bytes."""


class Prediction(Body):
    """The answer that the client expects, as in OpenAI's API; it becomes a draft."""

    type: Literal["content"]
    content: TextContent

    def text(self) -> str:
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text for part in self.content)


class TemplateArguments(Body):
    """The arguments of chat templates that clients may set."""

    enable_thinking: bool | None = None
    thinking: bool | None = None


class ChatBody(Sampling):
    """The body of ``/v1/chat/completions``."""

    messages: Messages
    max_completion_tokens: Count | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=MOST_LOGPROBS)] | None = None
    tools: Tools | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = (
        None
    )
    include_reasoning: bool = True
    echo: bool = False
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    chat_template_kwargs: TemplateArguments | None = None
    return_prompt_text: bool | None = None
    prediction: Prediction | None = None
    modalities: Annotated[list[Literal["text"]] | None, Field(exclude=True)] = None
    verbosity: Dropped = None

    @model_validator(mode="after")
    def _fields_agree(self) -> Self:
        if self.prediction is not None and self.n not in (None, 1):
            raise rule("a prediction is for one answer: leave n out, or the prediction")
        _one_constraint(self)
        return self


def _prompt_kind(value: Any) -> str | None:
    if isinstance(value, str):
        return "(text)"
    if not isinstance(value, list):
        return None
    first = value[0] if value else ""
    kinds = {str: "(texts)", int: "(ids)", list: "(lists of ids)"}
    return kinds.get(type(first))


PromptIds = Annotated[TokenIds, Field(min_length=1)]
Prompt = Annotated[
    Annotated[str, Field(min_length=1), Tag("(text)")]
    | Annotated[list[str], Field(fail_fast=True, min_length=1), Tag("(texts)")]
    | Annotated[PromptIds, Tag("(ids)")]
    | Annotated[list[PromptIds], Field(fail_fast=True, min_length=1), Tag("(lists of ids)")],
    Discriminator(
        _prompt_kind,
        custom_error_type="rule",
        custom_error_message="must be a text, a list of texts, token ids or a list of such lists",
    ),
]


class CompletionBody(Sampling):
    """The body of ``/v1/completions``."""

    prompt: Prompt
    n: Annotated[int, Field(ge=1, le=MAX_COUNT)] = 1
    echo: bool | None = None
    logprobs: Annotated[int, Field(ge=0, le=MOST_LOGPROBS)] | None = None
    add_special_tokens: bool = True

    @model_validator(mode="after")
    def _fields_agree(self) -> Self:
        _one_constraint(self)
        return self


class TokenizeChatBody(ChatBody):
    """The body of ``/tokenize`` for a chat; fields that do not change the tokens are ignored."""

    return_token_strs: bool | None = None

    used: ClassVar[frozenset[str]] = frozenset(
        {
            "model",
            "messages",
            "tools",
            "add_generation_prompt",
            "continue_final_message",
            "add_special_tokens",
            "chat_template_kwargs",
            "return_token_strs",
        }
    )


class TokenizeTextBody(Body):
    """The body of ``/tokenize`` for a text."""

    model: Annotated[str, Field(max_length=512)] | None = None
    prompt: str
    add_special_tokens: bool = True
    return_token_strs: bool | None = None


class DetokenizeBody(Body):
    """The body of ``/detokenize``."""

    model: Annotated[str, Field(max_length=512)] | None = None
    tokens: TokenIds


def _tokenize_kind(value: Any) -> str:
    is_chat = "messages" in value if isinstance(value, dict) else isinstance(value, ChatBody)
    return "(chat)" if is_chat else "(text)"


TokenizeBody = Annotated[
    Annotated[TokenizeChatBody, Tag("(chat)")] | Annotated[TokenizeTextBody, Tag("(text)")],
    Discriminator(_tokenize_kind),
]

BODIES: dict[str, TypeAdapter[Body]] = {
    CHAT: TypeAdapter(ChatBody),
    COMPLETIONS: TypeAdapter(CompletionBody),
    TOKENIZE: TypeAdapter(TokenizeBody),
    DETOKENIZE: TypeAdapter(DetokenizeBody),
}


def read_body(path: str, body: bytes) -> Body:
    """Parse and check a route's body; raises a refusal that names what is wrong."""
    if len(body) > MAX_VALUES and sum(map(body.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise bad_request(f"a body may hold {MAX_VALUES} values at most")
    return read_json(BODIES[path], body, "body")


def content_of(body: Body) -> dict[str, Any]:
    """The part of a body that vLLM gets: what the client set, without our own and unused fields."""
    content = body.model_dump(by_alias=True, exclude_unset=True)
    for name in Sampling.ours:
        content.pop(name, None)
    if isinstance(body, TokenizeChatBody):
        return {name: value for name, value in content.items() if name in body.used}
    return content


def constraint_of(body: Body) -> dict[str, Any] | None:
    """The constraint on the answer as a field of ``structured_outputs``; none if it is free."""
    return _one_constraint(body) if isinstance(body, ChatBody | CompletionBody) else None


def _one_constraint(body: ChatBody | CompletionBody) -> dict[str, Any] | None:
    """The only constraint of a body; raises for several, as vLLM would ignore all but one."""
    found: list[dict[str, Any] | None] = []
    if body.response_format is not None:
        found.append(format_constraint(body.response_format))
    if body.structured_outputs is not None:
        found.append(body.structured_outputs.constraint())
    if isinstance(body, ChatBody):
        if body.tools is not None:
            found.append(tool_constraint(body.tools, body.tool_choice, body.parallel_tool_calls))
        elif body.tool_choice not in (None, "none"):
            raise rule("tool_choice needs tools")
    given = [constraint for constraint in found if constraint is not None]
    if len(given) > 1:
        raise rule("give one of response_format, structured_outputs and a tool that must be called")
    if given and (body.allowed_token_ids or body.bad_words):
        # vLLM answers with a 500 where the two together leave no token.
        raise rule(
            "allowed_token_ids and bad_words cannot go with response_format, structured_outputs or"
            " a tool that must be called"
        )
    return given[0] if given else None
