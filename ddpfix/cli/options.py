"""What several commands are asked in the same words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Words = list[str] | None
Paths = Annotated[list[Path] | None, typer.Argument(help="Files or folders; the current folder if none is given.")]
Select = Annotated[Words, typer.Option("--select", help="Only these codes (or prefixes), names or topics.")]
Ignore = Annotated[Words, typer.Option("--ignore", help="Leave these codes, names or topics out.")]
Extend = Annotated[Words, typer.Option("--extend-select", help="These codes, names or topics too.")]
Unsafe = Annotated[bool, typer.Option("--unsafe-fixes/--no-unsafe-fixes", help="Fixes that rest on an assumption, too.")]
Launched = Annotated[
    bool, typer.Option("--launched", help="Take all programs as started on several processes, whatever the texts say.")
]
Exclude = Annotated[Words, typer.Option("--exclude", help="Paths (globs) to leave alone.")]
Config = Annotated[Path | None, typer.Option("--config", help="Take the settings from this file.", show_default=False)]
Isolated = Annotated[bool, typer.Option("--isolated", help="Read no settings file.")]
Force = Annotated[bool, typer.Option("--force-exclude", help="Leave out what is excluded even where it is named.")]
Plugins = Annotated[bool, typer.Option("--allow-plugins", help="Run the plug-ins that the repository's own settings name.")]
Formats = Annotated[bool, typer.Option("--allow-format-command", help="Run the format-command of the repository's settings.")]
Logs = Annotated[list[Path] | None, typer.Option("--log", help="What a run of this code printed, as evidence.")]
Seen = Annotated[list[Path] | None, typer.Option("--evidence", help="What `ddpfix probe` wrote, as evidence.")]

Decided = Annotated[Path | None, typer.Option("--decisions", help="Only what `ddpfix review` accepted in this file.")]
AllowStale = Annotated[bool, typer.Option("--allow-stale", help="What still stands of decisions on another commit.")]
WriteSuppressions = Annotated[bool, typer.Option("--write-suppressions", help="A comment where a finding was rejected.")]
