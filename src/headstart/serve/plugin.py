"""headstart in vLLM's own server, as the middleware that vLLM loads by name.

    HEADSTART_CONFIG=headstart.toml python -m vllm.entrypoints.openai.api_server --model ... \\
        --middleware headstart.serve.plugin.HeadstartMiddleware ...

`headstart serve` starts vLLM in the same way; `headstart serve --flags` prints all the flags.
All contact with vLLM's application is in this file.
"""

import asyncio
import logging
import signal
from typing import Any

from headstart.errors import HeadstartError
from headstart.sandbox.pool import Pool
from headstart.serve import connector, figures
from headstart.serve.answering import Answering
from headstart.serve.chat import Reading
from headstart.serve.decoders import decoding_pool
from headstart.serve.decoding import Decoding
from headstart.serve.door import Door
from headstart.serve.drafter import Drafter
from headstart.serve.heartbeat import Heartbeat
from headstart.serve.logbook import Logbook
from headstart.serve.prediction import Spelling
from headstart.serve.quota import Quota
from headstart.serve.refusal import App, Message, Receive, Scope, Send
from headstart.serve.settings import Settings
from headstart.serve.watch import WatchedEngine

_log = logging.getLogger("headstart")


class HeadstartMiddleware:
    """Everything of ours in a vLLM server, from its start to its end."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._door: Door | None = None
        self._answering: Answering | None = None
        self._pool: Pool | None = None
        self._logbook: Logbook | None = None
        self._draining: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A request, or the server's start and end."""
        if scope["type"] == "lifespan":
            await self._live(scope, receive, send)
        elif scope["type"] == "http" and self._door is not None:
            await self._door(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            # Closed rather than open: without a door nothing gets to vLLM.
            await send({"type": "http.response.start", "status": 503, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
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
        settings = getattr(state.args, "headstart", None) or Settings.from_environment()
        engine = WatchedEngine(state.engine_client)
        for name in ("openai_serving_chat", "openai_serving_completion"):
            if (serving := getattr(state, name, None)) is not None:
                serving.engine_client = engine
        drafter = Drafter(settings, state.args.additional_config)
        config = state.engine_client.model_config
        tokenizer = state.engine_client.renderer.tokenizer
        connector.register()
        self._pool = decoding_pool(settings.limits, config, tokenizer, settings.open)
        self._pool.start()
        figures.WORKERS_KILLED.set_function(lambda: self._pool.num_killed if self._pool else 0)
        quota = Quota(settings.limits)
        self._answering = Answering(
            self._app,
            settings,
            engine,
            drafter,
            _reading(settings, state.engine_client.vllm_config, tokenizer),
            Decoding(self._pool, settings.limits),
            quota,
            tokenizer,
            state.openai_serving_models.model_name(),
        )
        heartbeat = Heartbeat(engine.beat, settings.limits.heartbeat_s)
        self._logbook = Logbook(settings.log)
        self._door = Door(self._app, settings, self._answering, self._logbook, quota, heartbeat)
        self._state = state
        # vLLM drops what is under way when it is told to end; here it is finished first.
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal, settings.limits.drain_s)
        self._logbook.note(event="up", tenants=len(settings.keys.tenants))

    def _on_signal(self, drain_s: float) -> None:
        if self._draining is None:
            self._draining = asyncio.ensure_future(self._drain(drain_s))
        else:
            self._state.server.force_exit = True  # told twice

    async def _drain(self, drain_s: float) -> None:
        if self._door is not None and self._logbook is not None:
            self._logbook.note(event="draining", in_flight=self._door.crowd.size)
            drained = await self._door.crowd.drain(drain_s)
            self._logbook.note(event="drained" if drained else "gave up draining")
            self._state.server.force_exit = not drained
        self._state.server.should_exit = True

    def _close(self) -> None:
        if self._door is not None and self._answering is not None and self._logbook is not None:
            self._state.args.engine_died = self._answering.engine_is_dead
            self._logbook.note(event="down", engine_died=self._state.args.engine_died)
            self._door.close()
            self._answering.close()
            if self._pool is not None:
                self._pool.close()
            self._logbook.close()
            self._door = None


def _reading(settings: Settings, config: Any, tokenizer: Any) -> Reading:
    """Of bodies, without what ends vLLM 0.32 with this model or on this machine."""
    from vllm.platforms import current_platform

    num_ids = config.model_config.get_vocab_size()
    return Reading(
        settings.limits,
        Spelling(tokenizer),
        num_ids,
        names_all_tokens=None not in tokenizer.convert_ids_to_tokens(list(range(num_ids))),
        closes_seed=current_platform.is_cpu() and config.scheduler_config.enable_chunked_prefill,
    )
