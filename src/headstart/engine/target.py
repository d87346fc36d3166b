"""The target as Python callers use it: one vLLM engine in processes of its own.

All contact with vLLM's engine interface is in this file and in `engine_client`.
"""

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headstart.answers.answer import Answer
from headstart.answers.preview import Shown
from headstart.answers.timeline import Timeline
from headstart.engine.engine_client import EngineClient, chosen_settings
from headstart.engine.front_end import FrontEnd, OpenRequest
from headstart.engine.model import Model, engine_defaults
from headstart.engine.options import NO_PROPOSALS, SchedulerOptions
from headstart.engine.question import Question, RequestOptions
from headstart.engine.rehearsed_words import Rehearsal
from headstart.engine.request_record import RequestRecord
from headstart.engine.request_tags import RequestTags
from headstart.engine.window_prefiller import PrefillStep, WindowPrefiller
from headstart.errors import EngineStartError, QuestionError, SchemaError
from headstart.media.clip import Clip
from headstart.models.ownership import owned_names
from headstart.models.view import View
from headstart.speculation.drafter import StreamKey


def start_engine(model: Model, arguments: Mapping[str, Any]) -> EngineClient:
    from vllm import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    try:
        given = AsyncEngineArgs(model=model.name, **{**engine_defaults(), **arguments})
        return EngineClient(AsyncLLM.from_engine_args(given))
    except (RuntimeError, ValueError, TypeError) as error:
        raise EngineStartError(
            f"vLLM did not start {model.name}: {error} vLLM's messages say why; `headstart doctor`"
            " checks the installation."
        ) from error


class Target:
    """A running target. Safe to ask concurrently from one event loop."""

    def __init__(
        self,
        view: View,
        front_end: FrontEnd,
        on_fed: Callable[[StreamKey, int], None] = lambda stream, num_tokens: None,
    ) -> None:
        """``on_fed`` is told how many tokens of a stream were computed before their question."""
        self.view = view
        self.front_end = front_end
        self.feeder = WindowPrefiller(self.prefill)
        self._engine = front_end.engine
        self._on_fed = on_fed
        self._adapters: dict[str, int] = {}

    @property
    def settings(self) -> dict[str, Any]:
        """What vLLM chose where it was not told; see `chosen_settings`."""
        return chosen_settings(self._engine.vllm_config)

    async def ask(
        self, question: Question, on_shown: Callable[[Shown], None] | None = None
    ) -> Answer:
        """The target's answer; ``on_shown`` gets what is shown of it as it comes, in this loop.

        Without that the text comes at once: waking up for every token costs a busy machine more
        than a silent caller gains. The work ends when this is cancelled, and with what ``on_shown``
        raises.
        """
        loading, now_s = question.loading, time.monotonic()
        record = RequestRecord(
            uuid.uuid4().hex,
            received_s=now_s if loading is None else loading.start_s,
            loaded_s=now_s if loading is None else loading.end_s,
            stream=question.stream,
        )
        text, last = "", None
        async with contextlib.AsyncExitStack() as block:
            block.enter_context(self.feeder.answering())
            asking = await block.enter_async_context(self.front_end.open_request(question, record))
            showing = None if on_shown is None else _Showing(asking, on_shown)
            streams = on_shown is not None
            outputs = await self._generate(question, asking.tags, record, streams)
            async with contextlib.aclosing(outputs):
                async for output in outputs:
                    last = output.outputs[0]
                    text += last.text
                    if showing is not None:
                        showing.said(last.text)
            if showing is not None:
                showing.end()
            await self._engine.time_vision(record)
            beside = asking.drafter_timeline()
        if question.schema is not None and last is not None and last.finish_reason == "error":
            # vLLM keeps to the first backend that it needed, whatever it promised since.
            raise SchemaError(
                "vLLM could not compile the schema, and its log says why. An engine keeps the"
                " backend of its first schema: name another one when you start it, e.g."
                ' --vllm \'structured_outputs_config={"backend": "guidance"}\', or simplify the'
                " schema"
            )
        return _answer(text, last, record, beside)

    async def _generate(
        self,
        question: Question,
        tags: RequestTags | None,
        record: RequestRecord,
        streaming: bool,
    ) -> AsyncGenerator[Any]:
        """vLLM's outputs, which begin to come when they are first asked for."""
        from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

        schema, clip, options = question.schema, question.clip or Clip(), question.options
        params = options.params(
            max_tokens=question.max_tokens,
            output_kind=RequestOutputKind.DELTA if streaming else RequestOutputKind.FINAL_ONLY,
            structured_outputs=None if schema is None else StructuredOutputsParams(json=schema),
            extra_args=None if tags is None else tags.extra_args(),
        )
        if schema is not None:
            self._check_schema(params)
        engine_input = await self.render(question.words, clip, question.tenant, options.system)
        return self._engine.generate(
            engine_input,
            params,
            f"headstart-{record.request_id}",
            lora_request=self._adapter(options),
        )

    async def rehearse(self, question: Question, until_s: float) -> Rehearsal:
        """Have the question answered early, about the frames there are; nobody waits for it.

        What it says drafts the answer about the same ``question.window``. Whatever else the engine
        has to do comes first, and it is over when ``until_s`` comes: then a frame is due.
        """
        begun_s = time.monotonic()
        tags = question.tags("")
        if tags is None:
            return Rehearsal((), False, 0.0)
        tags = replace(tags, preview=False, rehearses=True, until_s=until_s)
        record = RequestRecord(uuid.uuid4().hex, begun_s, begun_s, stream=question.stream)
        with self._engine.recording(record):
            outputs = await self._generate(question, tags, record, streaming=False)
            async with contextlib.aclosing(outputs):
                async for _ in outputs:
                    pass
        is_whole = record.finish_reason in ("stop", "length")
        return Rehearsal(tuple(record.token_ids), is_whole, time.monotonic() - begun_s)

    @property
    def keeps_prefixes(self) -> bool:
        """Whether frames that are computed before their question save it time."""
        cached: bool = self._engine.vllm_config.cache_config.enable_prefix_caching
        return cached and self.view.frames_per_item is not None

    @property
    def rehearses(self) -> bool:
        """Whether a live question may be answered before its last frame has landed."""
        config = self._engine.vllm_config
        speculative = config.speculative_config
        if not self.keeps_prefixes or speculative is None or speculative.model != NO_PROPOSALS:
            return False
        return SchedulerOptions.parse(config.additional_config).sources.rehearsals != 0

    async def prefill(self, feed: PrefillStep) -> None:
        """Compute the prompt up to these frames, which vLLM then keeps as long as it has room.

        No question is known yet. The prompt ends with the last frame, and the token that vLLM says
        after it is dropped.
        """
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        tenant, options = feed.stream.tenant, feed.options
        engine_input = await self.render("", Clip(feed.video), tenant, options.system)
        stop = max(
            place.offset + place.length
            for places in engine_input["mm_placeholders"].values()
            for place in places
        )
        engine_input["prompt_token_ids"] = engine_input["prompt_token_ids"][:stop]
        params = SamplingParams(
            temperature=0.0,
            max_tokens=1,
            ignore_eos=True,
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        now_s = time.monotonic()
        record = RequestRecord(uuid.uuid4().hex, now_s, now_s, stream=feed.stream)
        with self._engine.recording(record):
            async for _ in self._engine.generate(
                engine_input,
                params,
                f"feed-{record.request_id}",
                lora_request=self._adapter(options),
            ):
                pass
        self._on_fed(feed.stream, record.num_tokens - record.num_cached_tokens)

    def _adapter(self, options: RequestOptions) -> Any:
        """The options's adapter as vLLM takes it, each under a number of its own."""
        from vllm.lora.request import LoRARequest

        if options.lora is None:
            return None
        path = str(options.lora)
        number = self._adapters.setdefault(path, len(self._adapters) + 1)
        return LoRARequest(path, number, path)

    async def render(self, words: str, clip: Clip, tenant: str, system: str = "") -> Any:
        from vllm.exceptions import VLLMClientError
        from vllm.renderers import ChatParams
        from vllm.renderers.inputs.preprocess import parse_model_prompt

        renderer, asked = self._engine.renderer, self.view.prompt(words, clip, system)
        tokenizing = renderer.default_cmpl_tok_params
        if isinstance(asked, str):
            prompt: dict[str, Any] = {"prompt": asked}
        else:
            params = ChatParams(chat_template_kwargs={"add_generation_prompt": True})
            _, templated = await renderer.render_messages_async(asked, params)
            # Its media are the places that the view has named, without anything in them.
            places = ("multi_modal_data", "multi_modal_uuids")
            prompt = {name: given for name, given in templated.items() if name not in places}
            tokenizing = replace(tokenizing, add_special_tokens=False)  # the template has them
        prompt["multi_modal_data"] = self.view.media(clip)
        if tenant:
            # No tenant's blocks are another tenant's prefix, and no frame is found by another.
            prompt["cache_salt"] = tenant
            is_cut = self.view.frames_per_item is not None and not clip.pictures
            content = "" if is_cut else await asyncio.to_thread(clip.digest)
            prompt["multi_modal_uuids"] = owned_names(tenant, prompt["multi_modal_data"], content)
        try:
            (engine_input,) = await renderer.render_cmpl_async(
                [parse_model_prompt(self._engine.model_config, prompt)], tokenizing
            )
        except VLLMClientError as error:
            reason = " ".join(str(error).split())
            raise QuestionError(f"vLLM does not take the question: {reason}") from error
        return engine_input

    def _check_schema(self, params: Any) -> None:
        """Raise where vLLM finds at once that it cannot follow the schema."""
        from vllm.exceptions import VLLMValidationError

        config = self._engine.vllm_config
        try:
            params.verify(
                config.model_config,
                config.speculative_config,
                config.structured_outputs_config,
                self._engine.renderer.tokenizer,
            )
        except VLLMValidationError as error:
            raise SchemaError(
                f"vLLM cannot follow the schema: {' '.join(str(error).split())} Mend the schema,"
                " or leave out the keyword that is named"
            ) from error


def _answer(text: str, completion: Any, record: RequestRecord, beside: Timeline | None) -> Answer:
    timeline = record.timeline()
    if timeline is None:
        raise EngineStartError(
            "vLLM reported no times for the answer: start it without disable_log_stats"
        )
    report = record.report
    return Answer(
        text=text,
        token_ids=tuple(record.token_ids),
        finish_reason=str(completion.finish_reason),
        num_prompt_tokens=record.num_prompt_tokens,
        num_cached_tokens=record.num_cached_tokens,
        timeline=timeline,
        accepted_histogram=(
            report.accepted if report else _accepted(completion, len(record.token_ids))
        ),
        verdicts=record.verdicts,
        drafter_timeline=beside,
        margins=_margins(completion.logprobs or (), len(record.token_ids)),
    )


def _margins(logprobs: Sequence[Mapping[int, Any]], num_tokens: int) -> tuple[float, ...]:
    """How far ahead of the next likely token each of an answer's tokens was."""
    ranked = [sorted((one.logprob for one in place.values()), reverse=True) for place in logprobs]
    if len(ranked) != num_tokens or any(len(place) < 2 for place in ranked):
        return ()
    return tuple(place[0] - place[1] for place in ranked)


def _accepted(completion: Any, num_tokens: int) -> tuple[int, ...]:
    """How much each pass accepted of what vLLM's own drafters drafted, if any do.

    A pass without a draft says one token. vLLM does not report which passes those were.
    """
    counted = completion.spec_decode_metrics
    histogram = counted.histogram if counted is not None else []
    drafted = [accepted for accepted, times in enumerate(histogram) for _ in range(times)]
    undrafted = max(0, num_tokens - sum(drafted) - len(drafted))
    return (0,) * undrafted + tuple(drafted)


class _Showing:
    """Hands on what is shown of one answer: its words as they are said, drafted ones before."""

    def __init__(self, asking: OpenRequest, on_shown: Callable[[Shown], None]) -> None:
        self._asking = asking
        self._on_shown = on_shown
        self._error: Exception | None = None
        asking.on_news = self._show_drafts

    def said(self, text: str) -> None:
        self._show(self._asking.screen.confirm(text))
        self._show_drafts()
        if self._error is not None:
            raise self._error

    def end(self) -> None:
        """The answer is complete. Drafts that come later are shown no more."""
        self._asking.on_news = lambda: None
        self._show(self._asking.screen.end())

    def _show(self, told: Iterable[Shown]) -> None:
        for shown in told:
            self._on_shown(shown)

    def _show_drafts(self) -> None:
        try:
            self._show(self._asking.previews())
        except Exception as error:  # nobody hears of it before the next words
            self._error = error
