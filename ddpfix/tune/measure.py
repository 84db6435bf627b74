"""Run the user's command for a few steps in each configuration, each in a passing copy, and see how long a step takes."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from codemods.analysis.tuning.configurations import of_run
from codemods.analysis.tuning.job_runs import runs_in
from codemods.analysis.tuning.profiles import PROFILES, Tuning
from codemods.files.text_file import TextFile
from codemods.store.project import Project
from ddpfix import engine
from ddpfix.discovery import Tree
from ddpfix.prove.launchers import Training, understood
from ddpfix.prove.proof import Bounds, CannotProve
from ddpfix.prove.ranks import Ended, run_ranks
from ddpfix.settings import Settings
from ddpfix.summary import Configuration, Measured, TuningTable
from ddpfix.tune.plan import AS_IT_IS, plan, tuned_jobs

COMMAND_FILE = ".ddpfix-measured.sh"  # it is never written: the command as the codemods read one
WARM_UP = 2  # steps: the first builds DDP's buckets, the second reorders them


@dataclass(frozen=True, slots=True)
class Attempt:
    """One configuration to run. files: what differs from the work tree. words: the launcher's line, with its number."""

    name: str
    files: Mapping[str, bytes]
    words: tuple[str, ...]


def measured(
    tree: Tree,
    settings: Settings,
    tuning: Tuning,
    table: TuningTable,
    command: str,
    *,
    bounds: Bounds,
    gpu: bool = False,
    links: Sequence[str] = (),
    say: Callable[[str], None],
) -> TuningTable:
    """The table with a row for each configuration that was run. Raises CannotProve where the command cannot be run.

    bounds.nproc: the processes, 0 as the command says, two where it says none. The copies and all processes are gone on return.
    """
    training, world = _asked(command, bounds.nproc)
    read = engine.disk_reader(tree.root)
    base = _launched(training, world)
    rows = []
    done: set[tuple[object, ...]] = set()
    for attempt in _attempts(tree, settings, tuning, base, read):
        key = (tuple(sorted(attempt.files.items())), attempt.words)
        if key in done:
            continue
        done.add(key)
        ended = _run(tree, attempt, training, replace(bounds, nproc=world), gpu, links)
        found = _seen(ended)
        say(f"{attempt.name}: {found.ended}")
        rows.append(_row(tree, attempt, read, command, found))
    where = (
        f"on {world} of this machine's GPUs" if gpu else f"on {world} processes of this machine's CPU, which says little of GPUs"
    )
    return replace(table, rows=(*table.rows, *rows), command=command, steps=bounds.steps, where=where)


def _asked(command: str, nproc: int) -> tuple[Training, int]:
    try:
        words = shlex.split(command)
        training = understood(words)
    except ValueError as error:
        raise CannotProve(
            "the command is not understood", str(error), "Give it in quotes: 'python train.py --steps 5'"
        ) from error
    given = [w.replace("-", "_").strip("_") for w in words]
    for name in ("nproc_per_node", "num_processes"):
        for i, word in enumerate(given):
            key, _, value = word.partition("=")
            number = value if key == name else given[i + 1] if word == name and i + 1 < len(given) else ""
            if number.isdigit() and not nproc:
                return training, int(number)
    return training, nproc or 2


def _launched(training: Training, world: int) -> tuple[str, ...]:
    """The command as torchrun would start it, which the codemods read."""
    script = _script(training)
    if not script:
        why = "no script that Python runs stands in it"
        raise CannotProve("the command is not understood", why, "Give the command that the job file starts, not the job file.")
    return ("torchrun", f"--nproc_per_node={world}", *training.command[script:])


def _script(training: Training) -> int:
    """Where in the command of a rank Python's own words end."""
    return next((i for i, w in enumerate(training.command) if w.endswith(".py") or w == "-m"), 0)


def _attempts(
    tree: Tree, settings: Settings, tuning: Tuning, base: tuple[str, ...], read: Callable[[str], bytes | None]
) -> Iterator[Attempt]:
    yield Attempt(AS_IT_IS, {}, base)
    for profile in PROFILES:
        asked = replace(tuning, profile=profile, world_size=0)
        files = plan(tree, settings, asked).fixed.after
        yield Attempt(profile, files, _tuned(tree, asked, base, files, read))


def _tuned(
    tree: Tree, tuning: Tuning, words: tuple[str, ...], files: Mapping[str, bytes], read: Callable[[str], bytes | None]
) -> tuple[str, ...]:
    """The command with its own flags tuned as those of a job file are: they win over all that the files say."""
    text = shlex.join(words).encode() + b"\n"
    known = {**files, COMMAND_FILE: text}
    alone = replace(tree, files=(*tree.files, COMMAND_FILE), chosen=(COMMAND_FILE,), is_git=False)
    files, _ = tuned_jobs(alone, Settings(), tuning, lambda path: known.get(path) or read(path))
    return tuple(shlex.split(files.get(COMMAND_FILE, text).decode()))


def _run(tree: Tree, attempt: Attempt, training: Training, bounds: Bounds, gpu: bool, links: Sequence[str]) -> Ended:
    from ddpfix import git

    python = training.command[: _script(training)]
    env = {**os.environ, **dict(training.settings)}
    below = Path.cwd().resolve()
    inside = below.relative_to(tree.root.resolve()) if below.is_relative_to(tree.root.resolve()) else Path()
    if shutil.which(python[0], path=env.get("PATH")) is None:
        raise CannotProve(f"{python[0]} cannot be run", "it is not there", "Give the command as you give it in this folder.")
    with git.passing_copy(tree.root, is_git=tree.is_git, links=links) as folder:
        git.write_files(folder, attempt.files)
        return run_ranks(
            (*python, *attempt.words[2:]), world_size=bounds.nproc, cwd=folder / inside, env=env, timeout=bounds.timeout,
            steps=bounds.steps, swap=not gpu, memory_limit=bounds.most_bytes(), gpu=gpu,
        )  # fmt: skip


def _seen(ended: Ended) -> Measured:
    """The mean over the steps after the warm-up, of the slowest rank."""
    paces = [t.pace for t in ended.traces if len(t.pace) > WARM_UP + 1]
    if ended.outcome != "completes" or not paces or len(paces) < len(ended.traces):
        return Measured(None, _why(ended))
    seconds, collectives = [], []
    for pace in paces:
        (start, before), (end, after) = pace[WARM_UP - 1], pace[-1]
        seconds.append((end - start) / (len(pace) - WARM_UP))
        collectives.append((after - before) / (len(pace) - WARM_UP))
    return Measured(max(seconds), f"{max(seconds) * 1000:.0f} ms a step", max(collectives))


def _why(ended: Ended) -> str:
    said = next((r.stderr.strip().splitlines()[-1] for r in ended.ranks if r.status and r.stderr.strip()), "")
    if ended.outcome == "memory" or "out of memory" in said:
        return "does not fit into memory: halve the batch, double the accumulation"
    return f"{ended.outcome}: {said[:200]}" if said else f"{ended.outcome} before enough steps were seen"


def _row(tree: Tree, attempt: Attempt, read: Callable[[str], bytes | None], command: str, found: Measured) -> Configuration:
    known = {**attempt.files, COMMAND_FILE: shlex.join(attempt.words).encode() + b"\n"}
    project = Project((*tree.files, COMMAND_FILE), lambda p: known.get(p) or read(p))
    file = project.module(COMMAND_FILE)
    runs = runs_in(project, file) if isinstance(file, TextFile) else ()
    set_to = of_run(runs[0]) if runs else None
    job = command if len(command) <= 48 else command[:45] + "..."
    if set_to is None:
        return Configuration(job, attempt.name, "?", "?", "?", found)
    return Configuration(job, attempt.name, set_to.load, set_to.logging, set_to.workers, found)
