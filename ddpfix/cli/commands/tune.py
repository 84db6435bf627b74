"""`ddpfix tune`."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Annotated

import typer

from ddpfix.cli.app import app
from ddpfix.cli.asking import asked
from ddpfix.cli.ends import CLEAN, CommandError
from ddpfix.cli.options import Exclude, Ignore, Paths, Select, Words
from ddpfix.cli.showing import command_line, note, show, show_patch


@app.command()
def tune(
    paths: Paths = None,
    profile: Annotated[str, typer.Option("--profile", help="standard, or fast: a second job file beside each.")] = "standard",
    world_size: Annotated[int, typer.Option("--world-size", min=0, help="Processes it will run on; 0: as its job says.")] = 0,
    cores: Annotated[int, typer.Option("--cores", min=0, help="Of the machine that trains, for the workers; 0: not known.")] = 0,
    do_apply: Annotated[bool, typer.Option("--apply", help="Commit it on a branch, with a summary.")] = False,
    branch: Annotated[str, typer.Option("--branch", help="The branch to commit on.")] = "ddpfix/tuning",
    no_switch: Annotated[bool, typer.Option("--no-switch", help="Make the branch, stay where you are.")] = False,
    measure: Annotated[str, typer.Option("--measure", help="Run this command in each configuration.", show_default=False)] = "",
    steps: Annotated[int, typer.Option("--steps", min=4, help="Optimizer steps to measure.")] = 12,
    timeout: Annotated[float, typer.Option("--timeout", min=1, help="Seconds for each measured run.")] = 600,
    memory: Annotated[float, typer.Option("--memory", min=0, help="GiB for all processes; 0: 4/5 of the machine's.")] = 0,
    gpu: Annotated[bool, typer.Option("--gpu", help="Measure on this machine's GPUs instead of its CPU.")] = False,
    link: Annotated[Words, typer.Option("--link", help="A path that git ignores and the program needs.")] = None,
    select: Select = None,
    ignore: Ignore = None,
    exclude: Exclude = None,
) -> None:
    """Make training jobs faster with their effective batch kept: show what would change, measure it, or commit it."""
    from codemods.analysis.tuning.profiles import PROFILES, Tuning
    from ddpfix import patches, run
    from ddpfix.summary.tuning_section import as_text
    from ddpfix.tune.plan import plan

    if profile not in PROFILES:
        raise CommandError(f"no profile is called {profile!r}", todo=f"Use {' or '.join(PROFILES)}.")
    projects = asked(paths, select, ignore, None, False, exclude)
    if len(projects) > 1:
        raise CommandError("these paths lie in several repositories", todo="Tune one at a time.")
    tree, settings = projects[0]
    tuning = Tuning(profile, world_size, cores or (measure and os.cpu_count()) or 0)
    made = plan(tree, settings, tuning)
    table = made.table
    if measure:
        from ddpfix.prove.proof import Bounds
        from ddpfix.tune.measure import measured

        bounds = Bounds(world_size, steps, timeout, memory)
        table = measured(tree, settings, tuning, table, measure, bounds=bounds, gpu=gpu, links=link or (), say=note)
    show(as_text(table))
    if not do_apply:
        data = patches.plain(made.fixed, patches.prefix_from(tree.root, tree.root))
        show_patch(data + b"".join(f"# new file: {p}\n".encode() for p in made.added), "auto")
        raise typer.Exit(CLEAN)
    options = run.Options(unsafe=True, branch=branch, switch=not no_switch, added=made.added, tuning=table)
    applied = run.apply(tree, replace(settings, unsafe_fixes=True), made.codemods, options, command=command_line())
    show("\n" + applied.screen)
    raise typer.Exit(CLEAN)
