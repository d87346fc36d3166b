"""`headstart serve`: vLLM's OpenAI server with clips, streams and previews."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from headstart.cli.errors import report_errors
from headstart.cli.phases import Start
from headstart.cli.starting import engine_arguments
from headstart.cli.terminal import divert, terminal
from headstart.errors import EngineMissingError
from headstart_server.settings import Settings, SettingsError


@report_errors
def serve(
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            "--model",
            help="The model that answers: a directory, or a name on the hub.",
        ),
    ] = None,
    drafter: Annotated[
        str | None, typer.Option(help="An EventGPT that drafts from the events of requests.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(exists=True, help="Settings as TOML; flags override it.")
    ] = None,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on.", show_default=Settings.host)
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Port to listen on.", show_default=str(Settings.port))
    ] = None,
    max_draft_tokens: Annotated[
        int | None,
        typer.Option(min=0, help="Draft tokens verified in one pass; 0 turns drafting off."),
    ] = None,
    log: Annotated[
        Path | None, typer.Option(help="Access log, one line of JSON per request; else stderr.")
    ] = None,
    answer_log: Annotated[
        Path | None,
        typer.Option(help="A directory; answers are kept there, a log a tenant, to learn from."),
    ] = None,
    demo: Annotated[
        Path | None, typer.Option(help="A directory of clips that the page offers.")
    ] = None,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Also start vLLM alone, for live cameras to compare with."),
    ] = False,
    open_: Annotated[
        bool, typer.Option("--open", help="Let clients in without keys (it opens no page).")
    ] = False,
    vllm: Annotated[
        list[str] | None,
        typer.Option(help="An argument of vLLM's own, as name=value; repeatable."),
    ] = None,
    drafter_vllm: Annotated[
        list[str] | None, typer.Option(help="The same, for the drafter's engine.")
    ] = None,
    print_vllm_flags: Annotated[
        bool,
        typer.Option(
            "--print-vllm-flags", help="Print the command that starts vLLM's own server, and exit."
        ),
    ] = False,
    verbose: Annotated[
        bool, typer.Option(help="Show vLLM's own messages on a terminal too.")
    ] = False,
) -> None:
    """Serve a model over HTTP until SIGTERM, which lets requests in flight finish."""
    try:
        from headstart_server import server
    except ModuleNotFoundError as error:
        raise EngineMissingError(
            f"serving needs vLLM, and {error.name} is missing; `headstart doctor` says how to"
            " install it"
        ) from error

    settings = Settings.read(config) if config is not None else Settings()
    given: dict[str, Any] = {
        "target": target,
        "drafter": drafter,
        "host": host,
        "port": port,
        "max_draft_tokens": max_draft_tokens,
        "log": log,
        "answer_log": answer_log,
        "demo": demo,
        "open": open_ or None,
        "compare": compare or None,
    }
    settings = replace(
        settings,
        **{name: value for name, value in given.items() if value is not None},
        vllm={**settings.vllm, **engine_arguments(vllm or [])},
        drafter_vllm={**settings.drafter_vllm, **engine_arguments(drafter_vllm or [])},
    )
    if not settings.target:
        raise SettingsError("no target: give --target, or target under [server] in the settings")
    settings.check_auth()
    if print_vllm_flags:
        if settings.compare:
            raise SettingsError("vLLM's own command starts no second engine: leave compare out")
        if config is None or (open_ and not Settings.read(config).open):
            raise SettingsError(
                "vLLM's own command takes no keys and no --open from flags: write them into a file"
                " and name it with --config"
            )
        channel = server.lasting_channel(settings) if settings.max_draft_tokens else None
        variables = {**server.environment(), "HEADSTART_CONFIG": str(config)}
        words = [f"{name}={shlex.quote(value)}" for name, value in variables.items()]
        words += ["python", "-m", "vllm.entrypoints.openai.api_server"]
        words += map(shlex.quote, server.flags(server.arguments(settings, channel)))
        typer.echo(" ".join(words))
        return
    if settings.open and settings.host not in ("127.0.0.1", "localhost", "::1"):
        typer.echo(
            f"warning: all who reach {settings.host} may send requests; set keys under [tenants]",
            err=True,
        )
    server.check_start(settings)
    shown = terminal() if verbose else divert()
    with Start(shown, settings.target).shown() as start:

        def on_up(addresses: Sequence[str]) -> None:
            start.up()
            shown.say("\n".join(addresses))

        server.serve(settings, on_up, shown.err)
