"""What a `compute_metrics` that is called puts out on every rank, and how a guard goes round that alone.

Each rank calls it with the gathered predictions of all ranks (transformers 5.23, `evaluation_loop`), so what it writes and
prints is the same everywhere; what it returns every rank needs, or the choice of the best model differs.
"""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted
from codemods.analysis.output.effects import Kind, names_rank
from codemods.analysis.output.guard_edits import kept_to_zero
from codemods.analysis.output.guard_spelling import Spelling, guard_for, has_guard
from codemods.analysis.output.opened_files import emptied_above
from codemods.analysis.output.output_runs import Run, makes_folder, output_runs
from codemods.analysis.ranks.rank_guards import ranks_at
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.api.findings import Edit
from codemods.files.source import FunctionNode, SourceModule, called_name, walk, walk_scope
from codemods.rewriting.imports import plan_plain
from codemods.runtime.record import record
from codemods.store.project import Project

_WRITERS = frozenset({"open", "dump", "save", "savetxt", "to_csv", "to_json", "write_text", "write_bytes", "savefig"})
_NO_READERS = ("os.path.join", "print", "str")


@record
class Guarding:
    """Guards for what a function puts out. assumes: what they rest on; why_not: why they cannot be made, then without edits."""

    first: ast.stmt
    edits: tuple[Edit, ...]
    assumes: str = ""
    why_not: str = ""


def guarding(project: Project, module: SourceModule, function: FunctionNode) -> Guarding | None:
    """The guards of every statement of a live function that only writes or prints; None where there is no such statement."""
    runs = [
        run for run in output_runs(project, module, function, lambda s: _is_for_all(module, s))
        if run.makes(Kind.FILE, Kind.PRINT, Kind.TRACKER) and not ranks_reaching(project, module, run.first).some
    ]  # fmt: skip
    if not runs:
        return None
    edits: list[Edit] = []
    assumes: list[str] = []
    for run in runs:
        if opened := emptied_above(module, run.statements):
            return Guarding(run.first, (), "", f"every rank opens that file, and empties it, in line {opened}")
        if reader := _reader(module, function, run):
            return Guarding(run.first, (), "", f"{reader}: the guard needs a barrier behind it, or the others read too early")
        spelled = _spelling(project, module, function, run)
        if spelled is None:
            return Guarding(run.first, (), "", "no test for rank 0 is sure to work here")
        edits += kept_to_zero(project, module, run, spelled).edits
        assumes.append(spelled.assumes)
    return Guarding(runs[0].first, tuple(dict.fromkeys(edits)), "; ".join(dict.fromkeys(a for a in assumes if a)))


def unguarded_calls(module: SourceModule, function: FunctionNode) -> list[ast.Call]:
    """The calls of the function itself that write or print on every rank."""
    calls = [n for n in walk_scope(function) if isinstance(n, ast.Call) and (writes(module, n) or dotted(n.func) == "print")]
    return [c for c in calls if not ranks_at(module, c).some]


def writes(module: SourceModule, call: ast.Call) -> bool:
    """True for a call that writes a file or sends a record."""
    name = called_name(call)
    if name == "open":
        mode = call.args[1] if len(call.args) > 1 else next((k.value for k in call.keywords if k.arg == "mode"), None)
        return isinstance(mode, ast.Constant) and isinstance(mode.value, str) and bool(set(mode.value) & set("wax+"))
    return name in _WRITERS or dotted(call.func) == "wandb.log"


def _is_for_all(module: SourceModule, statement: ast.stmt) -> bool:
    return not names_rank(module.text_of(statement)) and not makes_folder(module, statement)


def _spelling(project: Project, module: SourceModule, function: FunctionNode, run: Run) -> Spelling | None:
    if (found := guard_for(project, module, run.first, lines=not run.makes(Kind.FILE, Kind.TRACKER))) is not None:
        return found
    if has_guard(project, module, function):
        return None
    planned = plan_plain(module, "os")
    if planned is None:
        return None
    test = f'int({planned.name}.environ.get("RANK", 0)) == 0'
    return Spelling(test, planned.edits, "assumes that a launcher sets RANK for each process, as torchrun does")


def _reader(module: SourceModule, function: FunctionNode, run: Run) -> str:
    """Where the function names a path again that the run writes to: it may read what the others have not yet written."""
    inside = {id(n) for s in run.statements for n in walk(s)}
    paths = {
        module.text_of(n.args[0])
        for s in run.statements for n in walk(s)
        if isinstance(n, ast.Call) and n.args and writes(module, n) and isinstance(n.args[0], (ast.Constant, ast.Name))
    }  # fmt: skip
    for node in walk(function):
        if isinstance(node, ast.Call) and id(node) not in inside and not writes(module, node):
            if any(module.text_of(a) in paths for a in node.args[:1]) and dotted(node.func) not in _NO_READERS:
                return f"{module.text_of(node)} names the file again in line {node.lineno}"
    return ""
