"""`ddpfix rules` and `ddpfix explain`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ddpfix.cli.app import app
from ddpfix.cli.ends import CommandError


@app.command()
def rules(
    output_format: Annotated[str, typer.Option("--output-format", help="text, json or markdown.")] = "text",
) -> None:
    """List every codemod."""
    from ddpfix import explain

    if output_format not in explain.FORMATS:
        raise CommandError(f"no output format is called {output_format!r}", todo=f"Use {', '.join(explain.FORMATS)}.")
    sys.stdout.write(explain.rules(output_format))


@app.command("explain")
def explain_command(
    rule: Annotated[str, typer.Argument(help="A code or a name: DDP101, unsynced-metric.")],
    output_format: Annotated[str, typer.Option("--output-format", help="text or json.")] = "text",
) -> None:
    """Say what a codemod does, why, when it is safe, and what it refuses."""
    from ddpfix import explain, plugins

    if output_format not in ("text", "json"):
        raise CommandError(f"no output format is called {output_format!r}", todo="Use text or json.")
    sys.stdout.write(explain.one(plugins.lookup(rule), output_format))
