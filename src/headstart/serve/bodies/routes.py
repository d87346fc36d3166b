"""The body of each open route that takes one in JSON."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Discriminator, Field, Tag, TypeAdapter, ValidationError, model_validator
from pydantic_core import from_json

from headstart.serve.bodies.grammars import ToolChoice, Tools, format_bounds, tool_bounds
from headstart.serve.bodies.kinds import MAX_COUNT, Body, Count, Dropped, TokenIds, rule
from headstart.serve.bodies.messages import Messages, Words
from headstart.serve.bodies.sampling import MOST_LOGPROBS, Sampling
from headstart.serve.bodies.wording import refusal_of
from headstart.serve.guard import CHAT, COMPLETIONS
from headstart.serve.refusal import bad_request

TOKENIZE = "/tokenize"
DETOKENIZE = "/detokenize"
MAX_VALUES = 1 << 19
"""Of one body. Small values take many times their bytes in memory."""


class Prediction(Body):
    """The answer that is expected. It becomes a draft; see OpenAI's reference."""

    type: Literal["content"]
    content: Words

    def text(self) -> str:
        """The words of all parts."""
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text for part in self.content)


class TemplateArguments(Body):
    """Of what chat templates are told, what clients may say."""

    enable_thinking: bool | None = None
    thinking: bool | None = None


class ChatBody(Sampling):
    """Of ``/v1/chat/completions``."""

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
        _one_bound(self)
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
    """Of ``/v1/completions``."""

    prompt: Prompt
    n: Annotated[int, Field(ge=1, le=MAX_COUNT)] = 1
    echo: bool | None = None
    logprobs: Annotated[int, Field(ge=0, le=MOST_LOGPROBS)] | None = None
    add_special_tokens: bool = True

    @model_validator(mode="after")
    def _fields_agree(self) -> Self:
        _one_bound(self)
        return self


class TokenizeChatBody(ChatBody):
    """Of ``/tokenize``: a chat's body. What does not change its tokens is not used."""

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
    """Of ``/tokenize``, for a text."""

    model: Annotated[str, Field(max_length=512)] | None = None
    prompt: str
    add_special_tokens: bool = True
    return_token_strs: bool | None = None


class DetokenizeBody(Body):
    """Of ``/detokenize``."""

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
    """A route's body, checked; raises a `RefusedError` that names what is wrong."""
    if len(body) > MAX_VALUES and sum(map(body.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise bad_request(f"a body may hold {MAX_VALUES} values at most")
    try:
        given = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise bad_request(f"the body is not JSON: {str(error)[:100]}") from error
    try:
        return BODIES[path].validate_python(given)
    except ValidationError as error:
        raise refusal_of(error) from error


def content_of(body: Body) -> dict[str, Any]:
    """What vLLM is handed of a body: what the client set, without what is ours or not used."""
    content = body.model_dump(by_alias=True, exclude_unset=True)
    for name in Sampling.ours:
        content.pop(name, None)
    if isinstance(body, TokenizeChatBody):
        return {name: value for name, value in content.items() if name in body.used}
    return content


def bounds_of(body: Body) -> dict[str, Any] | None:
    """What binds the answer, in the words of ``structured_outputs``; none leaves it free."""
    return _one_bound(body) if isinstance(body, ChatBody | CompletionBody) else None


def _one_bound(body: ChatBody | CompletionBody) -> dict[str, Any] | None:
    """Several would be compiled, and only one of them counts."""
    found = [format_bounds(body.response_format)]
    if body.structured_outputs is not None:
        found.append(body.structured_outputs.bounds())
    if isinstance(body, ChatBody):
        if body.tool_choice not in (None, "none") and body.tools is None:
            raise rule("tool_choice needs tools")
        found.append(tool_bounds(body.tools, body.tool_choice, body.parallel_tool_calls))
    given = [bounds for bounds in found if bounds is not None]
    if len(given) > 1:
        raise rule("give one of response_format, structured_outputs and a tool that must be called")
    if given and (body.allowed_token_ids or body.bad_words):
        # vLLM answers with a 500 where the two together leave no token to say.
        raise rule(
            "allowed_token_ids and bad_words cannot go with response_format, structured_outputs or"
            " a tool that must be called"
        )
    return given[0] if given else None
