"""Which ranks reach this statement: by tests round it, early exits above it, and decorators of its function."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import FunctionSite, find_function
from codemods.analysis.class_index import find_class
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.positions import above, position
from codemods.analysis.ranks.rank_branches import Branch, branches_of, known_split, ranks_of_test
from codemods.analysis.ranks.rank_exits import early_exit, exits_of
from codemods.analysis.ranks.rank_sets import Ranks, both, negated
from codemods.analysis.ranks.rank_tests import split_of
from codemods.data.rank_names import LOCAL_DECORATORS, ORDERED_CONTEXTS, OTHER_DECORATORS, ZERO_DECORATORS
from codemods.files.source import FunctionNode, SourceModule, line_of, once_a_module, walk
from codemods.runtime.record import record
from codemods.store.project import Project

__all__ = [
    "ORDERED_CONTEXTS", "Guard", "Ranks", "both", "decorated_ranks", "early_exit", "guards_over", "negated", "ranks_at",
    "ranks_of_test", "speaks_of_ranks", "split_of",
]  # fmt: skip

_PLAIN_DECORATORS = frozenset({"property", "staticmethod", "classmethod"})
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@record
class Guard:
    """Something that keeps ranks from a statement. ranks: those that pass.

    node: the `if`, conditional expression or boolean operation, the early exit above, or the decorated function.
    kind: "if", "else", "exit" or "decorator". alone: nothing but the rank decides. rest: the ranks that may be kept out.
    """

    ranks: Ranks
    node: ast.AST
    kind: str
    alone: bool = True
    rest: Ranks = Ranks.UNKNOWN

    @property
    def line(self) -> int:
        return line_of(self.node)


def ranks_at(module: SourceModule, node: ast.AST, *, project: Project | None = None) -> Ranks:
    """The ranks that reach `node` within its function: tests round it, early exits above it, decorators.

    What stands round an inner function, or round the `def` or class itself, counts too: who does not come there has none.
    """
    return _ranks_round(module, node, project, decorators=True)


def _ranks_round(module: SourceModule, node: ast.AST, project: Project | None, *, decorators: bool) -> Ranks:
    ranks = Ranks.ALL
    place: ast.AST | None = node
    while place is not None:
        for guard in guards_over(module, place, project=project, decorators=decorators):
            ranks = both(ranks, guard.ranks)
        place = module.function_of(place)
    return ranks


def guards_over(
    module: SourceModule, node: ast.AST, *, project: Project | None = None, decorators: bool = True
) -> Iterator[Guard]:
    """Every guard between `node` and the outside of its function, innermost first; its decorators last."""
    function = module.function_of(node)
    tested = _is_tested(module, function, project)
    if not tested and not (decorators and function is not None and function.decorator_list):
        return
    exits = exits_of(module, project) if tested else {}
    below: ast.AST = node
    for up in module.ancestors(node):
        if tested:
            yield from _branch(module, up, below, project)
        if beside := exits.get(id(up)):
            yield from _exits_above(module, beside, up, below)
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if not decorators or any(d is below for d in up.decorator_list):
                return
            ranks = decorated_ranks(module, up, project=project)
            if ranks.some:
                yield Guard(ranks, up, "decorator")
            return
        below = up


def speaks_of_ranks(module: SourceModule, function: FunctionNode | None, project: Project | None = None) -> bool:
    """False where no statement of the function (None: of the module itself) can stand under a rank guard."""
    if _is_tested(module, function, project):
        return True
    return function is not None and decorated_ranks(module, function, project=project).some


def _is_tested(module: SourceModule, function: FunctionNode | None, project: Project | None) -> bool:
    """True for a function (None: the module itself) that holds a test of ranks: few do, in most files."""
    tests = _tests_by_scope(module).get(function)
    if not tests:
        return False

    def ask() -> bool:
        return any(_parts_ranks(module, test, project) for test in tests)

    if project is not None:
        return project.memo(("tested", module.path, id(function)), ask)
    known = _tested_alone(module)
    if function not in known:
        known[function] = ask()
    return known[function]


def _parts_ranks(module: SourceModule, test: ast.expr | ast.Match, project: Project | None) -> bool:
    if isinstance(test, ast.Match):
        return bool(branches_of(module, test, project))
    return known_split(module, test, project) is not None


@once_a_module
def _tested_alone(module: SourceModule) -> dict[FunctionNode | None, bool]:
    return {}


@once_a_module
def _tests_by_scope(module: SourceModule) -> dict[FunctionNode | None, list[ast.expr | ast.Match]]:
    tested: list[ast.If | ast.While | ast.IfExp] = [
        *module.nodes(ast.If), *module.nodes(ast.While), *module.nodes(ast.IfExp)
    ]  # fmt: skip
    tests: list[ast.expr | ast.Match] = [t.test for t in tested]
    tests += [value for operation in module.nodes(ast.BoolOp) for value in operation.values[:-1]]
    tests += [test for part in module.nodes(ast.comprehension) for test in part.ifs]
    tests += module.nodes(ast.Match)
    found: dict[FunctionNode | None, list[ast.expr | ast.Match]] = {}
    for test in tests:
        found.setdefault(module.function_of(test), []).append(test)
    return found


def _branch(module: SourceModule, up: ast.AST, below: ast.AST, project: Project | None) -> Iterator[Guard]:
    """What the step from `up` down to its child `below` says of the ranks."""
    if isinstance(up, (ast.If, ast.While, ast.IfExp)) and below is not up.test:
        if (split := known_split(module, up.test, project)) is not None:
            body = up.body if isinstance(up.body, list) else [up.body]
            inside = any(s is below for s in body)
            taken = split if inside else split.turned
            yield Guard(taken.true, up, "if" if inside else "else", taken.alone, taken.false)
    elif isinstance(up, ast.BoolOp):
        yield from _operands_before(module, up, below, project)
    elif isinstance(up, ast.match_case) and any(s is below for s in up.body):
        match = module.parent(up)
        assert isinstance(match, ast.Match)
        for branch in branches_of(module, match, project):
            if branch.body is up.body and branch.ranks.some:
                yield Guard(branch.ranks, match, "if", branch.alone)
    elif isinstance(up, _COMPREHENSIONS) and not isinstance(below, ast.comprehension):
        for test in (t for part in up.generators for t in part.ifs):
            if (split := known_split(module, test, project)) is not None:
                yield Guard(split.true, up, "if", split.alone)


def _operands_before(module: SourceModule, up: ast.BoolOp, below: ast.AST, project: Project | None) -> Iterator[Guard]:
    for value in up.values:
        if value is below:
            return
        if (split := known_split(module, value, project)) is not None:
            yield Guard(split.true if isinstance(up.op, ast.And) else split.false, up, "if", split.alone)


def _exits_above(module: SourceModule, exits: dict[int, Branch], up: ast.AST, below: ast.AST) -> Iterator[Guard]:
    place = position(module, below)
    tried = up.body if isinstance(up, (ast.Try, ast.TryStar)) and place is not None and place.name == "orelse" else []
    for statement in (*tried, *above(module, below)):
        if (passing := exits.get(id(statement))) is not None:
            yield Guard(passing.ranks, passing.body[0], "exit", passing.alone, passing.rest)


# Decorators


def decorated_ranks(module: SourceModule, function: FunctionNode, *, project: Project | None = None) -> Ranks:
    """The ranks for which a function's body runs, by its decorators; a project's own wrapper is looked into."""
    if not function.decorator_list:
        return Ranks.ALL
    if project is None:
        return _decorated(module, function, None)
    return project.memo(("decorated ranks", module.path, id(function)), lambda: _decorated(module, function, project))


def _decorated(module: SourceModule, function: FunctionNode, project: Project | None) -> Ranks:
    ranks = Ranks.ALL
    for decorator in function.decorator_list:
        node = decorator.func if isinstance(decorator, ast.Call) else decorator
        own = _wrapper_ranks(module, node, project)
        member = node.attr if isinstance(node, ast.Attribute) else ""  # `PartialState().on_last_process`
        name = (last(qualified(module, node)) or member).lstrip("_")
        if own is not None:
            ranks = both(ranks, own)
        elif name in ZERO_DECORATORS:
            ranks = both(ranks, Ranks.ZERO)
        elif name in LOCAL_DECORATORS:
            ranks = both(ranks, Ranks.LOCAL_ZERO)
        elif name in OTHER_DECORATORS:
            ranks = both(ranks, Ranks.UNKNOWN)
    return ranks


def _wrapper_ranks(module: SourceModule, decorator: ast.expr, project: Project | None) -> Ranks | None:
    """The ranks on which a project's decorator calls what it decorates; None where it is not seen to call it."""
    name = dotted(decorator)
    if not name or name in _PLAIN_DECORATORS or name.startswith("self."):
        return None
    beside = module.methods_of(owner).get(name) if (owner := module.class_of(decorator)) is not None else None
    own = FunctionSite(module, beside) if beside is not None else None  # a function of the class body
    if project is None:
        return _called_by_wrapper(module, name, own, None)
    key = ("wrapper ranks", module.path, name, beside.lineno if beside is not None else 0)
    return project.keep(key, lambda: _called_by_wrapper(module, name, own, project))


def _called_by_wrapper(
    module: SourceModule, name: str, own: FunctionSite | None, project: Project | None
) -> Ranks | None:
    site = own or find_function(project, module, name)
    if (made := find_class(project, module, name) if project is not None else None) is not None:
        call = made.methods().get("__call__")
        site = FunctionSite(made.module, call) if call else None
    if site is None:
        return None
    answers = {_ranks_round(site.module, n, project, decorators=False) for n in _runs(site, wraps=made is not None)}
    if not answers:
        return None
    return answers.pop() if len(answers) == 1 else Ranks.UNKNOWN


def _runs(site: FunctionSite, *, wraps: bool) -> Iterator[ast.AST]:
    """Where a decorator runs what it decorates: calls of its argument in a function inside, or its return as it is.

    wraps: the decorator is a class, and `site` its `__call__`: calls of an attribute of `self`.
    """
    first = site.node.args.args[0].arg if site.node.args.args else ""
    for node in walk(site.node):
        if isinstance(node, ast.Call):
            attribute = wraps and isinstance(node.func, ast.Attribute) and dotted(node.func.value) == first and node.args
            if attribute or (isinstance(node.func, ast.Name) and _is_parameter_round(site.module, node, site.node)):
                yield node
        elif isinstance(node, ast.Name) and node.id == first and not wraps:
            up = site.module.parent(node)
            returned = up if not isinstance(up, ast.IfExp) or node is up.test else site.module.parent(up)
            if isinstance(returned, ast.Return) and site.module.function_of(node) is site.node:
                yield node


def _is_parameter_round(module: SourceModule, call: ast.Call, outer: FunctionNode) -> bool:
    """True if the called name is the first argument of a function round the call: the function that is decorated."""
    assert isinstance(call.func, ast.Name)
    scope = module.function_of(call)
    while scope is not None and scope is not outer:
        holder = module.function_of(scope)
        if holder is not None and holder.args.args and holder.args.args[0].arg == call.func.id:
            return True
        scope = holder
    return False
