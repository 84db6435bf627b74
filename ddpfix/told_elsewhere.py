"""Findings of other lines that may be the fault which a reader sees in this one: in its function, and where that is called."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.ranks.gate_names import gate_names
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Finding
from codemods.engine.find import find_in
from codemods.files.left_alone import Left, hearing
from codemods.files.nodes import called_name
from codemods.files.source import FunctionNode, SourceModule
from codemods.files.text_file import TextFile
from codemods.store.project import Project
from ddpfix.gate import Gate

_MOST_JUDGED = 12  # files that a rule is followed to which asks nothing of this one
_MOST_FILES = 8  # other files whose findings are looked at: each is a check of one
LIGHT = frozenset({"noise", "risk"})  # a reader who asks has a graver fault in mind
_MOST_ROUNDS = 2  # callers of callers


def function_round(module: SourceModule, line: int) -> FunctionNode | None:
    """The innermost function that holds the line; a class or a script's top level is none."""
    if isinstance(module, TextFile):
        return None
    defined: list[FunctionNode] = [*module.nodes(ast.FunctionDef), *module.nodes(ast.AsyncFunctionDef)]
    holding = [f for f in defined if f.lineno <= line <= (f.end_lineno or f.lineno)]
    return max(holding, key=lambda f: f.lineno, default=None)


def lines_round(module: SourceModule, line: int) -> tuple[int, int]:
    """First and last line of the function round a line; outside of functions those of the whole file."""
    function = function_round(module, line)
    return (function.lineno, function.end_lineno or function.lineno) if function is not None else (1, len(module.lines))


def in_function(module: SourceModule, line: int, found: Sequence[Finding]) -> list[Finding]:
    """Findings of other lines of the function, and those that show a line of it; nearest first."""
    if (function := function_round(module, line)) is None:
        return []
    first, end = function.lineno, function.end_lineno or function.lineno
    told = (f for f in found if f.severity not in LIGHT)
    out = [f for f in told if not f.span.line <= line <= f.span.end_line and _touches(f, module.path, first, end)]
    return sorted(out, key=lambda f: (abs(f.span.line - line), f.code))


def at_callers(project: Project, module: SourceModule, line: int, chosen: Sequence[DdpCodemod]) -> list[Finding]:
    """Findings of other files that show a line of the function, and those at a call of it; of callers of callers as well."""
    function = function_round(module, line)
    if function is None:
        return []
    ranks = gate_names(project)
    first, end = function.lineno, function.end_lineno or function.lineno
    names, seen, out = {function.name}, {module.path}, []
    for _ in range(_MOST_ROUNDS):
        above: set[str] = set()
        for name in sorted(names):
            for path in project.files_containing(f"{name}(".encode()):
                if path == module.path or (path not in seen and len(seen) > _MOST_FILES):
                    continue
                holder = project.module(path)
                if holder is None or not (calls := [c for c in holder.calls_named(name) if called_name(c) == name]):
                    continue
                above |= {f.name for c in calls if (f := holder.function_of(c)) is not None}
                if path not in seen:
                    seen.add(path)
                    opened = Gate(chosen, ranks).open_for(holder.data, path)
                    worth = [c for c in opened if c.is_worth_parsing(path, project)]
                    found = find_in(holder, project, worth)
                    heavy = (f for f in found if f.severity not in LIGHT)
                    out += [f for f in heavy if _touches(f, module.path, first, end) or _calls(f, calls)]
        names = above - names
    return out


def said_elsewhere(
    project: Project, module: SourceModule, codemods: Sequence[DdpCodemod]
) -> list[tuple[DdpCodemod, tuple[Left, ...]]]:
    """What rules said of places of this file while they judged others: some judge a loop where its sampler is made."""
    ranks = gate_names(project)
    out = []
    for codemod in codemods:
        said: list[Left] = []
        gate, others = Gate([codemod], ranks), (p for p in project.python_files if p != module.path)
        for path in [p for p in others if gate.open_for(project.read(p) or b"", p)][:_MOST_JUDGED]:
            if (holder := project.module(path)) is not None and codemod.is_worth_parsing(path, project):
                with hearing(said.append):
                    find_in(holder, project, [codemod])
        out.append((codemod, tuple(one for one in said if one.path == module.path)))
    return out


def _calls(finding: Finding, calls: Sequence[ast.Call]) -> bool:
    """True for a finding whose place, or whose chain, is one of the calls."""
    lines = {finding.span.line, *(e.line for e in finding.evidence if e.path == finding.path)}
    return any(c.lineno in lines for c in calls)


def _touches(finding: Finding, path: str, first: int, end: int) -> bool:
    return any(first <= line <= end for line in _lines(finding, path))


def _lines(finding: Finding, path: str) -> Iterator[int]:
    if finding.path == path:
        yield finding.span.line
    yield from (e.line for e in finding.evidence if e.path == path and e.line)
