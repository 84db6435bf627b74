"""What a run of output does to files: which it writes or takes away, who else reads them, and how sure a guard round it is."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.files.every_rank import is_for_some
from codemods.analysis.files.file_calls import CHANGES, Act, file_call
from codemods.analysis.files.file_flow import brought_out, callee
from codemods.analysis.files.file_paths import forms
from codemods.analysis.files.files_of_each_rank import is_given_own, is_of_a_rank
from codemods.analysis.files.filled_on_demand import is_asked_for
from codemods.analysis.files.never_true import is_never_asked_for
from codemods.analysis.files.paths_in_statements import opened_for
from codemods.analysis.files.source_copies import copies_source
from codemods.analysis.files.written_saves import is_in_memory
from codemods.analysis.guards.file_handover import first_use
from codemods.analysis.guards.guarded_changes import Write
from codemods.analysis.hooks import HF_CALLBACK_HOOKS, OBSERVERS
from codemods.analysis.output.effect_kinds import FOLDERS, REMOVALS
from codemods.analysis.output.effects import Effect, Kind, effects_of
from codemods.analysis.output.file_readers import reader_on_every_rank, suffixes
from codemods.analysis.output.observers import covered
from codemods.analysis.output.output_runs import Run
from codemods.analysis.output.shared_values import is_shown_same, not_shown_same
from codemods.analysis.output.taken_away import may_be_gone
from codemods.api.findings import Applicability
from codemods.files.source import FunctionNode, SourceModule, line_of, walk, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

HOOKS = OBSERVERS | HF_CALLBACK_HOOKS
NOT_READ = "assumes that the other ranks do not read it:"
_EXISTS = lazy(r"\b(?:exists|isdir|isfile|is_dir|is_file)\(")
_WRITES = frozenset({"write", "writerow", "writelines"})
TAKES_AWAY = frozenset({"remove", "unlink", "rmtree", "rmdir", "rename", "replace", "move"})


def used_behind(project: Project, module: SourceModule, function: FunctionNode) -> int | None:
    """The line in which every rank uses what a hook has written."""
    calls = [c for c in walk_scope(function) if isinstance(c, ast.Call)]
    for call, found in ((c, f) for c in calls if (f := file_call(module, c)) is not None and f.act in CHANGES):
        write = Write(found.act, forms(module, found.path), module, call, "")
        if (used := first_use(project, module, module.statement_of(call), [write])) is not None:
            return line_of(used.use.call)
    return None


def trimmed(project: Project, module: SourceModule, run: Run) -> Run:
    """The run without the lines that go to a logger at its ends: each rank may keep a log of its own."""
    puts_out = (effects_of(project, module, [s]).output for s in run.statements)
    writes = [any(e.kind in (Kind.FILE, Kind.PRINT) for e in output) for output in puts_out]
    if not any(writes) or (writes[0] and writes[-1]):
        return run
    first, end = writes.index(True), len(writes) - writes[::-1].index(True)
    bound = {n.id for s in run.statements[first:end] for n in walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if any(isinstance(n, ast.Name) and n.id in bound for s in run.statements[end:] for n in walk(s)):
        end = len(writes)
    kept = run.statements[first:end]
    return Run(kept, effects_of(project, module, kept))


def files_of(project: Project, module: SourceModule, output: tuple[Effect, ...]) -> list[Effect]:
    """What is written, but for folders, by what names the file first."""
    found = [e for e in output if e.kind is Kind.FILE and not covered(project, module, e) and not may_be_gone(module, e)]
    found = [e for e in found if e.called not in FOLDERS and e.called != "flush" and not _for_some(project, e)]
    return sorted(found, key=lambda e: e.called in _WRITES)


def _for_some(project: Project, effect: Effect) -> bool:
    """True for what a test in its own function keeps from most ranks, a handle that is None there, and for a rank's own path.

    Also for a buffer in memory, and a copy of the program's source, which nobody misses and no rank reads.
    """
    home = project.module(effect.path)
    calls = [c for c in home.nodes(ast.Call) if c.lineno == effect.line] if home is not None else []
    if home is None or not calls:
        return False
    if is_for_some(project, home, calls[0]) or is_never_asked_for(project, home, calls[0]):
        return True
    if any(copies_source(home, c) for c in calls):
        return True
    paths = [f.path for c in calls for opened in (c, *opened_for(home, c)) if (f := file_call(home, opened)) is not None]
    if paths and all(is_in_memory(home, p) for p in paths):
        return True  # `fig.savefig(buffer)`
    return any(is_of_a_rank(project, home, p) or is_given_own(project, home, p) for p in paths)


def is_made_sure_of(project: Project, effect: Effect) -> bool:
    """True for a file that is written where it is not there yet: a cache, of which DDP307 tells."""
    home = project.module(effect.path)
    calls = [c for c in home.nodes(ast.Call) if c.lineno == effect.line] if home is not None else []
    return any(home is not None and (f := file_call(home, c)) is not None and is_asked_for(home, c, f.path) for c in calls)


def is_a_run_for_nobody(project: Project, module: SourceModule, run: Run) -> bool:
    """True where each file of the run stands under a test that no caller makes true."""
    calls = (n for s in run.statements for n in walk(s) if isinstance(n, ast.Call))
    changes = [c for c in calls if (f := file_call(module, c)) is not None and f.act in CHANGES]
    return bool(changes) and all(is_never_asked_for(project, module, c) for c in changes)


def writes_of(project: Project, module: SourceModule, run: Run) -> tuple[Write, ...]:
    """What the run does to paths, itself or in functions that it calls, for whoever uses them behind it."""
    calls = [n for s in run.statements for n in walk(s) if isinstance(n, ast.Call)]
    return tuple(write for c in calls for write in _writes_of_call(project, module, c))


def _writes_of_call(project: Project, module: SourceModule, call: ast.Call) -> Iterator[Write]:
    if (found := file_call(module, call)) is not None:
        if found.act in CHANGES:
            yield Write(found.act, forms(module, found.path), module, call, module.text_of(found.path), found.path)
    elif (site := callee(project, module, call)) is not None:
        for step in brought_out(project, site, module, call, None):
            if step.act in (Act.WRITES, Act.FILLS):
                yield Write(step.act, step.forms, module, call, module.text_of(call))


def below_tests(module: SourceModule, run: Run) -> ast.stmt:
    """The statement behind which a barrier has to stand: what asks whether the path is there may differ between the ranks."""
    end: ast.stmt = run.last
    while isinstance(up := module.parent(end), ast.If) and not up.orelse and _EXISTS.search(module.text_of(up.test)):
        end = up
    return end


def level_unless_read(
    module: SourceModule, project: Project, function: FunctionNode | ast.Module, paths: list[ast.expr]
) -> tuple[Applicability, str]:
    written = set().union(*(suffixes(module, p) for p in paths)) if paths else set()
    reader = reader_on_every_rank(project, module, function, written) if written else ""
    if reader:
        return Applicability.UNSAFE, f"{NOT_READ} {reader} reads such a file on every rank"
    return Applicability.SAFE, ""


def decides_a_name(module: SourceModule, run: Run) -> bool:
    """True where names are given beside the run, in its block: who finds the file goes on in another way."""
    beside = (s for s in module.block_of(run.first) if s not in run.statements)
    return any(isinstance(s, (ast.Assign, ast.AugAssign)) for s in beside) and isinstance(module.parent(run.first), ast.If)


def only_takes_away(files: Sequence[Effect]) -> bool:
    return all(e.called in REMOVALS for e in files)


def level_of(
    project: Project, module: SourceModule, function: FunctionNode | ast.Module, run: Run, *, in_class: bool
) -> tuple[Applicability, str]:
    if in_class and not isinstance(function, ast.Module) and function.name in HOOKS:
        return Applicability.SAFE, ""
    unknown = not_shown_same(project, module, run.statements)
    if not unknown or is_shown_same(project, module, run.statements):
        return Applicability.SAFE, ""
    what = ", ".join(unknown[:3])
    return Applicability.UNSAFE, f"assumes that {what} is the same on every rank, or that rank 0's own is all that is wanted"


def takes_away(
    module: SourceModule, function: FunctionNode | ast.Module, run: Run, paths: list[ast.expr], *, in_class: bool
) -> str:
    """The call of the run that takes a file away while others may still be at it; "" without one.

    In a hook the ranks come together; there only a path that is used again below is one that they may miss.
    """
    gone = next((e.text for e in run.effects.output if e.kind is Kind.FILE and e.called in TAKES_AWAY), "")
    if not gone or not in_class or isinstance(function, ast.Module) or function.name not in HOOKS:
        return gone
    end = run.last.end_lineno or run.last.lineno
    named = {module.text_of(p) for p in paths}
    below = (n for n in walk(function) if isinstance(n, (ast.Name, ast.Attribute, ast.Call)) and n.lineno > end)
    return gone if any(module.text_of(n) in named for n in below) else ""
