"""`ddpfix init`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from ddpfix.cli.app import app
from ddpfix.cli.ends import CLEAN, CommandError


@app.command()
def init(
    path: Annotated[Path, typer.Argument(help="The repository.")] = Path(),
    yes: Annotated[bool, typer.Option("--yes", help="Write all of them without a question.")] = False,
    gitlab: Annotated[bool, typer.Option("--gitlab", help="The job is one of GitLab, not of GitHub Actions.")] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON schema of the settings, and write nothing.")] = False,
) -> None:
    """Write settings, a hook before each commit and a job in CI for a repository, after asking for each."""
    import secrets

    from ddpfix import discovery, git
    from ddpfix.cli.showing import agreed, note
    from ddpfix.first_files import first_files
    from ddpfix.repository_state import state_folder

    if schema:
        from ddpfix import settings_schema

        sys.stdout.write(json.dumps(settings_schema.schema(), indent=1) + "\n")
        raise typer.Exit(CLEAN)
    if not path.exists():
        raise CommandError(f"{path} does not exist", todo="Give a repository.")
    root = discovery.find_root(path)
    try:
        offered = first_files(root, gitlab=gitlab or (root / ".gitlab-ci.yml").exists())
    except OSError as error:
        raise CommandError("the files of the repository cannot be read", error.strerror or str(error)) from error
    for file in offered:
        if file.left:
            note(f"{file.path}: {file.left}.")
    wanted = {f.path: f.text.encode() for f in offered if not f.left and (yes or agreed(f"Write {f.path}, {f.what}?"))}
    if not wanted:
        if all(file.left for file in offered):
            raise typer.Exit(CLEAN)
        raise CommandError("nothing is written", todo="Say --yes where nobody can answer.")
    for name in wanted:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
    git.write_in_place(root, wanted, run_id=secrets.token_hex(8), state_dir=state_folder(root))
    sys.stdout.write("".join(f"{name}\n" for name in wanted))
    note("`ddpfix undo` takes it back.")
    raise typer.Exit(CLEAN)
