"""What rank 0 alone does to a path, and where every rank needs it next: further down, in a callee, or behind a caller's call."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.distribution import is_test_file
from codemods.analysis.files.asked_paths import only_makes_the_folder
from codemods.analysis.files.file_calls import Act, settles
from codemods.analysis.files.file_flow import (
    Step,
    holder_of,
    ranks_in_function,
    steps_in,
    waits_behind,
)
from codemods.analysis.files.file_paths import forms, names_in, outside
from codemods.analysis.guards.guarded_changes import Write, guarded_changes
from codemods.analysis.guards.leading_calls import leading_to
from codemods.analysis.positions import above, behind
from codemods.analysis.ranks.in_turn import in_turn
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at, split_of
from codemods.analysis.ranks.reach import called_by_framework
from codemods.analysis.ranks.uses import CallSite, calls_of, constructions
from codemods.files.left_alone import left
from codemods.files.source import FunctionNode, SourceModule, line_of, walk
from codemods.runtime.record import record, replace
from codemods.store.project import Project

CLIMBS = 3
_CALLERS = 8


@record
class Use:
    """Where every rank needs the path."""

    module: SourceModule
    call: ast.AST
    act: Act


@record
class Handover:
    """anchor: the statement behind which somebody should wait, in `module`; a guard, or a call whose function is guarded inside.

    ranks: who writes. ways: the calls that lead from the anchor's function to the one where the use is seen, innermost first.
    in_branch: the use stands in the other branch of the guard itself. through: the call that leads to the use, where it stands in
    another function.
    """

    module: SourceModule
    anchor: ast.stmt
    ranks: Ranks
    write: Write
    use: Use
    ways: tuple[CallSite, ...] = ()
    in_branch: bool = False
    through: tuple[SourceModule, ast.expr] | None = None

    @property
    def function(self) -> FunctionNode | None:
        return self.module.function_of(self.anchor)


def handovers(project: Project, module: SourceModule) -> Iterator[Handover]:
    """The first use behind each place where rank 0 alone changes a path."""
    for (anchor, whole), (ranks, writes) in guarded_changes(project, module).items():
        if whole is not None:
            yield from _behind_calls(project, module, whole, ranks, writes)
        elif found := _at_guard(project, module, anchor, ranks, writes):
            yield found


# What comes behind


def _at_guard(
    project: Project, module: SourceModule, anchor: ast.stmt, ranks: Ranks, writes: list[Write]
) -> Handover | None:
    if ranks_at(module, anchor, project=project).some and left(module, anchor, "not every rank comes to this test"):
        return None
    if in_turn(project, module, anchor) and left(module, anchor, "the ranks go through it one after the other"):
        return None
    if not (writes := not_made_above(project, module, anchor, writes)):
        return None
    inside = {id(n) for n in walk(anchor)}
    calls = [w.call for w in writes if id(w.call) in inside] or [anchor]
    last_line = max(line_of(c) for c in calls)
    for step in steps_in(project, module, [anchor]):
        line = getattr(step.call, "lineno", 0)
        if step.act is None and step.module is module and id(step.call) in inside and line > last_line:
            left(module, anchor, "rank 0 waits for the others behind the change", at=step.call)
            return None
    if isinstance(anchor, ast.If) and split_of(module, anchor.test, project) is not None:
        branch = _other_branch(anchor, inside, calls)
        outcome = _first(list(steps_in(project, module, branch)), list(writes), others=True)
        if outcome is _WAITED:
            return None
        if isinstance(outcome, tuple):
            return Handover(module, anchor, ranks, outcome[0], outcome[1], in_branch=True)
    if (found := _follow(project, module, anchor, writes, 0, ())) is None:
        what = ", ".join(w.written for w in writes if w.written) or "files"
        left(module, anchor, "rank 0 changes {} here, and no use of it on every rank is seen behind, before somebody waits", what)
        return None
    return replace(found, module=module, anchor=anchor, ranks=ranks)


def not_made_above(project: Project, module: SourceModule, anchor: ast.stmt, writes: list[Write]) -> list[Write]:
    """Without the folders that every rank has made for itself above, in the same function."""
    if not any(w.act is Act.MAKES for w in writes):
        return writes
    steps = steps_in(project, module, statements_above(module, anchor))
    made = [s.forms for s in steps if s.act is Act.MAKES and s.ranks is Ranks.ALL]
    return [w for w in writes if w.act is not Act.MAKES or not any(
        settles(w.act, one, Act.MAKES, other) for forms_of in made for other in forms_of for one in w.forms
    )]  # fmt: skip


def statements_above(module: SourceModule, anchor: ast.stmt) -> list[ast.stmt]:
    """The statements of the function that run before one, in the order in which they do."""
    found: list[ast.stmt] = []
    below: ast.AST = anchor
    while isinstance(below, ast.stmt) and not isinstance(below, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        found = [*above(module, below), *found]
        below = module.parent(below) or module.tree
    return found


def _other_branch(anchor: ast.If, inside: set[int], calls: list[ast.AST]) -> list[ast.AST]:
    wanted = {id(c) for c in calls}
    for block, other in ((anchor.body, anchor.orelse), (anchor.orelse, anchor.body)):
        if any(id(n) in wanted for s in block for n in walk(s)):
            return list(other)
    return []


class _Waited:
    """Somebody waits for the other ranks before anything is used."""


_WAITED = _Waited()


def _first(steps: list[Step], writes: list[Write], *, others: bool = False) -> tuple[Write, Use] | _Waited | None:
    """The first use of what was written; what every rank makes for itself is taken out of `writes`.

    others: the steps stand where the other ranks alone come.
    """
    for step in steps:
        if step.act is None:
            return _WAITED
        if step.act is Act.ASKS and only_makes_the_folder(step.module, step.call):
            continue
        if step.ranks is not Ranks.ALL and not (others and step.ranks is Ranks.UNKNOWN):
            continue
        for write in list(writes):
            pairs = [(made, used) for made in write.forms for used in step.forms]
            if any(settles(write.act, made, step.act, used) for made, used in pairs):
                writes.remove(write)
            elif any(write.meets(step.act, used) for used in step.forms):
                return write, Use(step.module, step.call, step.act)
    return None


def first_use(project: Project, module: SourceModule, anchor: ast.stmt, writes: list[Write]) -> Handover | None:
    """The first use on every rank of what a statement writes, if rank 0 alone made it, and nobody waits before."""
    return _follow(project, module, anchor, writes, 0, ())


def _follow(
    project: Project, module: SourceModule, anchor: ast.stmt, writes: list[Write], climbs: int, ways: tuple[CallSite, ...]
) -> Handover | None:
    """The first use behind a statement: in its function, then behind the calls of that function."""
    function = module.function_of(anchor)
    writes = list(writes)
    returned: ast.expr | None = None
    for statement in _behind(module, anchor, function):
        writes = _kept(writes, _of_loops(statement))
        outcome = _first(list(steps_in(project, module, [statement])), writes)
        if outcome is _WAITED:
            return None
        if isinstance(outcome, tuple):
            leading = leading_to(project, module, statement, outcome[1].call)
            return Handover(module, anchor, Ranks.ZERO, *outcome, ways, through=leading)
        if isinstance(statement, ast.Return):
            returned = statement.value
        writes = kept_behind(writes, statement)
        if not writes or isinstance(statement, ast.Raise):
            return None
    if function is None or climbs >= CLIMBS or waits_behind(project, module, function):
        return None
    return _in_callers(project, module, function, writes, climbs, ways, returned)


def _of_loops(statement: ast.stmt) -> set[str]:
    """The names that loops of a statement give their items: in the loop they are another path already."""
    loops = [n for n in walk(statement) if isinstance(n, (ast.For, ast.AsyncFor))]
    return {n.id for loop in loops for n in walk(loop.target) if isinstance(n, ast.Name)}


def kept_behind(writes: list[Write], statement: ast.stmt) -> list[Write]:
    """The writes whose path means the same on both sides of a statement."""
    return _kept(writes, {n.id for n in walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, (ast.Store, ast.Del))})


def _kept(writes: list[Write], stored: set[str]) -> list[Write]:
    """The writes whose path still means the same."""
    if not stored:
        return writes
    kept = [replace(w, forms=frozenset(f for f in w.forms if not names_in(f) & stored)) for w in writes]
    return [w for w in kept if w.forms]


def _behind(module: SourceModule, anchor: ast.stmt, function: FunctionNode | None) -> Iterator[ast.stmt]:
    """The statements that run behind one, up to the end of its function; a loop is left, not run again."""
    below = anchor
    while True:
        for statement in behind(module, below) if below is not function else ():
            if isinstance(statement, (ast.Continue, ast.Break)):
                break
            yield statement
            if isinstance(statement, (ast.Return, ast.Raise)):
                return
        owner = module.parent(below)
        if isinstance(owner, (ast.Try, ast.TryStar)):
            if any(s is below for s in owner.body):
                yield from owner.orelse
            if not any(s is below for s in owner.finalbody):
                yield from owner.finalbody
        while isinstance(owner, (ast.ExceptHandler, ast.match_case)):
            owner = module.parent(owner)
        if owner is None or owner is function or not isinstance(owner, ast.stmt) or isinstance(owner, ast.ClassDef):
            return
        below = owner


def _in_callers(
    project: Project, module: SourceModule, function: FunctionNode, writes: list[Write], climbs: int, ways: tuple[CallSite, ...],
    returned: ast.expr | None,
) -> Handover | None:  # fmt: skip
    for site in _callers(project, module, function):
        carried = _carried(project, module, function, site, writes, returned)
        if not carried:
            continue
        anchor = site.module.statement_of(site.call)
        if found := _follow(project, site.module, anchor, carried, climbs + 1, (*ways, site)):
            return found
    return None


def _callers(project: Project, module: SourceModule, function: FunctionNode) -> Iterator[CallSite]:
    """The calls of a function that every rank makes, and behind which its caller goes on."""
    if function.name == "__init__":
        owner = module.parent(function)
        made = constructions(project, module, owner) if isinstance(owner, ast.ClassDef) else None
        sites = made.calls if made is not None else ()
    elif called_by_framework(project, module, function) is not None:
        return
    else:
        sites = calls_of(project, module, function) or ()
    for site in sites[:_CALLERS]:
        if is_test_file(site.module.path) or in_turn(project, site.module, site.call):
            continue
        if ranks_in_function(project, site.module, site.call) is Ranks.ALL:
            yield site


def _carried(
    project: Project, module: SourceModule, function: FunctionNode, site: CallSite, writes: list[Write], returned: ast.expr | None
) -> list[Write]:
    """The writes in the words of the caller, the returned path under the name that it gets there."""
    holder = holder_of(site.module, site.call, FunctionSite(module, function))
    target = _target(site)
    given = forms(module, returned) if returned is not None else frozenset()
    carried = []
    for write in writes:
        said: set[str] = set()
        for form in write.forms:
            said |= outside(form, function, module, site.module, site.call, holder)
            if target:
                said |= {f"<N:{target}>{form[len(r):]}" for r in given if form == r or form.startswith(f"{r}/")}
        if said:
            carried.append(replace(write, forms=frozenset(said)))
    return carried


def _target(site: CallSite) -> str:
    parent = site.module.parent(site.call)
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name):
        return parent.targets[0].id
    return ""


def _behind_calls(
    project: Project, module: SourceModule, function: FunctionNode, ranks: Ranks, writes: list[Write]
) -> Iterator[Handover]:
    """Uses behind the calls of a function that does its work on rank 0 alone, unless it waits somewhere itself."""
    steps = (*steps_in(project, module, list(function.body)), *waits_behind(project, module, function))
    if any(step.act is None for step in steps):
        return
    for site in _callers(project, module, function):
        carried = _carried(project, module, function, site, writes, None)
        anchor = site.module.statement_of(site.call)
        if not carried or ranks_at(site.module, anchor, project=project).some:
            continue
        if found := _follow(project, site.module, anchor, carried, 1, ()):
            yield replace(found, module=site.module, anchor=anchor, ranks=ranks)
