"""headstart in vLLM's own server, as the middleware that vLLM loads by name.

    HEADSTART_CONFIG=headstart.toml python -m vllm.entrypoints.openai.api_server --model ... \\
        --middleware headstart_server.middleware.HeadstartMiddleware ...

`headstart serve` starts vLLM in the same way, and prints the flags with `--print-vllm-flags`.
All contact with vLLM's application is in this file.
"""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Sequence
from typing import Any

from headstart.engine.drafter.channel import DraftChannel
from headstart.engine.drafter.client import DrafterClient
from headstart.engine.engine_client import EngineClient
from headstart.engine.engine_memory import EngineMemory
from headstart.engine.front_end import AnswerListener, FrontEnd
from headstart.engine.model import Model
from headstart.engine.options import SchedulerOptions
from headstart.engine.startup import SCHEDULER, check_tokens
from headstart.engine.target import Target
from headstart.errors import HeadstartError
from headstart.models.view import View
from headstart_server import listening, metrics
from headstart_server.access_log import AccessLog
from headstart_server.admission import Admission
from headstart_server.answering import Answering
from headstart_server.asgi import App, Message, Receive, Scope, Send
from headstart_server.connections.open_connections import OpenConnections
from headstart_server.connections.uvicorn_protocols import bound_connections
from headstart_server.entrance import Entrance
from headstart_server.gateway import Gateway
from headstart_server.heartbeat import Heartbeat
from headstart_server.live.camera_routes import CameraRoutes
from headstart_server.live.cameras import Cameras
from headstart_server.live.places import CameraPlaces
from headstart_server.live.registry import CameraRegistry
from headstart_server.live.route import LiveRoute
from headstart_server.media import connector
from headstart_server.media.decoder import MediaDecoder
from headstart_server.media.decoder_pool import decoder_pool
from headstart_server.media.room import MediaRoom
from headstart_server.memory.keeper import MemoryKeeper
from headstart_server.memory.routes import MemoryRoutes
from headstart_server.memory.seal import Seal, tokenizer_name
from headstart_server.memory.store import open_store
from headstart_server.parsed_request import RequestParser
from headstart_server.prediction import Spelling
from headstart_server.quota import Quota
from headstart_server.sandbox.pool import Pool
from headstart_server.settings import Settings, SettingsError
from headstart_server.tenant_logs import TenantLogs

_log = logging.getLogger("headstart")

SAVE_S = 10.0
"""Time to save the memories of streams, when a drain begins and when it ends."""


class HeadstartMiddleware:
    """Everything of ours in a vLLM server, from its start to its end."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._gateway: Gateway | None = None
        self._live: LiveRoute | None = None
        self._registry: CameraRegistry | None = None
        self._answering: Answering | None = None
        self._pool: Pool | None = None
        self._access_log: AccessLog | None = None
        self._tenant_logs: TenantLogs | None = None
        self._keeper: MemoryKeeper | None = None
        self._draining: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A request, or the server's start and end."""
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
        async def sending(message: Message) -> None:
            if message["type"] == "lifespan.startup.complete":
                try:
                    self._open(scope["app"])
                except HeadstartError as error:
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            self._close()

    def _open(self, app: Any) -> None:
        state = app.state
        settings = getattr(state.args, "headstart", None)
        if settings is None:  # `serve` checks before anything is loaded
            settings = Settings.from_environment()
            check_tokens(state.args.model, settings.event_drafter)
        if settings.compare and not hasattr(state.args, "headstart_bare"):
            raise SettingsError("compare is for `headstart serve`: start it so, or leave it out")
        if settings.answer_log is not None:
            limit = settings.limits.max_tenant_log_bytes
            self._tenant_logs = TenantLogs(settings.answer_log, limit)
        engine = EngineClient(state.engine_client)
        for name in ("openai_serving_chat", "openai_serving_completion"):
            if (serving := getattr(state, name, None)) is not None:
                serving.engine_client = engine
        config = state.engine_client.model_config
        tokenizer = state.engine_client.renderer.tokenizer
        connector.register()
        self._pool = decoder_pool(settings.limits, config, tokenizer, settings.open)
        self._pool.start()
        metrics.WORKERS_KILLED.set_function(lambda: self._pool.num_killed if self._pool else 0)
        quota = Quota(settings.limits)
        words = getattr(state.args, "headstart_words", None)
        access_log = self._access_log = AccessLog(settings.log, words)
        if _remembers(state.engine_client.vllm_config):
            memory = EngineMemory(engine)
            self._keeper = _keeper(settings, memory, tokenizer, access_log)
        kept = (self._tenant_logs, self._keeper)
        listeners = [listener for listener in kept if listener is not None]
        front_end = _front_end(settings, engine, state.args.additional_config, listeners)
        decoder, room = MediaDecoder(self._pool, settings.limits), MediaRoom(settings.limits)
        self._answering = Answering(
            self._app,
            settings,
            front_end,
            _parser(settings, state.engine_client.vllm_config, tokenizer),
            decoder,
            room,
            quota,
            state.openai_serving_models.model_name(),
        )
        heartbeat = Heartbeat(engine.beat, settings.limits.heartbeat_s)
        entrance = Entrance(settings, quota, lambda said: access_log.note(event="keys", said=said))
        self._state, self._settings = state, settings
        connections = OpenConnections()
        bound_connections(state.server.config, settings.limits, connections)
        self._watching = asyncio.ensure_future(connections.watch())
        cameras = None
        if (view := _view(config, settings)).num_frames is not None:
            target = Target(view, front_end, lambda stream, num: quota.charge(stream.tenant, num))
            limits, note = settings.limits, access_log.note_error
            bare = getattr(state.args, "headstart_bare", None)
            places = CameraPlaces(target, entrance, decoder, room, limits, bare)
            cameras = Cameras(places, limits, note)
            registry = CameraRegistry(places, settings.cameras, limits, access_log)
            kinds = (cameras, registry)
            metrics.LIVE_WAITING.set_function(lambda: sum(kind.num_waiting for kind in kinds))
            self._registry = registry
        self._live = LiveRoute(settings, entrance, cameras, access_log)
        self._gateway = Gateway(
            self._app,
            settings,
            self._answering,
            access_log,
            entrance,
            heartbeat,
            CameraRoutes(settings, entrance, self._registry),
            MemoryRoutes(settings, quota, self._keeper),
        )
        # vLLM drops requests in flight when it is told to end; here they are answered first.
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal, settings.limits.drain_s)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # `serve` had it wait
        self._access_log.note(event="up", tenants=len(settings.keys.tenants))
        self._telling = asyncio.ensure_future(self._tell_address(access_log))

    async def _tell_address(self, access_log: AccessLog) -> None:
        """Say where the server is, last of all that is said of its start."""
        state = self._state
        await listening.until_up(state.server)
        await asyncio.to_thread(access_log.settle)
        lines = listening.lines(
            state.server,
            self._settings,
            state.openai_serving_models.model_name(),
            has_cameras=self._registry is not None,
        )
        getattr(state.args, "headstart_on_up", listening.say)(lines)

    def _on_signal(self, drain_s: float) -> None:
        if self._draining is None:
            self._draining = asyncio.ensure_future(self._drain(drain_s))
        else:
            self._state.server.force_exit = True  # told twice

    async def _drain(self, drain_s: float) -> None:
        if self._gateway is not None and self._access_log is not None:
            admission = self._gateway.entrance.admission
            self._access_log.note(event="draining", in_flight=admission.num_in_flight)
            # Streams go elsewhere from now on, and are looked for in the store there.
            saving = asyncio.ensure_future(self._save_memory())
            drained = await self._drained(admission, drain_s)
            await saving
            await self._save_memory()
            self._access_log.note(event="drained" if drained else "gave up draining")
            self._state.server.force_exit = not drained
        self._state.server.should_exit = True

    async def _drained(self, admission: Admission, drain_s: float) -> bool:
        """Whether all requests and all cameras ended in time."""
        requests = asyncio.ensure_future(admission.drain(drain_s))
        cameras = asyncio.ensure_future(self._drain_cameras())
        await asyncio.wait((cameras,), timeout=drain_s)
        return await requests and cameras.done()

    async def _save_memory(self) -> None:
        if self._keeper is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SAVE_S):
                    await self._keeper.save()

    async def _drain_cameras(self) -> None:
        kinds = [kind for kind in (self._live, self._registry) if kind is not None]
        await asyncio.gather(*(kind.drain() for kind in kinds))

    def _close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
        if self._live is not None:
            self._live.close()
            self._live = None
        if self._registry is not None:
            self._registry.close()
            self._registry = None
        if (
            self._gateway is not None
            and self._answering is not None
            and self._access_log is not None
        ):
            self._state.args.engine_died = self._answering.engine_is_dead
            self._access_log.note(event="down", engine_died=self._state.args.engine_died)
            self._gateway.close()
            if self._keeper is not None:
                self._keeper.close()
            self._answering.close()
            if self._pool is not None:
                self._pool.close()
            if self._tenant_logs is not None:
                self._tenant_logs.close()
            self._access_log.close()
            self._gateway = None


def _view(model_config: Any, settings: Settings) -> View:
    """How the target sees a live window; without drafts its clips are not cut into parts."""
    view = Model.checked(model_config.model).view
    return view if settings.max_draft_tokens else view.whole


def _parser(settings: Settings, config: Any, tokenizer: Any) -> RequestParser:
    """Of bodies, without what ends vLLM 0.32 with this model or on this machine."""
    from vllm.platforms import current_platform

    num_ids = config.model_config.get_vocab_size()
    return RequestParser(
        settings.limits,
        Spelling(tokenizer),
        num_ids,
        names_all_tokens=None not in tokenizer.convert_ids_to_tokens(list(range(num_ids))),
        closes_seed=current_platform.is_cpu() and config.scheduler_config.enable_chunked_prefill,
    )


def _remembers(vllm_config: Any) -> bool:
    """Whether our scheduler is there, which has the memory."""
    return bool(vllm_config.scheduler_config.scheduler_cls == SCHEDULER)


def _keeper(
    settings: Settings, memory: EngineMemory, tokenizer: Any, access_log: AccessLog
) -> MemoryKeeper:
    keeping, seal = settings.memory, None
    if keeping.keys:
        seal = Seal(keeping.keys, tokenizer_name(tokenizer.get_vocab()))
    max_tenant_bytes = settings.limits.max_tenant_memory_bytes
    store = open_store(keeping)
    return MemoryKeeper(memory, keeping, seal, store, max_tenant_bytes, access_log.note)


def _front_end(
    settings: Settings,
    engine: EngineClient,
    additional_config: Any,
    listeners: Sequence[AnswerListener],
) -> FrontEnd:
    """With the drafter's process, where one is configured; returns before its engine is up."""
    options = SchedulerOptions.parse(additional_config)
    drafter = settings.event_drafter
    if options.channel is None:
        if drafter is not None:
            raise SettingsError(
                "the drafter has no way to the target's scheduler; start vLLM with"
                ' --additional-config \'{"headstart": {"channel": "DIRECTORY"}}\''
            )
        return FrontEnd(engine, None, listeners=listeners)
    channel = DraftChannel(options.channel)
    client = DrafterClient(channel, drafter, settings.drafter_resources)
    return FrontEnd(engine, client, abstain=options.sources.abstain, listeners=listeners)
