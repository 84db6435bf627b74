"""`ddpfix rules` and `ddpfix explain`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from codemods.runtime.record import replace
from ddpfix.cli.app import app
from ddpfix.cli.ends import CommandError
from ddpfix.cli.options import Plugins
from ddpfix.cli.showing import note


@app.command()
def rules(
    output_format: Annotated[str, typer.Option("--output-format", help="text, json or markdown.")] = "text",
    allow_plugins: Plugins = False,
) -> None:
    """List every codemod, with the renames and plug-ins of the project that you stand in."""
    from pathlib import Path

    from ddpfix import catalog, discovery, explain, plugins, settings, trust

    if output_format not in explain.FORMATS:
        raise CommandError(f"no output format is called {output_format!r}", todo=f"Use {', '.join(explain.FORMATS)}.")
    root = discovery.find_root(Path())
    own = settings.load(root)
    found = plugins.chosen(replace(settings.Settings(), select=("all",), plugins=own.plugins, rewrites=own.rewrites,
                                   allow_plugins=allow_plugins or trust.allowed(own, root)[0]), root)
    known = {c.code for c in catalog.all_codemods()}
    for failure in found.failed:
        note(f"{failure.path}: {failure.error}")
    sys.stdout.write(explain.rules(output_format, [c for c in found.codemods if c.code not in known]))


@app.command("explain")
def explain_command(
    rule: Annotated[str, typer.Argument(help="A code, a name or a topic: DDP101, unsynced-metric, metrics.")],
    output_format: Annotated[str, typer.Option("--output-format", help="text or json.")] = "text",
) -> None:
    """Say what a codemod does, why, when it is safe, and what it refuses."""
    from ddpfix import explain, plugins

    if output_format not in ("text", "json"):
        raise CommandError(f"no output format is called {output_format!r}", todo="Use text or json.")
    if found := explain.topic(rule):
        sys.stdout.write(explain.several(found, output_format))
        return
    sys.stdout.write(explain.one(plugins.lookup(rule), output_format))
