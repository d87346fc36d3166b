"""`headstart serve`: vLLM's own server, started with our flags.

vLLM parses the flags, loads the model, makes the routes and runs. With the same flags (see
`flags`) vLLM's own command starts the same server.
"""

import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import fields
from pathlib import Path
from typing import Any, TextIO

from headstart.doctor.findings import require_engine
from headstart.drafters.registry import MemoryLimits
from headstart.engine.drafts.channel import ChannelLease, channel_home
from headstart.engine.engine_resources import EngineResources, check_cache_room, few_kernels
from headstart.engine.headstart import Headstart
from headstart.engine.interrupts import interrupts_kept
from headstart.engine.model import Model, engine_defaults
from headstart.engine.model_name import check_name
from headstart.engine.options import SchedulerOptions, check_drafting
from headstart.engine.startup import drafting_arguments, model_arguments
from headstart.errors import EngineStartError
from headstart_server import listening
from headstart_server.settings import Settings

MIDDLEWARE = "headstart_server.middleware.HeadstartMiddleware"
# vLLM fetches nothing here. It reads "none" as "all": a host that cannot exist closes it for good.
NO_DOMAIN = "closed.invalid"
_NO_FLAG = ("enable_mm_processor_stats",)


def environment() -> dict[str, str]:
    """What vLLM reads from its environment and not from flags."""
    return {"VLLM_SERVER_DEV_MODE": "0"}


def arguments(settings: Settings, channel: str | None) -> dict[str, Any]:
    """vLLM's arguments for these settings, by its names; the settings' own come before ours."""
    model = Model.checked(settings.target)
    view = model.view
    found: dict[str, Any] = {
        "model": settings.target,
        "served_model_name": served_name(settings.target),
        "host": settings.host,
        "port": settings.port,
        "middleware": MIDDLEWARE,
        "allowed_media_domains": [NO_DOMAIN],
        "disable_uvicorn_access_log": True,
        **{name: value for name, value in engine_defaults().items() if name not in _NO_FLAG},
    }
    if view.chat_template is not None:
        found["chat_template"] = view.chat_template
        # A model without a template of its own was trained with a fixed number of frames.
        found["media_io_kwargs"] = {"video": {"num_frames": view.num_frames}}
    found |= settings.vllm
    if settings.max_draft_tokens:
        stages = int(settings.vllm.get("pipeline_parallel_size") or 1)
        check_drafting(settings.max_draft_tokens, stages)
        limits = settings.limits
        settings.sources.check_files()
        if (draft_model := settings.draft_model) is not None:
            draft_model.check(model, settings.sources)
        options = SchedulerOptions(
            settings.sources,
            # A draft channel leads to one engine.
            channel=None if settings.is_data_parallel else channel,
            memory=MemoryLimits(limits.max_memory_bytes, limits.max_tenant_memory_bytes),
        )
        drafting = drafting_arguments(settings.max_draft_tokens, options, settings.vllm)
        found = {**drafting, **found, "additional_config": drafting["additional_config"]}
        found |= model_arguments(view, settings.max_draft_tokens, settings.vllm)
    return found


def served_name(target: str) -> str:
    """How requests name a target, where the settings do not say: by its directory's last name.

    A path would be in every request, and tell clients where the server keeps its models.
    """
    directory = Path(target)
    last = Path(os.path.normpath(directory.absolute())).name  # links keep their name
    return last if last and directory.is_dir() else target


def flags(found: Mapping[str, Any]) -> list[str]:
    words: list[str] = []
    for name, value in found.items():
        flag = "--" + name.replace("_", "-")
        match value:
            case True:
                words.append(flag)
            case False:
                words.append("--no-" + flag.removeprefix("--"))
            case None:
                pass
            case list() if all(isinstance(item, str) for item in value):
                words += [flag, *value]
            case dict() | list():
                words += [flag, json.dumps(value)]
            case _:
                words += [flag, str(value)]
    return words


def check_start(settings: Settings) -> None:
    """Raise what can be known before anything is loaded."""
    require_engine()
    check_name(settings.target)
    listening.check_address(settings)
    check_cache_room(settings.vllm, os.environ, 2 if settings.compare else 1)


def lasting_channel(settings: Settings) -> str:
    """A directory for the draft channel of a server that others start, one for each port."""
    return str(channel_home() / f"port-{settings.vllm.get('port', settings.port)}")


def serve(
    settings: Settings,
    on_up: Callable[[Sequence[str]], None] = listening.say,
    words: TextIO | None = None,
) -> None:
    """Serve until told to end. Exits with 1 if the engine died, so that it is started again.

    Call `check_start` before. ``on_up`` is given lines about the addresses once they answer, and
    ``words`` the access log where the settings name no file; by default both go to standard error.
    """
    os.environ.update(environment())
    if settings.max_draft_tokens:
        os.environ.update(few_kernels(os.environ).environment)
    with ExitStack() as running:
        running.enter_context(interrupts_kept())  # the middleware unblocks them once it can drain
        channel = None
        if settings.max_draft_tokens and not settings.is_data_parallel:
            channel = running.enter_context(closing(ChannelLease.take())).channel.directory
        found = arguments(settings, channel)
        bare = running.enter_context(_bare(settings)) if settings.compare else None
        draft_model, resources = settings.draft_model, EngineResources()
        if draft_model is not None:  # it and the target get a part of the machine each
            draft_model, resources = draft_model.placed(found)
        os.environ.update(resources.environment)
        args = _parsed(flags({**found, **resources.arguments}))
        args.enable_mm_processor_stats = True  # has no flag: times the vision tower
        args.headstart = settings
        args.headstart_draft_model = draft_model
        args.headstart_bare = bare
        args.headstart_words = words
        is_up = False

        def tell(addresses: Sequence[str]) -> None:
            nonlocal is_up
            is_up = True
            on_up(addresses)

        args.headstart_on_up = tell
        import uvloop
        from vllm.entrypoints.launchers.api_server.entry import run_server_worker
        from vllm.entrypoints.launchers.launcher import setup_server

        # What vLLM's `run_server` does, but for its own handler of SIGTERM: see `interrupts_kept`.
        try:
            address, socket = setup_server(args, reuse_port=False)
            uvloop.run(run_server_worker(address, socket, args))
        except (RuntimeError, ValueError, TypeError, OSError) as error:
            if is_up:
                raise
            traceback.print_exc()  # beside vLLM's messages
            raise EngineStartError(f"{settings.target} is not served: {error}") from error
    if not is_up:
        raise EngineStartError(f"{settings.target} is not served: vLLM's messages say why")
    if getattr(args, "engine_died", False):
        sys.exit(1)


def _bare(settings: Settings) -> Headstart:
    """vLLM alone, with the engine's arguments of the target, to be compared with."""
    from vllm import AsyncEngineArgs

    names = {field.name for field in fields(AsyncEngineArgs)}
    vllm = {name: given for name, given in settings.vllm.items() if name in names}
    return Headstart(settings.target, max_draft_tokens=0, vllm=vllm)


def _parsed(words: list[str]) -> Any:
    from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
    from vllm.entrypoints.serve.utils.api_utils import cli_env_setup
    from vllm.logger import configure_logging_from_args
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    cli_env_setup()
    args = make_arg_parser(FlexibleArgumentParser()).parse_args(words)
    configure_logging_from_args(args)
    validate_parsed_serve_args(args)
    return args
