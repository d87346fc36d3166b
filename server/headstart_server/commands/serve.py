"""`headstart serve`: vLLM's OpenAI server with clips, streams and previews."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from headstart.cli.options import DraftModel, TargetIfGiven, Vllm
from headstart.cli.settings import SET, CommandSettings, engine_arguments, setting
from headstart.cli.starting import shown_start
from headstart.cli.terminal import divert, report_errors
from headstart.errors import EngineMissingError
from headstart_server.settings import Settings
from headstart_server.settings_table import SettingsError


@dataclass(frozen=True)
class ServeSettings(CommandSettings):
    """Entries of [server] in the settings' file that are tried without a file."""

    max_draft_tokens: int | None = setting(
        None, "Longest draft that one pass verifies, else 32; 0 turns drafting off.", at_least=0
    )
    log: Path | None = setting(None, "Access log, one line of JSON per request; else stderr.")
    answer_log: Path | None = setting(
        None, "A directory; answers are kept there, a log a tenant, to learn from."
    )
    compare: bool | None = setting(None, "Also start vLLM alone, for live cameras to compare with.")


@report_errors
def serve(
    target: TargetIfGiven = None,
    config: Annotated[
        Path | None, typer.Option(exists=True, help="Settings as TOML; options override it.")
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(help="Address to listen on.", show_default=Settings.host),
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Port to listen on.", show_default=str(Settings.port))
    ] = None,
    open_: Annotated[
        bool, typer.Option("--open", help="Let clients in without keys (it opens no page).")
    ] = False,
    demo: Annotated[
        Path | None, typer.Option(help="A directory of clips that the page offers.")
    ] = None,
    print_vllm_flags: Annotated[
        bool,
        typer.Option(
            "--print-vllm-flags", help="Print the command that starts vLLM's own server, and exit."
        ),
    ] = False,
    draft_model: DraftModel = None,
    vllm: Vllm = None,
    given: Annotated[list[str] | None, SET, ServeSettings] = None,
) -> None:
    """Serve a model over HTTP, to many cameras and tenants.

    Until SIGTERM, which lets requests in flight finish.
    """
    try:
        from headstart_server import server
    except ModuleNotFoundError as error:
        raise EngineMissingError(
            f"serving needs vLLM, and {error.name} is missing; `headstart doctor` says how to"
            " install it"
        ) from error

    settings = Settings.read(config) if config is not None else Settings()
    wanted: dict[str, Any] = {
        **vars(ServeSettings.read(given)),
        "target": target,
        "drafter": draft_model,
        "host": host,
        "port": port,
        "demo": demo,
        "open": open_ or None,
    }
    arguments, beside = engine_arguments(vllm, draft_model or settings.drafter)
    settings = replace(
        settings,
        **{name: value for name, value in wanted.items() if value is not None},
        vllm={**settings.vllm, **arguments},
        drafter_vllm={**settings.drafter_vllm, **beside},
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
    shown = divert()
    with shown_start(shown, settings.target) as up:

        def on_up(addresses: Sequence[str]) -> None:
            up()
            shown.say("\n".join(addresses))

        server.serve(settings, on_up, shown.err)
