"""A folder that every rank names after its own clock, that rank 0 alone makes, and that the other ranks look for, too."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import Binding, bindings_in
from codemods.analysis.files.file_calls import CHANGES, file_call
from codemods.analysis.files.given_fields import is_field, last_given
from codemods.analysis.files.unasked_reads import read_unasked
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.files.source import SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_WRITERS = frozenset({"SummaryWriter", "FileWriter"})


@record
class Stamped:
    """value: what every rank reads its clock in. made: the line where rank 0 makes the folder. used: the line where every rank
    writes there, or reads what rank 0 wrote."""

    value: ast.expr
    name: str
    made: int
    used: int
    reads: bool = False

    @property
    def message(self) -> str:
        does, end = ("looks", ", which is not there") if self.reads else ("writes", "")
        return (
            f"every rank names {self.name} after its own clock, and rank 0 alone makes the folder (line {self.made}): a "
            f"rank that reads another second {does} in line {self.used} into a folder of its own{end}"
        )


def stamped_apart(project: Project, module: SourceModule, call: ast.Call, path: ast.expr) -> Iterator[Stamped]:
    """The names of the folder that a call on rank 0 makes, where every rank makes up the name and goes on with the folder."""
    if ranks_at(module, call, project=project) not in (Ranks.ZERO, Ranks.LOCAL_ZERO):
        return
    function = module.function_of(call)
    if function is not None and "broadcast" in module.text_of(function):
        return
    for name in _names(module, call, path):
        bound = _bound_once(project, module, call, name)
        if bound is None or bound.value is None or not (used := _written_by_all(project, module, bound, name.id)):
            continue
        yield Stamped(bound.value, name.id, call.lineno, used)
    if is_field(path):
        yield from _in_a_field(project, module, call, path)


def _in_a_field(project: Project, module: SourceModule, call: ast.Call, path: ast.expr) -> Iterator[Stamped]:
    """A field that every rank gives the name, also in one arm of an `if`: `args.out = join(args.out, strftime(…))`."""
    name = dotted(path)
    given = last_given(module, call, name)
    if given is None or ranks_reaching(project, module, given.statement).some:
        return
    behind = [s for s in module.block_of(given.outer) if s.lineno > given.outer.lineno]
    for use in (n for s in behind for n in walk(s) if isinstance(n, ast.Call)):
        taken = _written(module, use) or read_unasked(module, use)
        if taken is None or name not in {dotted(n) for n in (taken, *walk(taken)) if isinstance(n, ast.Attribute)}:
            continue
        if use.lineno > call.lineno and last_given(module, use, name) == given and not ranks_reaching(project, module, use).some:
            yield Stamped(given.value, name, call.lineno, use.lineno, reads=_written(module, use) is None)
            return


def _names(module: SourceModule, call: ast.Call, path: ast.expr) -> Iterator[ast.Name]:
    """The path where it is a name, else the name that is put into it above: `args["out"] = out`."""
    if isinstance(path, ast.Name):
        yield path
        return
    text, function = module.text_of(path), module.function_of(call)
    for node in module.nodes(ast.Assign):
        if isinstance(node.value, ast.Name) and node.lineno < call.lineno and module.function_of(node) is function:
            if any(module.text_of(t) == text for t in node.targets):
                yield node.value


def _bound_once(project: Project, module: SourceModule, call: ast.Call, name: ast.Name) -> Binding | None:
    """The last value of the name above the call, in a block round it, given on every rank."""
    bound = [b for b in bindings_in(module, module.function_of(call), name.id) if b.value is not None]
    above = [b for b in bound if module.statement_of(b.node).lineno < call.lineno]
    nearest = max(above, key=lambda b: module.statement_of(b.node).lineno, default=None)
    if nearest is None or nearest.parameter or ranks_reaching(project, module, nearest.node).some:
        return None
    block = module.block_of(module.statement_of(nearest.node))
    return nearest if any(s is up for up in module.ancestors(call) for s in block) else None


def _written_by_all(project: Project, module: SourceModule, bound: Binding, name: str) -> int:
    """The line, in the block of the binding, where every rank writes into what the name leads to; 0 for none."""
    first = module.statement_of(bound.node)
    behind = (s for s in module.block_of(first) if s.lineno > first.lineno)
    for call in (n for s in behind for n in walk(s) if isinstance(n, ast.Call)):
        taken = _written(module, call)
        if taken is not None and any(isinstance(n, ast.Name) and n.id == name for n in walk(taken)):
            if not ranks_reaching(project, module, call).some:
                return call.lineno
    return 0


def _written(module: SourceModule, call: ast.Call) -> ast.expr | None:
    if last(dotted(call.func)) in _WRITERS:
        return next(iter(call.args), None) or next((k.value for k in call.keywords if k.arg in ("log_dir", "logdir")), None)
    found = file_call(module, call)
    return found.path if found is not None and found.act in CHANGES else None
