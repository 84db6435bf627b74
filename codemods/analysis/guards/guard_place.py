"""A guard that is being repaired, and what came of it. Text of statements as they would stand elsewhere."""

from __future__ import annotations

import ast
import io
from collections.abc import Iterable, Iterator

from codemods.analysis.call_graph import called_function
from codemods.analysis.guards.guard_arms import ends_in_comment
from codemods.analysis.guards.guard_split import (
    Parts,
    assigned_names,
    call_of,
    changed_attributes,
    leaves,
    missing_on_other_ranks,
    used_attributes,
    used_behind,
    used_names,
    used_outside,
)
from codemods.analysis.guards.guarded_collectives import Guarded
from codemods.analysis.ranks.collectives import OUT_OF_PLACE
from codemods.analysis.ranks.rank_guards import ranks_at
from codemods.analysis.ranks.same_way import parting_ways
from codemods.api.findings import Applicability, Edit
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

# torch.distributed writes the result into its argument.
_OVERWRITING = frozenset({"all_reduce", "reduce", "broadcast", "all_gather", "gather", "scatter", "broadcast_object_list"})


@record
class Repair:
    """Edits with their level; without edits, `reason` says why there are none."""

    edits: tuple[Edit, ...] = ()
    level: Applicability = Applicability.DISPLAY
    reason: str = ""


@record
class Place:
    """Where the repair is made."""

    project: Project
    module: SourceModule
    sites: list[Guarded]
    function: FunctionNode | None

    @property
    def site(self) -> Guarded:
        return self.sites[0]


def refused(place: Place, guard: ast.stmt, block: list[ast.stmt], parts: Parts) -> str:
    """Why the parts of a guarded block cannot be taken apart, "" where they can."""
    if place.function is not None and (call := guarded_call(place.project, place.module, place.function)):
        return f"{place.function.name} is itself called on some ranks only ({call})"
    if parts.tail and parts.rest and ends_in_comment(place.module, block, guard):
        return "a comment ends the guarded block: where it belongs has to be decided"
    if parts.rest and not all(place.module.is_whole(s) for s in [*parts.head, *parts.tail]):
        return "it shares its line with another statement"
    if parts.tail and leaves(parts.rest):
        return "the guarded block can be left before the collective: rank 0 would still miss it"
    made, changed = assigned_names([*parts.head, *parts.rest]), changed_attributes(parts.rest)
    for statement in [*parts.head, *parts.tail]:
        if statement in parts.tail and parts.rest and (needed := used_names(statement) & made):
            return f"it needs `{min(needed)}`, which is made inside the guard"
        if statement in parts.tail and (held := used_attributes(statement) & changed):
            return f"it needs `{min(held)}`, which is set inside the guard"
        if missing := missing_on_other_ranks(place.project, place.module, statement, guard, place.function):
            return f"the other ranks may not have `{missing}`"
        if changed_there := _in_place(place, statement, guard):
            return f"`{changed_there}` is read behind the guard, and the collective changes it in place: by hand"
        for name in assigned_names([statement]):
            if used_outside(place.module, name, guard, place.function):
                return f"its result `{name}` is used outside the guard: what the other ranks do with it has to be decided"
    return ""


def _in_place(place: Place, statement: ast.stmt, guard: ast.stmt) -> str:
    """A tensor that the collective overwrites on every rank, and that is used further down."""
    call = call_of(statement)
    if not isinstance(call, ast.Call) or place.site.guard.kind == "exit":
        return ""
    found = next((s.collective for s in place.sites if s.node is call), None)
    if found is None or found.name not in _OVERWRITING or found.text.startswith(OUT_OF_PLACE):
        return ""
    names = {n for a in call.args for n in used_names(a)}
    return used_behind(names, guard, place.function, place.module)


def guarded_call(project: Project, module: SourceModule, function: FunctionNode) -> str:
    """The place of a call of the function that only some ranks make, "" where none is seen."""
    found = ((c, n) for c, n in _calls(project, module, function) if ranks_at(c, n, project=project).some)
    return next((f"{caller.path}:{call.lineno}" for caller, call in found), "")


def _calls(project: Project, module: SourceModule, function: FunctionNode) -> Iterator[tuple[SourceModule, ast.Call]]:
    """The calls of the function in the project, each with its file."""
    for path in project.files_calling(function.name):
        caller = module if path == module.path else project.module(path)
        if caller is None:
            continue
        for call in caller.calls_named(function.name):
            site = called_function(project, caller, call)
            if site is not None and site.node is function:
                yield caller, call


def parting_calls(project: Project, module: SourceModule, function: FunctionNode, *, depth: int = 4) -> Iterator[str]:
    """What has to hold for all ranks to call the function, where a caller does not show it: each with its place."""
    for caller, call in _calls(project, module, function) if depth else ():
        outer = caller.function_of(call)
        statement = next((up for up in caller.ancestors(call) if isinstance(up, ast.stmt)), None)
        for line, assumed in parting_ways(project, caller, statement, outer) if statement is not None else ():
            yield f"{assumed} ({caller.path}:{line})"
        if outer is not None and outer is not function:
            yield from parting_calls(project, caller, outer, depth=depth - 1)


def statements_text(module: SourceModule, statements: Iterable[ast.stmt]) -> str:
    """Statements with the comments that belong to them, as they would stand at the margin."""
    out: list[str] = []
    for statement in statements:
        span, lines = module.span(statement), module.lines
        head = lines[span.line - 1][: span.column]
        alone = not head.strip()  # else the comments above are of what it shares its line with
        top = span.line
        while alone and top > 1 and lines[top - 2].lstrip().startswith("#"):
            top -= 1
        indent = head if alone else head[: len(head) - len(head.lstrip())]
        behind = lines[span.end_line - 1][span.end_column :]
        if not alone or not behind.lstrip(" \t;").startswith("#"):
            behind = ""
        for line in [*lines[top - 1 : span.line - 1], *(module.text_of(statement) + behind).splitlines(keepends=True)]:
            bare = line.rstrip("\r\n")
            out.append(bare.removeprefix(indent) if bare.startswith(indent) else bare.lstrip())
    return "\n".join(out)


def comments_above(module: SourceModule, statement: ast.stmt) -> tuple[str, ...]:
    out: list[str] = []
    line = statement.lineno - 1
    while line > 0 and module.lines[line - 1].lstrip().startswith("#"):
        out.insert(0, module.lines[line - 1].strip().lstrip("#").strip())
        line -= 1
    return tuple(out)


def comments_inside(module: SourceModule, statement: ast.stmt) -> tuple[str, ...]:
    """The comments on the lines of a statement."""
    text = "".join(module.lines[statement.lineno - 1 : statement.end_lineno])
    if "#" not in text:
        return ()
    import textwrap
    import tokenize

    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(textwrap.dedent(text), newline=None).readline))
    except (tokenize.TokenError, SyntaxError):
        return ()
    return tuple(t.string.lstrip("#").strip() for t in tokens if t.type == tokenize.COMMENT)


def turned(module: SourceModule, test: ast.expr) -> str:
    """The opposite of a rank test, as one would write it."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return module.text_of(test.operand)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        opposites = {
            ast.NotEq: "==", ast.Eq: "!=", ast.NotIn: "in", ast.In: "not in", ast.Gt: "<=", ast.IsNot: "is", ast.Is: "is not",
        }  # fmt: skip
        if isinstance(test.left, ast.Call) and ast.unparse(test.left.func) == "len":  # a whole number: no NaN to think of
            opposites |= {ast.Lt: ">=", ast.LtE: ">", ast.GtE: "<"}
        if opposite := opposites.get(type(test.ops[0])):
            return f"{module.text_of(test.left)} {opposite} {module.text_of(test.comparators[0])}"
    return f"not ({module.text_of(test)})"
