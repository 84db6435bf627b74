"""Run the user's command before and after the fixes, each in a passing copy of their project."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from codemods.api.codemod import DdpCodemod
from ddpfix import engine
from ddpfix.discovery import Tree, discover
from ddpfix.prove.compare import lines_lost
from ddpfix.prove.launchers import Training, as_installed, understood
from ddpfix.prove.on_cpu import obstacle
from ddpfix.prove.ranks import Ended, run_ranks
from ddpfix.prove.seen import Seen, Wrong, look
from ddpfix.run import Options, acceptance
from ddpfix.settings import Settings
from ddpfix.summary import digest

GIB = 1024**3


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far a run may go. memory: GiB that all ranks together may hold, 0 for four fifths of what the machine has."""

    nproc: int = 2
    steps: int = 20
    timeout: float = 600
    memory: float = 0

    def most_bytes(self) -> int:
        have = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return int(self.memory * GIB) or have * 4 // 5


@dataclass(frozen=True, slots=True)
class Proof:
    """What was seen. base: the commit, "" outside git or before the first one. digest: of the fixed files' bytes.

    after: None where there is nothing to fix. lost: lines that no rank prints any more. impossible: where and why the program
    cannot run, "" where it can.
    """

    command: tuple[str, ...]
    training: Training
    bounds: Bounds
    base: str
    uncommitted: bool
    codes: tuple[str, ...]
    digest: str
    before: Seen
    after: Seen | None
    impossible: str = ""
    output: str = ""
    lost: tuple[str, ...] = ()

    @property
    def right(self) -> bool:
        """True where the last run that was made showed nothing wrong, and the fixes took nothing away."""
        return not self.impossible and not self.lost and (self.after or self.before).right

    @property
    def introduced(self) -> tuple[Wrong, ...]:
        """What is wrong after the fixes and was not before, where the program ended well before them."""
        if self.after is None or self.before.outcome != "completes":
            return ()
        had = {wrong.what for wrong in self.before.wrong}
        lost = (Wrong(f"no rank prints {line!r} any more") for line in self.lost)
        return (*(wrong for wrong in self.after.wrong if wrong.what not in had), *lost)


class CannotProve(Exception):
    """A command that cannot be run: what, why, what to do."""

    def __init__(self, what: str, why: str, todo: str) -> None:
        self.what, self.why, self.todo = what, why, todo
        super().__init__(f"{what}: {why}")


def prove(
    tree: Tree,
    settings: Settings,
    codemods: Sequence[DdpCodemod],
    command: Sequence[str],
    *,
    cwd: Path,
    bounds: Bounds,
    links: Sequence[str] = (),
    say: Callable[[str], None] = lambda _: None,
) -> Proof:
    """Run `command`, given in the folder `cwd` of the project, before and after. Raises CannotProve, GitRefusal.

    say: is told of each run before it begins.

    Nothing of the user's is written; the copies and every process are gone on return, and after an interruption.
    """
    try:
        training = understood(command)
    except ValueError as error:
        raise CannotProve("the command is not understood", str(error), "Give it after `--`: -- python train.py") from error
    training = as_installed(training, {**os.environ, **dict(training.settings)})
    below = cwd.resolve().relative_to(tree.root.resolve())
    base, uncommitted = _state(tree)
    with _copy(tree, links) as folder:
        before = _run(training, folder / below, bounds, lambda: say(f"run 1 of 2, as it is: {_bound(bounds)}"))
        seen = look(before, folder / below)
        impossible = obstacle(before, folder / below)
    if spawns := any(t.spawns and t.asked == bounds.nproc for t in before.traces):
        say("the program starts its ranks itself: again, with these")
        with _copy(tree, links) as folder:
            before = _run(training, folder / below, bounds, spawns=True)
            seen = look(before, folder / below)
            impossible = obstacle(before, folder / below)
    why_not = impossible.text if impossible else ""
    proof = Proof(tuple(command), training, bounds, base, uncommitted, (), "", seen, None, why_not, _tail(before))
    if impossible:
        return proof
    with _copy(tree, links) as folder:
        codes, files = _fix(folder, settings, codemods)
        if not files:
            return proof
        say(f"run 2 of 2, after {', '.join(codes)}: {_bound(bounds)}; the first took {before.seconds:.0f} s and {seen.ended}")
        after = _run(training, folder / below, bounds, spawns=spawns)
        if (why := obstacle(after, folder / below)) and why.of_cpu:  # no fix can make the CPU do it
            return replace(proof, codes=codes, impossible=f"after the fixes {why.text}", output=_tail(before) + _tail(after))
        return Proof(
            tuple(command), training, bounds, base, uncommitted, codes, digest(files), seen, look(after, folder / below),
            output=_tail(before) + _tail(after), lost=lines_lost(before, after),
        )  # fmt: skip


def _bound(bounds: Bounds) -> str:
    steps = f"{bounds.steps} optimizer steps, " if bounds.steps else ""
    return f"{bounds.nproc} processes, {steps}at most {bounds.timeout:.0f} s"


def _copy(tree: Tree, links: Sequence[str]) -> AbstractContextManager[Path]:
    from ddpfix import git

    return git.passing_copy(tree.root, is_git=tree.is_git, links=links)


def _fix(folder: Path, settings: Settings, codemods: Sequence[DdpCodemod]) -> tuple[tuple[str, ...], Mapping[str, bytes]]:
    """Fix a copy as `apply` fixes the project; (the codes that fixed something, the new files)."""
    from ddpfix import git

    (tree,) = discover([folder], settings.exclude, copies=settings.check_copies)
    fixed = engine.fix(tree, settings, codemods, acceptance(Options(unsafe=settings.unsafe_fixes)))
    git.write_files(folder, fixed.after)
    return tuple(sorted({f.code for f in fixed.fixed})), fixed.after


def _run(
    training: Training, cwd: Path, bounds: Bounds, begun: Callable[[], None] = lambda: None, *, spawns: bool = False
) -> Ended:
    env = {**os.environ, **dict(training.settings)}
    program = training.command[0]
    if shutil.which(program, path=env.get("PATH")) is None and not (cwd / program).is_file():
        raise CannotProve(f"{program} cannot be run", "it is not there", "Give the command as you give it in this folder.")
    begun()
    return run_ranks(
        training.command, world_size=bounds.nproc, cwd=cwd, env=env, timeout=bounds.timeout, steps=bounds.steps, swap=True,
        memory_limit=bounds.most_bytes(), spawns=spawns,
    )  # fmt: skip


def _state(tree: Tree) -> tuple[str, bool]:
    """(the commit of HEAD, whether the work tree differs from it)."""
    from ddpfix import git

    if not tree.is_git:
        return "", False
    state = git.snapshot(tree.root)
    return state.base, bool(state.dirty)


def _tail(ended: Ended) -> str:
    return replace(ended, lines=ended.lines[-40:]).marked()
