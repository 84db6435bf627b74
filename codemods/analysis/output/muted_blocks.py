"""Which blocks keep the other ranks quiet? `with Quiet(rank):`, which leads their standard output away, and all that runs in it.

The context manager is a class with `__enter__`, a function with `yield`, or `redirect_stdout` on the other ranks alone.
A function that is only called in such a block is quiet, too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from codemods.analysis.bindings import bindings_of
from codemods.analysis.branches import leading_tests
from codemods.analysis.call_graph import called_function
from codemods.analysis.class_index import ClassSite, class_facts, find_class
from codemods.analysis.class_values import Given, class_values
from codemods.analysis.model.signatures import bind
from codemods.analysis.names import dotted, last
from codemods.analysis.paths import origin_text
from codemods.analysis.ranks.outside_calls import is_called_from_outside, is_hook
from codemods.analysis.ranks.rank_guards import ranks_at
from codemods.analysis.ranks.rank_sets import Ranks, both
from codemods.analysis.ranks.rank_tests import split_of
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.store.project import Project

OF_OTHERS = (Ranks.OTHERS, Ranks.LOCAL_OTHERS)
_CLIMBS = 4
_MOST_CALLS = 12
_HARMLESS = frozenset({"no_grad", "inference_mode", "staticmethod", "classmethod"})


def goes_nowhere(made: str) -> bool:
    """True for the text of a stream that nobody reads."""
    return "devnull" in made or "/dev/null" in made


def is_in_muted_block(project: Project, module: SourceModule, node: ast.AST, stream: str) -> bool:
    """True where the other ranks have led `stream` ("sys.stdout") away, by a `with` round the place or round each call to it."""
    redirects = f"redirect_{stream.rpartition('.')[2]}("
    if not project.files_containing(f"{stream} = ".encode()) and not project.files_containing(redirects.encode()):
        return False
    return _is_quiet(project, module, node, stream, _CLIMBS)


def _is_quiet(project: Project, module: SourceModule, node: ast.AST, stream: str, climbs: int) -> bool:
    function = module.function_of(node)
    below = node
    for up in module.ancestors(node):
        if up is function:
            break
        if isinstance(up, (ast.With, ast.AsyncWith)) and any(below is s for s in up.body):
            if any(_mutes(project, module, item.context_expr, stream) for item in up.items):
                return True
        below = up
    if function is None or not climbs or not _is_called_by_the_project_alone(project, module, function):
        return False
    key = ("only called quietly", stream, climbs, module.path, function.lineno)
    return project.keep(key, lambda: _is_only_called_quietly(project, module, function, stream, climbs))


def _is_only_called_quietly(project: Project, module: SourceModule, function: FunctionNode, stream: str, climbs: int) -> bool:
    used = uses_of(project, module, function).outside_tests()
    if used.more or used.handed_on or not 0 < len(used.calls) <= _MOST_CALLS:
        return False
    return all(_is_quiet(project, s.module, s.call, stream, climbs - 1) for s in used.calls)


def _is_called_by_the_project_alone(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    if any(last(dotted(d.func if isinstance(d, ast.Call) else d)) not in _HARMLESS for d in function.decorator_list):
        return False
    owner = module.parent(function)
    if not isinstance(owner, ast.ClassDef):
        return True
    return not is_hook(function.name) and not is_called_from_outside(project, class_facts(project, module, owner), function.name)


def _mutes(project: Project, module: SourceModule, entered: ast.expr, stream: str) -> bool:
    """True for a context manager that leads the stream of the other ranks away, and leaves rank 0 its own."""
    if isinstance(entered, ast.Name):
        bound = bindings_of(module, entered)
        value = bound[0].value if len(bound) == 1 and not bound[0].part else None
        return isinstance(value, (ast.Call, ast.IfExp)) and _mutes(project, module, value, stream)
    if isinstance(entered, ast.IfExp):
        split = split_of(module, entered.test, project)
        sides = ((entered.body, split.true), (entered.orelse, split.false)) if split is not None and split.alone else ()
        return any(ranks in OF_OTHERS and _redirects(module, side, stream) for side, ranks in sides)
    if not isinstance(entered, ast.Call):
        return False
    site = find_class(project, module, dotted(entered.func)) if dotted(entered.func) else None
    if site is not None:
        return _mutes_on_enter(project, module, entered, site, stream)
    made = called_function(project, module, entered)
    if made is None or not any(last(dotted(d)) == "contextmanager" for d in made.node.decorator_list):
        return False
    given = bind(made.node, entered, bound=False) or {}
    told = ((s, _ranks_told(project, module, given, made.module, s)) for s in _leading_away(made.module, made.node, stream))
    return any(both(ranks_at(made.module, s, project=project), ranks) in OF_OTHERS for s, ranks in told)


def _mutes_on_enter(project: Project, module: SourceModule, call: ast.Call, site: ClassSite, stream: str) -> bool:
    """True for a class whose `__enter__` does it on the other ranks: by the rank, or by what its constructor is told of it."""
    facts = class_facts(project, site.module, site.node)
    enter, made = facts.method("__enter__"), facts.method("__init__")
    if enter is None:
        return False
    given = (bind(made[1], call, bound=True) if made is not None else None) or {}
    fields = {f"self.{name}": one for name, values in class_values(project, facts).given.items() if (one := _kept(values, given))}
    home = enter[0].module
    return any(
        both(ranks_at(home, s, project=project), _ranks_told(project, module, fields, home, s)) in OF_OTHERS
        for s in _leading_away(home, enter[1], stream)
    )


def _kept(values: list[Given], given: Mapping[str, ast.expr]) -> ast.expr | None:
    """What the constructor is handed for a field that it keeps as it is."""
    value = values[0].value if len(values) == 1 and values[0].part is None else None
    return given.get(value.id) if isinstance(value, ast.Name) else None


def _ranks_told(
    project: Project, module: SourceModule, given: Mapping[str, ast.expr], home: SourceModule, statement: ast.stmt
) -> Ranks:
    """The ranks on which what a call of `module` gives for the names that are tested over a statement leads there."""
    ranks = Ranks.ALL
    for test, wanted in leading_tests(home, statement):
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, wanted = test.operand, not wanted
        value = given.get(dotted(test))
        split = split_of(module, value, project) if value is not None and not isinstance(value, ast.Constant) else None
        if split is not None and (split.alone or wanted):
            ranks = both(ranks, split.true if wanted else split.false)
    return ranks


def _leading_away(module: SourceModule, function: FunctionNode, stream: str) -> Iterator[ast.stmt]:
    """Where a function leads a stream to nowhere before it hands over: by an assignment, or by a `with` round its `yield`."""
    yields = [n for n in walk_scope(function) if isinstance(n, (ast.Yield, ast.YieldFrom))]
    for node in walk_scope(function):
        if isinstance(node, ast.Assign) and stream in map(dotted, node.targets):
            if goes_nowhere(origin_text(module, node.value)) and (not yields or any(y.lineno > node.lineno for y in yields)):
                yield node
        elif isinstance(node, ast.With) and any(_redirects(module, i.context_expr, stream) for i in node.items):
            if any(node in module.ancestors(y) for y in yields):
                yield node


def _redirects(module: SourceModule, node: ast.expr, stream: str) -> bool:
    """`redirect_stdout(open(os.devnull, "w"))`."""
    if not isinstance(node, ast.Call) or last(dotted(node.func)) != f"redirect_{stream.rpartition('.')[2]}":
        return False
    return bool(node.args) and goes_nowhere(origin_text(module, node.args[0]))
