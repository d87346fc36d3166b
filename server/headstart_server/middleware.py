"""headstart in vLLM's own server, as the middleware that vLLM loads by name.

    HEADSTART_CONFIG=headstart.toml python -m vllm.entrypoints.openai.api_server --model ... \\
        --middleware headstart_server.middleware.HeadstartMiddleware ...

`headstart serve` starts vLLM in the same way, and prints the flags with `--print-vllm-flags`.
All contact with vLLM's application is in this file.
"""

import asyncio
import signal
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

from headstart.engine.draft_model import DraftModel
from headstart.engine.drafts.channel import DraftChannel
from headstart.engine.drafts.subscriber import DraftSubscriber
from headstart.engine.engine_client import EngineClient
from headstart.engine.engine_memory import EngineMemory
from headstart.engine.front_end import AnswerListener, FrontEnd
from headstart.engine.model import Model
from headstart.engine.options import SchedulerOptions
from headstart.engine.startup import SCHEDULER
from headstart.engine.target import Target
from headstart.errors import HeadstartError
from headstart.models.view import View
from headstart_server import listening, metrics
from headstart_server.access_log import AccessLog
from headstart_server.admission import Admission, RequestsInFlight
from headstart_server.answering import Answering
from headstart_server.asgi import App, Message, Receive, Scope, Send
from headstart_server.connections.connection import OpenConnections
from headstart_server.connections.uvicorn_protocols import bound_connections
from headstart_server.gateway import Gateway
from headstart_server.live.camera_resources import CameraSlots
from headstart_server.live.camera_routes import CameraRoutes
from headstart_server.live.cameras import CameraRegistry, SocketCameras
from headstart_server.live.route import LiveRoute
from headstart_server.media import loader
from headstart_server.media.decoder import MediaDecoder, decoder_pool
from headstart_server.media.fetcher import MediaFetcher
from headstart_server.media.loader import MediaBudget, MediaLoader
from headstart_server.memory.routes import MemoryRoutes
from headstart_server.memory.seal import SnapshotSeal, tokenizer_name
from headstart_server.memory.store import open_store
from headstart_server.memory.store_sync import MemoryStoreSync
from headstart_server.parsed_request import BodyBounds, RequestParser
from headstart_server.prediction import Tokenizing
from headstart_server.quota import Quota
from headstart_server.readiness import Heartbeat, Readiness
from headstart_server.settings import Settings
from headstart_server.settings_table import SettingsError
from headstart_server.tenant_logs import TenantLogs
from headstart_server.upload_routes import UploadRoutes
from headstart_server.uploads import Uploads

SAVE_S = 10.0
"""Time to save the memories of streams, when a drain begins and when it ends."""


class HeadstartMiddleware:
    """Everything of ours in a vLLM server, from its start to its end."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._gateway: Gateway | None = None
        self._live: LiveRoute | None = None
        self._registry: CameraRegistry | None = None
        self._memory: MemoryStoreSync | None = None
        self._draining: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._run(scope, receive, send)
        elif scope["type"] == "http" and self._gateway is not None:
            await self._gateway(scope, receive, send)
        elif scope["type"] == "websocket" and self._live is not None:
            await self._live(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            # Without a gateway no request may reach vLLM.
            await send({"type": "http.response.start", "status": 503, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Whatever ends the server, also its start, closes the parts that were opened until then.
        with ExitStack() as parts:

            async def sending(message: Message) -> None:
                if message["type"] == "lifespan.startup.complete":
                    try:
                        self._open(scope["app"], parts)
                    except HeadstartError as error:
                        parts.close()
                        await send({"type": "lifespan.startup.failed", "message": str(error)})
                        return
                await send(message)

            await self._app(scope, receive, sending)

    def _open(self, app: Any, parts: ExitStack) -> None:
        """Each part closes before those that it uses."""
        state = app.state
        settings = getattr(state.args, "headstart", None)
        draft_model = getattr(state.args, "headstart_draft_model", None)
        if settings is None:  # `serve` checks before anything is loaded
            settings = Settings.from_environment()
            if (draft_model := settings.draft_model) is not None:
                draft_model.check(Model.checked(state.args.model), settings.sources)
        if settings.compare and not hasattr(state.args, "headstart_bare"):
            raise SettingsError("compare is for `headstart serve`: start it so, or leave it out")
        limits = settings.limits
        access_log = AccessLog(settings.log, getattr(state.args, "headstart_words", None))
        parts.callback(access_log.close)
        listeners: list[AnswerListener] = [metrics.CountedRehearsals()]
        if settings.answer_log is not None:
            logs = TenantLogs(settings.answer_log, limits.max_tenant_log_bytes)
            parts.callback(logs.close)
            listeners.append(logs)
        engine = EngineClient(state.engine_client)
        for name in ("openai_serving_chat", "openai_serving_completion"):
            if (serving := getattr(state, name, None)) is not None:
                serving.engine_client = engine
        config = state.engine_client.model_config
        tokenizer = state.engine_client.renderer.tokenizer
        loader.register()
        pool = decoder_pool(limits, config, tokenizer, settings.open)
        pool.start()
        parts.callback(pool.close)
        metrics.WORKERS_KILLED.set_function(lambda: pool.num_killed)
        quota = Quota(limits)
        vllm_config = state.engine_client.vllm_config
        if vllm_config.scheduler_config.scheduler_cls == SCHEDULER:  # it has the memory
            self._memory = _memory(settings, EngineMemory(engine), tokenizer, access_log)
            parts.callback(self._memory.close)
            if settings.memory.store is not None:  # else it hears of nothing that it needs
                listeners.append(self._memory)
        front_end = _front_end(draft_model, engine, state.args.additional_config, listeners)
        parts.callback(front_end.close)
        uploads, decoder, budget = Uploads(limits), MediaDecoder(pool, limits), MediaBudget(limits)
        parts.callback(uploads.close)
        metrics.MEDIA_BYTES.set_function(lambda: budget.num_bytes)
        fetcher = MediaFetcher(settings, uploads)
        answering = Answering(
            self._app,
            front_end,
            _parser(settings, vllm_config, tokenizer),
            fetcher,
            decoder,
            MediaLoader(fetcher, decoder, budget),
            quota,
            state.openai_serving_models.model_name(),
        )
        parts.callback(answering.close)
        admission = Admission(
            settings, quota, lambda said: access_log.note(event="keys", said=said)
        )
        heartbeat = Heartbeat(engine.beat, limits.heartbeat_s)
        readiness = Readiness(front_end, decoder, admission, heartbeat)
        parts.callback(readiness.close)
        connections = OpenConnections()
        bound_connections(state.server.config, limits, connections)
        parts.callback(asyncio.ensure_future(connections.watch()).cancel)

        def note_end() -> None:
            state.args.engine_died = readiness.engine_is_dead
            access_log.note(event="down", engine_died=state.args.engine_died)

        parts.callback(note_end)
        cameras = None
        if (view := _view(config, settings)).num_frames is not None:
            target = Target(view, front_end, lambda stream, num: quota.charge(stream.tenant, num))
            bare = getattr(state.args, "headstart_bare", None)
            slots = CameraSlots(target, admission, decoder, budget, limits, bare)
            cameras = SocketCameras(slots, limits, access_log.note_error)
            registry = CameraRegistry(slots, settings.cameras, limits, access_log)
            parts.callback(registry.close)
            kinds = (cameras, registry)
            metrics.LIVE_WAITING.set_function(lambda: sum(kind.num_waiting for kind in kinds))
            self._registry = registry
        self._live = LiveRoute(settings, admission, cameras, access_log)
        parts.callback(self._live.close)
        self._gateway = Gateway(
            self._app,
            settings,
            answering,
            access_log,
            admission,
            readiness,
            UploadRoutes(uploads, fetcher, decoder),
            CameraRoutes(settings, admission, self._registry),
            MemoryRoutes(settings, quota, self._memory),
        )
        parts.callback(self._turn_away)
        # vLLM drops requests in flight when it is told to end; here they are answered first.
        loop, server = asyncio.get_running_loop(), state.server
        drain = partial(self._on_signal, server, admission.requests, access_log, limits.drain_s)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, drain)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # `serve` had it wait
        access_log.note(event="up", tenants=len(settings.keys.tenants))
        parts.callback(asyncio.ensure_future(self._tell(state, settings, access_log)).cancel)

    def _turn_away(self) -> None:
        self._gateway = self._live = None

    async def _tell(self, state: Any, settings: Settings, access_log: AccessLog) -> None:
        """Say where the server is, last of all that is said of its start."""
        await listening.until_up(state.server)
        await asyncio.to_thread(access_log.settle)
        lines = listening.lines(
            state.server,
            settings,
            state.openai_serving_models.model_name(),
            has_cameras=self._registry is not None,
        )
        getattr(state.args, "headstart_on_up", listening.say)(lines)

    def _on_signal(
        self, server: Any, requests: RequestsInFlight, access_log: AccessLog, drain_s: float
    ) -> None:
        if self._draining is not None:
            server.force_exit = True  # told twice
        else:
            drain = self._drain(server, requests, access_log, drain_s)
            self._draining = asyncio.ensure_future(drain)

    async def _drain(
        self, server: Any, requests: RequestsInFlight, access_log: AccessLog, drain_s: float
    ) -> None:
        access_log.note(event="draining", in_flight=requests.num)
        # Streams go elsewhere from now on, and are looked for in the store there.
        saving = asyncio.ensure_future(self._save_memory())
        drained = await self._drained(requests, drain_s)
        await saving
        await self._save_memory()
        access_log.note(event="drained" if drained else "gave up draining")
        server.force_exit = not drained
        server.should_exit = True

    async def _drained(self, requests: RequestsInFlight, drain_s: float) -> bool:
        """Whether all requests and all cameras ended in time."""
        answered = asyncio.ensure_future(requests.drain(drain_s))
        cameras = asyncio.ensure_future(self._drain_cameras())
        await asyncio.wait((cameras,), timeout=drain_s)
        return await answered and cameras.done()

    async def _save_memory(self) -> None:
        if self._memory is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(SAVE_S):
                    await self._memory.save()

    async def _drain_cameras(self) -> None:
        kinds = [kind for kind in (self._live, self._registry) if kind is not None]
        await asyncio.gather(*(kind.drain() for kind in kinds))


def _view(model_config: Any, settings: Settings) -> View:
    """How the target sees a live window; without drafts its clips are not cut into parts."""
    view = Model.checked(model_config.model).view
    return view if settings.max_draft_tokens else view.whole


def _parser(settings: Settings, config: Any, tokenizer: Any) -> RequestParser:
    """Of bodies, without what ends vLLM 0.32 with this model or on this machine."""
    from vllm.platforms import current_platform

    num_ids = config.model_config.get_vocab_size()
    bounds = BodyBounds(
        settings.limits,
        num_ids,
        names_all_tokens=None not in tokenizer.convert_ids_to_tokens(list(range(num_ids))),
        closes_seed=current_platform.is_cpu() and config.scheduler_config.enable_chunked_prefill,
    )
    return RequestParser(bounds, Tokenizing(tokenizer))


def _memory(
    settings: Settings, engine: EngineMemory, tokenizer: Any, access_log: AccessLog
) -> MemoryStoreSync:
    memory, seal = settings.memory, None
    if memory.keys:
        seal = SnapshotSeal(memory.keys, tokenizer_name(tokenizer.get_vocab()))
    max_tenant_bytes = settings.limits.max_tenant_memory_bytes
    store = open_store(memory)
    return MemoryStoreSync(engine, memory, seal, store, max_tenant_bytes, access_log.note)


def _front_end(
    draft_model: DraftModel | None,
    engine: EngineClient,
    additional_config: Any,
    listeners: Sequence[AnswerListener],
) -> FrontEnd:
    """With a draft model, where one is configured; returns before its engine is up."""
    options = SchedulerOptions.parse(additional_config)
    if options.channel is None:
        if draft_model is not None:
            raise SettingsError(
                "the drafter has no way to the target's scheduler; start vLLM with"
                ' --additional-config \'{"headstart": {"channel": "DIRECTORY"}}\''
            )
        return FrontEnd(engine, listeners=listeners)
    drafts, beside = DraftSubscriber(DraftChannel(options.channel)), None
    if draft_model is not None:
        beside = draft_model.start(drafts, abstain=options.sources.abstain)
    return FrontEnd(engine, drafts, beside, listeners)
