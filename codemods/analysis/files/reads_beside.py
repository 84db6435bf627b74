"""Does every rank read, list or test a file beside the statements that write it?"""

from __future__ import annotations

import ast

from codemods.analysis.files.file_calls import Act, file_call
from codemods.analysis.files.file_paths import forms
from codemods.analysis.guards.before_group import group_comes_later
from codemods.analysis.names import dotted, last
from codemods.analysis.output.output_runs import Run
from codemods.analysis.ranks.rank_guards import ranks_at
from codemods.analysis.wrapped.wrapper_tests import arms_exclude
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.store.project import Project

_READS = frozenset(
    {"open", "load", "exists", "isfile", "is_file", "isdir", "is_dir", "listdir", "glob", "read_csv", "read_text", "imread",
     "read_json", "safe_load", "iterdir", "stat", "getsize", "getmtime"}
)  # fmt: skip
_ADDS = frozenset({"append", "extend", "insert", "update", "add", "setdefault"})


def reader_beside(
    project: Project, module: SourceModule, function: FunctionNode | ast.Module, run: Run, path: ast.expr
) -> str:
    """A call outside the run that reads, lists or tests the same path on every rank."""
    text = "".join(module.text_of(path).split())
    if isinstance(path, ast.Constant) and not isinstance(path.value, str):
        return ""
    inside = {id(n) for s in run.statements for n in walk(s)}
    tests = {id(n) for up in module.ancestors(run.first) if isinstance(up, ast.If) for n in walk(up.test)}
    owner = module.class_of(function) if not isinstance(function, ast.Module) else None
    home: ast.AST = owner if owner is not None and text.startswith("self.") else function
    for node in walk(home):
        if not isinstance(node, ast.Call) or id(node) in inside or id(node) in tests:
            continue
        if home is function and node.lineno > run.last.lineno and not _loops(module, run):
            continue
        if arms_exclude(module, node, run.first) and _ends_there(module, run):
            continue  # whoever reads it did not write it, and whoever wrote it is gone
        name = last(dotted(node.func)) or getattr(node.func, "attr", "")
        if name not in _READS or (name == "open" and _opens_to_write(node)):
            continue
        asked = [*node.args[:1], *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]
        if any("".join(module.text_of(a).split()) == text for a in asked) and not ranks_at(module, node, project=project).some:
            return f"{module.text_of(node)[:60]} reads or tests it in line {node.lineno}"
    return ""


def read_first(
    project: Project, module: SourceModule, function: FunctionNode | ast.Module, run: Run, path: ast.expr
) -> ast.Call | None:
    """The call above the run, in its function, by which every rank reads the same path before each of them writes it anew."""
    wanted = forms(module, path)
    calls = (n for n in walk_scope(function) if isinstance(n, ast.Call) and n.lineno < run.first.lineno)
    for call in calls if wanted else ():
        found = file_call(module, call)
        if found is None or found.act not in (Act.READS, Act.LOADS) or not wanted & forms(module, found.path):
            continue
        if not arms_exclude(module, call, run.first) and not ranks_at(module, call, project=project).some:
            return call
    return None


def for_readers(
    project: Project, module: SourceModule, function: FunctionNode | ast.Module, run: Run, paths: list[ast.expr]
) -> tuple[str, str]:
    """(advice, harm) where every rank reads the file beside the run; of those below, the barrier is part of the fix."""
    for path in paths:
        reader = reader_beside(project, module, function, run, path)
        if reader and (first := read_first(project, module, function, run, path)) is not None:
            if serves_the_write(module, function, first, run):
                advice = f"let rank 0 alone read it (line {first.lineno}), change it and write it: nobody else uses what is read"
                return advice, f"each rank reads it (line {first.lineno}) and writes it anew: entries are lost, or there twice"
            harm = f"a rank that comes later to line {first.lineno} reads what is written here"
            if later := group_comes_later(project, module, run.first):
                return f"there is no group for a barrier yet, for {later}: let rank 0 write it below that, behind a barrier", harm
            return "let all ranks read it first: a barrier right above this line, then rank 0 alone writes", harm
        if reader:
            if later := group_comes_later(project, module, run.first):
                return f"{reader} on every rank, and there is no group for a barrier yet: {later}", ""
            return f"{reader} on every rank: the guard needs a barrier behind it, or the others read too early", ""
    return "", ""


def serves_the_write(module: SourceModule, function: FunctionNode | ast.Module, read: ast.Call, run: Run) -> bool:
    """True where what is read goes into the run alone, by names of the function: no rank needs it for anything else."""
    if isinstance(function, ast.Module):
        return False
    made, seen = [module.statement_of(read)], set[str]()
    while made:
        statement = made.pop()
        if any(statement is s or s in module.ancestors(statement) for s in run.statements):
            continue
        if (names := _bound_by(statement)) is None:
            return False
        for name in set(names) - seen:
            seen.add(name)
            reads = (n for n in module.reads_of(name) if isinstance(n, ast.Name) and module.function_of(n) is function)
            made += [s for s in (module.statement_of(n) for n in reads) if s.lineno >= statement.lineno]
    return bool(seen)


def _bound_by(statement: ast.stmt) -> list[str] | None:
    """The names to which a statement hands what it reads: `x = …`, `with … as x:`, `x.append(…)`; None where it does more."""
    targets: list[ast.expr | None] = []
    if isinstance(statement, ast.Assign):
        targets = [*statement.targets]
    elif isinstance(statement, ast.With):
        targets = [item.optional_vars for item in statement.items]
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        called = statement.value.func
        targets = [called.value if isinstance(called, ast.Attribute) and called.attr in _ADDS else None]
    names = [t.id for t in targets if isinstance(t, ast.Name)]
    return names if targets and len(names) == len(targets) else None


def _ends_there(module: SourceModule, run: Run) -> bool:
    """True where the program, or the function, ends behind the run, in its block."""
    end = module.block_of(run.last)[-1]
    called = dotted(end.value.func) if isinstance(end, ast.Expr) and isinstance(end.value, ast.Call) else ""
    return isinstance(end, (ast.Return, ast.Raise)) or last(called) in ("exit", "_exit", "quit")


def _loops(module: SourceModule, run: Run) -> bool:
    return any(isinstance(up, (ast.For, ast.AsyncFor, ast.While)) for up in module.ancestors(run.first))


def _opens_to_write(call: ast.Call) -> bool:
    mode = call.args[1] if len(call.args) > 1 else next((k.value for k in call.keywords if k.arg == "mode"), None)
    return isinstance(mode, ast.Constant) and isinstance(mode.value, str) and bool(set(mode.value) & set("wax"))
